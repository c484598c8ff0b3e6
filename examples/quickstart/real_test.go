//go:build e2e

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

// These tests run the built quickstart with a real Envoy: make e2e.
const build = "../../build"

func realEnvoy(t *testing.T) string {
	t.Helper()
	cache, err := envoy.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path, err := envoy.Fetch(t.Context(), cache, os.Getenv("WARMLANE_ENVOY_VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// server is a replica without a model, at an address of its own.
func server(t *testing.T, address string) (hostPort string, hits *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	hits = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			hits.Add(1)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return listener.Addr().String(), hits
}

// start runs quickstart and returns its ready line in words.
func start(t *testing.T, flags ...string) (*proc.Process, []string) {
	t.Helper()
	args := append([]string{"-listen", "127.0.0.1:0", "-envoy", realEnvoy(t), "-workers", "1"}, flags...)
	p, err := proc.Start(nil, filepath.Join(build, "quickstart"), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(20 * time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	line, err := p.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.Fields(line)
}

func post(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
}

// children lists the processes that a process has started.
func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // has ended
		}
		var pid, ppid int
		var state string
		fmt.Sscan(string(stat), &pid)
		fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &ppid)
		if ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until none of the processes is there any more.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for deadline := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("process %d is still there", pid)
				break
			}
		}
	}
}

// TestEnvoyTakesTheFileAsItStands validates envoy.yaml the way somebody uses it who copies it: with other paths, and nothing else changed.
func TestEnvoyTakesTheFileAsItStands(t *testing.T) {
	dir := t.TempDir()
	wasm, err := filepath.Abs(filepath.Join(build, "warmlane.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints, err := endpointsResource([]replica{{address: "127.0.0.1:8000"}, {"[::1]:8000", true}})
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("/etc/warmlane/warmlane.wasm", wasm, "/etc/warmlane/endpoints", dir).Replace(string(envoyYAML))
	for name, data := range map[string]string{"replicas.yaml": string(endpoints), "envoy.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(realEnvoy(t), "--mode", "validate", "--config-path", filepath.Join(dir, "envoy.yaml"), "--log-level", "error").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRefusesBadSettings wants the key that is wrong in what quickstart prints.
func TestRefusesBadSettings(t *testing.T) {
	f := func(settings string, wants ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(build, "quickstart"), "-envoy", realEnvoy(t), "-listen", "127.0.0.1:0",
			"-replicas", "127.0.0.1:1", "-config", file).CombinedOutput()
		if err == nil {
			t.Errorf("%s: it ended without an error", settings)
		}
		for _, want := range wants {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s: no %q in\n%s", settings, want, out)
			}
		}
	}
	f("filter: {routing: {nonsense: 1}}", "routing.nonsense: unknown key; allowed: ")
	f("control: {scrape: {interval: never}}", "scrape.interval")
	f("nonsense: {}", "nonsense: unknown key; allowed are control and filter")
}

func TestTwoSideBySideAndNothingLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	replica, hits := server(t, "127.0.0.1:0")
	one, oneLine := start(t, "-replicas", replica, "-log-dir", t.TempDir())
	two, twoLine := start(t, "-replicas", replica, "-log-dir", t.TempDir())
	post(t, oneLine[0])
	post(t, twoLine[0])
	if hits.Load() != 2 {
		t.Errorf("the replica got %d requests", hits.Load())
	}
	before := children(t, one.Pid())
	if len(before) != 2 {
		t.Errorf("children %v, want Envoy and control", before)
	}
	one.Signal(syscall.SIGTERM)
	if err := one.Err(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	gone(t, before)
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) != 2 { // of the other one
		t.Errorf("temporary files %v", left)
	}
	post(t, twoLine[0])
	before = children(t, two.Pid())
	two.Kill()
	gone(t, before)
}

func TestAddressesOfVersion6(t *testing.T) {
	replica, hits := server(t, "[::1]:0")
	_, line := start(t, "-listen", "[::1]:0", "-control-listen", "[::1]:0", "-replicas", replica)
	if !strings.HasPrefix(line[0], "http://[::1]:") || !strings.HasPrefix(line[2], "control=http://[::1]:") {
		t.Fatalf("ready line %q", line)
	}
	post(t, line[0])
	if hits.Load() != 1 {
		t.Errorf("the replica got %d requests", hits.Load())
	}
}

func TestRoundRobin(t *testing.T) {
	first, firstHits := server(t, "127.0.0.1:0")
	second, secondHits := server(t, "127.0.0.1:0")
	p, line := start(t, "-round-robin", "-replicas", first+","+second)
	for range 10 {
		post(t, line[0])
	}
	if len(line) != 2 || firstHits.Load() != 5 || secondHits.Load() != 5 {
		t.Errorf("ready line %q, %d and %d requests", line, firstHits.Load(), secondHits.Load())
	}
	if got := children(t, p.Pid()); len(got) != 1 {
		t.Errorf("children %v, want Envoy alone", got)
	}
}
