package replicatest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/examples/replica/node"
)

func TestInProcess(t *testing.T) { session(t, Start(t, node.Options{Speed: 20})) }

func TestBeside(t *testing.T) {
	r := StartProcess(t, Build(t), "-speed", "20", "-kv-events", "tcp://127.0.0.1:0", "-kv-replay", "tcp://127.0.0.1:0")
	if r.Events == "" || r.Replay == "" {
		t.Errorf("event endpoints %q and %q", r.Events, r.Replay)
	}
	session(t, r)
	r.Stop()
	if _, err := http.Get(r.URL + "/health"); err == nil {
		t.Error("it still answers after Stop")
	}
}

// session uses every method once.
func session(t *testing.T, r *Replica) {
	t.Helper()
	const body = `{"prompt":"The quick brown fox jumps over the lazy dog and then once again over the dog because it is fun.","max_tokens":3}`
	post := func() int {
		resp, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	if got := post(); got != 200 {
		t.Fatalf("status %d", got)
	}
	sum := sha256.Sum256([]byte(body))
	if list := r.Requests(); len(list) != 1 || list[0].BodySHA256 != hex.EncodeToString(sum[:]) || list[0].CompletionTokens != 3 {
		t.Errorf("requests: %+v", list)
	}
	if c := r.Blocks(); c.BlockSize != 16 || len(c.Blocks) == 0 || len(c.Blocks[0].Tokens) != 16 {
		t.Errorf("blocks: %+v", c)
	}
	r.Faults(`{"status":503}`)
	if got := post(); got != 503 {
		t.Errorf("status %d with the fault on", got)
	}
	r.Heal()
	r.Forget()
	if got := post(); got != 200 || len(r.Requests()) != 1 {
		t.Errorf("healed: status %d, %d requests", got, len(r.Requests()))
	}
}
