//go:build vllm

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

const build = "../../../build"

// house is a running quickstart.
type house struct {
	t                   *testing.T
	url, admin, control string
	logs                string
}

// open runs the quickstart in front of replicas, with the filter's only pool set up as given.
func open(t *testing.T, replicas []string, pool map[string]any) *house {
	t.Helper()
	bin := filepath.Join(build, "quickstart")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("run `make build` first: %v", err)
	}
	h := &house{t: t, logs: t.TempDir()}
	config := filepath.Join(h.logs, "config.json") // which is YAML, too
	text, err := json.Marshal(map[string]any{"filter": map[string]any{"pools": []any{pool}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(nil, bin, "-listen", "127.0.0.1:0", "-envoy", envoyPath(t), "-log-dir", h.logs, "-config", config,
		"-replicas", strings.Join(replicas, ","), "-workers", "2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(20 * time.Second); h.report() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line, err := p.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := fmt.Sscanf(line, "%s admin=%s control=%s", &h.url, &h.admin, &h.control); n != 3 {
		t.Fatalf("ready line %q: %v", line, err)
	}
	return h
}

// envoyPath is the Envoy under test, fetched once.
func envoyPath(t *testing.T) string {
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

// report shows what Envoy and control had to say, if the test failed.
func (h *house) report() {
	if !h.t.Failed() {
		return
	}
	for _, name := range []string{"envoy.log", "control.log"} {
		if b, err := os.ReadFile(filepath.Join(h.logs, name)); err == nil {
			lines := strings.Split(strings.TrimSpace(string(b)), "\n")
			h.t.Logf("%s ends:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
	}
}

// get reads a page and fails the test if that cannot be done.
func (h *house) get(url string) []byte {
	h.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %s, %v: %.300s", url, resp.Status, err, b)
	}
	return b
}

var decisions = regexp.MustCompile(`(?m)^warmlane_decisions_total\{(.*)\} (\d+)$`)

// branches counts the decisions by tier and branch, such as "2 kv_hit", over all models.
func (h *house) branches() map[string]int {
	h.t.Helper()
	counts := map[string]int{}
	for _, m := range decisions.FindAllStringSubmatch(string(h.get(h.admin+"/stats/prometheus")), -1) {
		label := func(name string) string {
			_, rest, _ := strings.Cut(m[1], name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		if n, err := strconv.Atoi(m[2]); err == nil {
			counts[label("tier")+" "+label("branch")] += n
		}
	}
	return counts
}

// replica is one as control describes it on /v1/pools.
type replica struct {
	Address, State string
	Adapters       []struct{ Name string }
	KV             struct {
		Blocks  *int
		LastSeq *int64 `json:"last_seq"`
		Partial *bool
	}
}

func (h *house) replica(address string) replica {
	h.t.Helper()
	var page struct {
		Pools []struct{ Replicas []replica }
	}
	if err := json.Unmarshal(h.get(h.control+"/v1/pools"), &page); err != nil {
		h.t.Fatal(err)
	}
	for _, pool := range page.Pools {
		for _, r := range pool.Replicas {
			if r.Address == address {
				return r
			}
		}
	}
	h.t.Fatalf("control knows no replica at %s", address)
	return replica{}
}

// eventually waits until f holds.
func (h *house) eventually(within time.Duration, what string, f func() bool) {
	h.t.Helper()
	for end := time.Now().Add(within); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within %v: %s", within, what)
		}
	}
}
