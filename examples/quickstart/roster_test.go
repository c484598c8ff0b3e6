package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRosterFromFlags(t *testing.T) {
	r, err := openRoster(options{replicas: []string{"127.0.0.1:1", "[::1]:2"}})
	if err != nil || r.text() != "127.0.0.1:1\n[::1]:2\n" {
		t.Fatalf("%v, %v", r, err)
	}
	if changed, err := r.reload(); changed || err != nil {
		t.Errorf("a fixed list changed: %v, %v", changed, err)
	}
	if _, err := openRoster(options{replicas: []string{"127.0.0.1:1", "[::ffff:127.0.0.1]:1"}}); err == nil || !strings.Contains(err.Error(), "entry 2: 127.0.0.1:1 is there already") {
		t.Errorf("a replica given twice: %v", err)
	}
}

func TestRosterFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replicas")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# ours\n127.0.0.1:1\n\n  127.0.0.1:2  # the big one\r\n127.0.0.1:1\n")
	r, err := openRoster(options{replicasFile: path})
	if err != nil {
		t.Fatal(err)
	}
	f := func(changed bool, fault, list string) {
		t.Helper()
		if early, err := r.reload(); early || err != nil && fault == "" {
			t.Errorf("a first look: %v, %v", early, err)
		}
		got, err := r.reload()
		if got != changed || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("reload = %v, %v, want %v, %q", got, err, changed, fault)
		}
		if got := strings.TrimSpace(strings.ReplaceAll(r.text(), "\n", " ")); got != list {
			t.Errorf("list %q, want %q", got, list)
		}
	}
	f(false, "", "127.0.0.1:1 127.0.0.1:2")
	write("127.0.0.1:2\n127.0.0.1:3")
	f(true, "", "127.0.0.1:2 127.0.0.1:3")
	write("127.0.0.1:2\n127.0.0.1:3\n# no change\n")
	f(false, "", "127.0.0.1:2 127.0.0.1:3")
	write("127.0.0.1:2\n127.0.0.1:3\tdraining\n")
	f(true, "", "127.0.0.1:2 127.0.0.1:3 draining")
	write("127.0.0.1:2\n127.0.0.1:3 tired\n")
	f(false, "only \"draining\" is allowed", "127.0.0.1:2 127.0.0.1:3 draining")
	write("127.0.0.1:2\n127.0.0.1:3\n")
	f(true, "", "127.0.0.1:2 127.0.0.1:3")
	write("127.0.0.1:2\noops\n")
	f(false, "entry 2: \"oops\": want HOST:PORT", "127.0.0.1:2 127.0.0.1:3")
	f(false, "", "127.0.0.1:2 127.0.0.1:3") // said once
	write(strings.Repeat("#", maxRoster+1))
	f(false, "too large", "127.0.0.1:2 127.0.0.1:3")
	write("")
	f(true, "", "")
	os.Remove(path)
	f(false, "no such file", "")
}

func TestRosterNeedsItsFileAtStart(t *testing.T) {
	if _, err := openRoster(options{replicasFile: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "-replicas-file") {
		t.Errorf("error %v", err)
	}
}
