package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLock wants every package pinned by version and checksum, as pip's --require-hashes does, and the wanted ones among them.
func TestLock(t *testing.T) {
	text, err := setup.ReadFile("setup/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`^[a-z0-9-]+==[^ ]+( --hash=sha256:[0-9a-f]{64})+$`)
	lock := strings.ReplaceAll(string(text), " \\\n   ", "")
	for line := range strings.Lines(lock) {
		if line = strings.TrimSuffix(line, "\n"); !entry.MatchString(line) {
			t.Errorf("not pinned: %.100q", line)
		}
	}
	for _, file := range []string{"setup/requirements.in", "setup/overrides.txt"} {
		wanted, err := setup.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(wanted)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.Contains("\n"+lock, "\n"+line+" ") {
				t.Errorf("%s wants %s, which is not locked", file, line)
			}
		}
	}
}

// TestNothingIsLeft runs serve.py with a server that starts a process and then dies: that process must end, too.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "vllm", "entrypoints", "openai", "api_server.py")
	if err := os.MkdirAll(filepath.Dir(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	const server = "import os, subprocess, sys\n" +
		"print(sys.argv[1:], subprocess.Popen(['sleep', '60']).pid, flush=True)\n" +
		"os.kill(os.getpid(), 9)\n"
	if err := os.WriteFile(fake, []byte(server), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "setup/serve.py", "--port", "1")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	line, err := bufio.NewReader(out).ReadString('\n')
	child, ok := strings.CutPrefix(strings.TrimSpace(line), "['--port', '1'] ")
	if err != nil || !ok {
		t.Fatalf("the server printed %q, %v", line, err)
	}
	for end := time.Now().Add(10 * time.Second); !dead(child); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %s is still there", child)
		}
	}
}

// dead tells whether a process is gone, or waits only for somebody to ask how it ended.
func dead(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return errors.Is(err, os.ErrNotExist) || bytes.Contains(stat, []byte(") Z "))
}

func TestPortsAreFree(t *testing.T) {
	list, err := ports(3)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range list {
		if seen[port] {
			t.Errorf("%v: %d twice", list, port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			t.Error(err)
			continue
		}
		l.Close()
	}
}

func TestCacheDir(t *testing.T) {
	here, err := cacheDir()
	if err != nil || !strings.HasSuffix(here, filepath.Join(".cache", "vllm")) {
		t.Errorf("in a checkout: %q, %v", here, err)
	}
	t.Setenv("WARMLANE_CACHE", "/x")
	if set, err := cacheDir(); err != nil || set != "/x/vllm" {
		t.Errorf("with WARMLANE_CACHE=/x: %q, %v", set, err)
	}
}

// TestStartRefuses has mistakes that must be told before anything is installed.
func TestStartRefuses(t *testing.T) {
	t.Setenv("WARMLANE_CACHE", "/dev/null")
	f := func(o Options, want string) {
		t.Helper()
		if _, err := Start(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start(%+v): %v, want an error with %q", o, err, want)
		}
	}
	f(Options{Blocks: 128}, "128 blocks: want at least 129")
	f(Options{}, "/dev/null")
}
