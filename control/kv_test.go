package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/control/collect"
	sim "github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	replica "github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/filter/state"
)

// newTeller is an engine that publishes KV events.
func newTeller(t testing.TB, c sim.Config) *replicatest.Replica {
	t.Helper()
	return replicatest.Start(t, replica.Options{
		Speed: 50, Engine: c, Events: &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"},
	})
}

// complete sends a prompt, and says how it went.
func complete(r *replicatest.Replica, prompt string) error {
	body, err := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": 20})
	if err != nil {
		return err
	}
	resp, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return err
}

// really returns what an engine has cached, as /v1/blocks lists it.
func really(cache *replicatest.Cache) []collect.Block {
	list := make([]collect.Block, len(cache.Blocks))
	for i, b := range cache.Blocks {
		list[i] = collect.Block{Hash: b.Hash, Copies: b.Copies}
	}
	slices.SortFunc(list, func(a, b collect.Block) int { return cmp.Compare(a.Hash, b.Hash) })
	return list
}

// blocks asks /v1/blocks.
func (p *program) blocks(t *testing.T, slot uint16) []collect.Block {
	t.Helper()
	code, body := p.get(t, fmt.Sprintf("/v1/blocks?pool=default&slot=r%d", slot))
	var page struct {
		Pool, Slot string
		Blocks     []collect.Block
	}
	if err := json.Unmarshal([]byte(body), &page); code != http.StatusOK || err != nil || page.Pool != "default" || page.Slot != fmt.Sprint("r", slot) {
		t.Fatalf("%d, %v: %.300s", code, err, body)
	}
	return page.Blocks
}

// agree waits until control knows what a replica has cached.
func (p *program) agree(t *testing.T, slot uint16, r *replicatest.Replica) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if cache := r.Blocks(); cache.Unsent == 0 && slices.Equal(p.blocks(t, slot), really(&cache)) {
			return
		}
	}
	t.Fatalf("%d blocks of replica %d are known, it has %d", len(p.blocks(t, slot)), slot, len(r.Blocks().Blocks))
}

// KV events in, all pages out: the whole program.
func TestControlWithKVEvents(t *testing.T) {
	known, asked, silent := newTeller(t, sim.Config{}), newTeller(t, sim.Config{}), newEngine(t, "up 1\n")
	file := filepath.Join(t.TempDir(), "replicas")
	write(t, file, fmt.Sprintf("%s kv=%s|%s\n%s\n%s\n", known.Addr, known.Events, known.Replay, asked.Addr, silent.address))
	p := launch(t, "scrape: {interval: 20ms}\npools:\n- name: default\n  kv_events: true\n  replicas_file: "+file+"\n- name: other\n  replicas: []\n")
	for i := range 5 {
		for _, r := range []*replicatest.Replica{known, asked} {
			if err := complete(r, strings.Repeat(fmt.Sprint("word", i), 200)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.agree(t, 0, known)
	p.agree(t, 1, asked)
	var v state.View
	p.follow(t, &v, "complete", func(rs []state.Replica) bool {
		return len(rs) == 3 && rs[0].KV == state.KVComplete && rs[1].KV == state.KVComplete && rs[2].KV == state.KVNone
	})
	checkKVPages(t, p, len(p.blocks(t, 0)))

	asked.Faults(`{"restart": true}`)
	p.agree(t, 1, asked)
	if err := complete(asked, "once more, and long enough for a block or two of tokens, one would think"); err != nil {
		t.Fatal(err)
	}
	p.agree(t, 1, asked)
	write(t, file, asked.Addr+"\n")
	p.follow(t, &v, "gone", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].KV == state.KVComplete })
	p.agree(t, 1, asked)
}

func checkKVPages(t *testing.T, p *program, blocks int) {
	t.Helper()
	f := func(path string, status int, contains ...string) {
		t.Helper()
		code, body := p.get(t, path)
		if code != status {
			t.Errorf("%s: status %d", path, code)
		}
		for _, text := range contains {
			if !strings.Contains(body, text) {
				t.Errorf("%s: lacks %q in\n%.2000s", path, text, body)
			}
		}
	}
	f("/v1/blocks?pool=default&slot=r2", 200, `"blocks":[]`)
	f("/v1/blocks?pool=default&slot=r9", 404)
	f("/v1/blocks?pool=other&slot=r0", 404)
	f("/v1/blocks?pool=default&slot=0", 400, "slot: want r0")
	f("/v1/blocks?pool=default&slot=r70000", 400)
	f("/v1/pools", 200, `"block_size": 16`, fmt.Sprintf(`"blocks": %d`, blocks), `"partial": false`)
	f("/metrics", 200,
		fmt.Sprintf(`warmlane_control_kv_blocks{pool="default",slot="r0"} %d`, blocks),
		`warmlane_control_kv_events_total{type="removed"} 0`, `warmlane_control_kv_events_total{type="cleared"} 0`,
		`warmlane_control_kv_anomalies_total{kind="gap"} 0`, `warmlane_control_kv_anomalies_total{kind="over_capacity"} 0`,
		`warmlane_control_kv_sources_total{answer="none"} 1`, `warmlane_control_kv_sources_total{answer="failed"} 0`)
}

// The page is as closed as the others.
func TestBlocksPageNeedsTheToken(t *testing.T) {
	p := launch(t, "token: s3cret\npools: [{name: default, replicas: []}]")
	if code, _ := p.get(t, "/v1/blocks?pool=default&slot=r0"); code != http.StatusUnauthorized {
		t.Errorf("status %d without a token", code)
	}
	req, err := http.NewRequest(http.MethodGet, p.url+"/v1/blocks?pool=default&slot=r0", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer s3cret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d with the token", resp.StatusCode)
	}
}
