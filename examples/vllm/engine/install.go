package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

//go:embed setup
var setup embed.FS

// home is the folder that vLLM is installed in.
type home string

func (h home) python() string          { return filepath.Join(string(h), "venv", "bin", "python") }
func (h home) path(name string) string { return filepath.Join(string(h), name) }

// install brings vLLM and the model into the cache and returns where they are. What is there and was made from the same
// setup files is left alone. Several processes may install at once: the first does it, the others wait.
func install(ctx context.Context, log io.Writer) (home, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	h := home(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(h.path("lock"))
	if err != nil {
		return "", fmt.Errorf("vllm: lock: %w", err)
	}
	defer unlock()
	want, err := setupSum()
	if err != nil {
		return "", err
	}
	if have, err := os.ReadFile(h.path("installed")); err == nil && string(have) == want {
		return h, nil
	}
	if err := h.install(ctx, log); err != nil {
		return "", fmt.Errorf("vllm: install into %s: %w", dir, err)
	}
	return h, os.WriteFile(h.path("installed"), []byte(want), 0o644)
}

// setupSum is a checksum over the setup files, in order of their names.
func setupSum() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(setup, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := setup.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// lock takes an advisory lock on a file, which the kernel gives back if we die.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// install makes everything anew.
func (h home) install(ctx context.Context, log io.Writer) error {
	for _, old := range []string{"installed", "setup", "venv", "model", "lora-a", "lora-b"} {
		if err := os.RemoveAll(h.path(old)); err != nil {
			return err
		}
	}
	if err := os.CopyFS(string(h), setup); err != nil {
		return err
	}
	steps := []struct {
		what    string
		command []string
	}{
		{"making a Python environment", []string{"python3", "-m", "venv", h.path("venv")}},
		{"installing vLLM, which takes some minutes", []string{h.python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", h.path("setup/requirements.txt")}},
		{"making the model", []string{h.python(), h.path("setup/model.py"), string(h)}},
	}
	for _, step := range steps {
		fmt.Fprintln(log, step.what)
		if err := command(ctx, step.command...); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// command runs a program to its end. What it printed is in the error, if there is one.
func command(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
