package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	wasm []byte
	err  error
}

// moduleBytes compiles the filter, once for all tests, as `make build` does.
func moduleBytes(t *testing.T) []byte {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "warmlane-filter")
		if err != nil {
			built.err = err
			return
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "warmlane.wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-trimpath", "-o", file, ".")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = &buildError{err, out}
			return
		}
		built.wasm, built.err = os.ReadFile(file)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.wasm
}

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string {
	return "building the module: " + e.err.Error() + "\n" + string(e.out)
}

// TestModuleSize holds the module to its budget: what is larger takes longer to
// fetch, to compile on every proxy's start, and to hold in every VM.
func TestModuleSize(t *testing.T) {
	const budget = 4 << 20
	if n := len(moduleBytes(t)); n > budget {
		t.Errorf("%d bytes, budget %d", n, budget)
	}
}
