package engine

import (
	"os"
	"path/filepath"
)

// cacheDir is where vLLM is installed: .cache/vllm of the checkout that the working directory lies in, which git ignores, or
// else a folder of the user's cache. WARMLANE_CACHE, if set, names the folder to have it in.
func cacheDir() (string, error) {
	if dir := os.Getenv("WARMLANE_CACHE"); dir != "" {
		return filepath.Join(dir, "vllm"), nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if root, ok := checkout(here); ok {
		return filepath.Join(root, ".cache", "vllm"), nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "warmlane", "vllm"), err
}

// checkout finds the folder at or above dir that holds this package's sources.
func checkout(dir string) (string, bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "examples", "vllm", "engine", "cache.go")); err == nil {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}
