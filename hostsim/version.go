package hostsim

import (
	"fmt"
	"slices"
)

// versions lists the Envoy releases hostsim knows, oldest first.
var versions = []string{"1.36", "1.37", "1.38", "1.39", "1.40"}

// features is what differs between those releases as a guest sees it.
type features struct {
	version string

	// wasi2026 says that the host has the larger WASI of proxy-wasm-cpp-host
	// change 533 (Envoy 1.39): more functions, poll_oneoff succeeds, and both
	// may be called while a module initialises or allocates.
	wasi2026 bool
}

func featuresOf(version string) (features, error) {
	if version == "" {
		version = versions[len(versions)-1]
	}
	i := slices.Index(versions, version)
	if i < 0 {
		return features{}, fmt.Errorf("option EnvoyVersion %q: known are %q", version, versions)
	}
	return features{version: version, wasi2026: i >= slices.Index(versions, "1.39")}, nil
}
