package hostsim_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/warmlane/warmlane/hostsim"
)

// guestDir holds the guests built by this test process.
var guestDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hostsim")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	guestDir = dir
	return m.Run()
}

var guests sync.Map // name to func() ([]byte, error)

// buildGuest compiles testdata/guest/name, once in a process.
func buildGuest(name string) ([]byte, error) {
	once, _ := guests.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		out := filepath.Join(guestDir, name+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/guest/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build guest %s: %w\n%s", name, err, text)
		}
		return os.ReadFile(out)
	}))
	return once.(func() ([]byte, error))()
}

// host starts a guest and closes it with the test.
func host(t *testing.T, guest string, opts hostsim.Options) *hostsim.Host {
	t.Helper()
	code, err := buildGuest(guest)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hostsim.New(context.Background(), code, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}
