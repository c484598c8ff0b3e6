//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// python is the interpreter that has the clients' packages. They are installed
// once, into .cache/clients, by version and checksum as the lock file says.
func python(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("testdata/clients.lock")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../../.cache/clients")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock := hold(t, filepath.Join(dir, "lock"))
	defer unlock()
	sum := sha256.Sum256(lock)
	want, venv := hex.EncodeToString(sum[:]), filepath.Join(dir, "venv")
	interpreter := filepath.Join(venv, "bin", "python")
	done := filepath.Join(venv, "installed") // goes when the environment is made anew
	if have, err := os.ReadFile(done); err == nil && string(have) == want {
		return interpreter
	}
	run(t, "python3", "-m", "venv", "--clear", venv)
	run(t, interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
		"--require-hashes", "--requirement", "testdata/clients.lock")
	write(t, done, want)
	return interpreter
}

// hold takes a lock that the kernel gives back if we die.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}

// run runs a program to its end and returns what it printed. The test fails if
// the program does, or needs minutes.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// called is a call that a client has made.
type called struct {
	Call, Text                 string
	Prompt, Completion, Cached *int
}

// TestOfficialClients has OpenAI's and Anthropic's own packages speak through
// Envoy with simulated engines.
func TestOfficialClients(t *testing.T) {
	list := engines(t, 3, nil)
	interpreter := python(t)
	h := start(t, "-workers", "2", "-replicas", strings.Join(addressesOf(list), ","))
	calls := map[string]called{}
	var prompt, completion, cached int
	for dec := json.NewDecoder(bytes.NewReader(run(t, interpreter, "testdata/clients.py", h.url))); dec.More(); {
		var c called
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		calls[c.Call] = c
		if c.Call != "count tokens" {
			prompt += number(c.Prompt)
		}
		completion += number(c.Completion)
		cached += number(c.Cached)
	}
	// The second time the words are the same and the prompt is warm.
	for _, pair := range [][2]string{{"chat", "chat stream"}, {"responses", "responses stream"}, {"messages", "messages stream"}} {
		first, second := calls[pair[0]], calls[pair[1]]
		if first.Text == "" || first.Text != second.Text || number(first.Completion) != 8 || number(second.Completion) != 8 {
			t.Errorf("%s: %+v, then %+v", pair[0], first, second)
		}
		if want := wholeBlocks(number(first.Prompt)); number(second.Cached) != want || number(second.Prompt) != number(first.Prompt) {
			t.Errorf("%s: %d of %d tokens cached, want %d", pair[1], number(second.Cached), number(second.Prompt), want)
		}
	}
	if a, b := calls["embeddings"], calls["embeddings again"]; a.Text == "" || a.Text != b.Text {
		t.Errorf("embeddings %+v, then %+v", a, b)
	}
	if a, b := calls["count tokens"], calls["messages"]; number(a.Prompt) == 0 || number(a.Prompt) != number(b.Prompt) {
		t.Errorf("count_tokens says %d, the message has %d", number(a.Prompt), number(b.Prompt))
	}
	h.settled()
	p := &parrot{house: h}
	p.equal(t, "warmlane_tokens_total", float64(prompt), `kind="prompt"`)
	p.equal(t, "warmlane_tokens_total", float64(completion), `kind="completion"`)
	p.equal(t, "warmlane_tokens_total", float64(cached), `kind="cached"`)
	p.equal(t, "warmlane_requests_total", 10, `status="200"`)
	p.equal(t, "warmlane_requests_total", 2, `status="404"`)
	p.equal(t, "warmlane_requests_total", 1, `status="400"`)
}

func number(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
