package envoy

import (
	"os"
	"path/filepath"
)

// CacheDir is where fetched binaries belong: .cache/envoy at the root of the checkout that our own program or the working
// directory lies in, which git ignores, or else a folder of the user's cache. WARMLANE_CACHE, if set, names another folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("WARMLANE_CACHE"); dir != "" {
		return dir, nil
	}
	if self, err := os.Executable(); err == nil {
		if root, ok := checkout(filepath.Dir(self)); ok {
			return filepath.Join(root, ".cache", "envoy"), nil
		}
	}
	if here, err := os.Getwd(); err == nil {
		if root, ok := checkout(here); ok {
			return filepath.Join(root, ".cache", "envoy"), nil
		}
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "warmlane", "envoy"), err
}

// checkout finds the folder at or above dir that holds this package's sources.
func checkout(dir string) (string, bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "examples", "internal", "envoy", "cache.go")); err == nil {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}
