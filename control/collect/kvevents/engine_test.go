package kvevents

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
)

// cache is a Sink that counts the copies of each block.
type cache struct {
	recorder
	mu     sync.Mutex
	copies map[Hash]int
}

func (c *cache) Batch(src int, seq uint64, b *Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Events {
		e := &b.Events[i]
		for _, h := range e.Stored.Hashes {
			c.copies[h]++
		}
		for _, h := range e.Removed.Hashes {
			if c.copies[h]--; c.copies[h] == 0 {
				delete(c.copies, h)
			}
		}
		if e.Type == TypeCleared {
			clear(c.copies)
		}
	}
}

func (c *cache) Reset(src int, why Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.copies)
	c.recorder.Reset(src, why)
}

// agrees waits until what was told is what is really cached.
func (c *cache) agrees(t *testing.T, r *replicatest.Replica) {
	t.Helper()
	var got, want map[Hash]int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		want = map[Hash]int{}
		for _, b := range r.Blocks().Blocks {
			want[b.Hash] = b.Copies
		}
		c.mu.Lock()
		got = maps.Clone(c.copies)
		c.mu.Unlock()
		if maps.Equal(got, want) {
			return
		}
	}
	t.Fatalf("%d blocks told, %d cached:\n%v\n%v", len(got), len(want), got, want)
}

// TestEngine: what a simulated engine tells is what it has, whatever gets lost.
func TestEngine(t *testing.T) {
	for _, shape := range []kvevents.Shape{{}, {ArrayEvents: true}} {
		r := replicatest.Start(t, node.Options{Speed: 200, Engine: engine.Config{Blocks: 60},
			Events: &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Shape: shape}})
		c := &cache{copies: map[Hash]int{}}
		f, err := New(0, Source{Endpoint: r.Events, Replay: r.Replay}, c, c, quick)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, r, 0)
		var run sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		run.Go(func() { f.Run(ctx) })
		c.agrees(t, r)
		for i := range 10 {
			ask(t, r, i%7)
			if i%3 == 0 {
				r.Faults(`{"drop_batches":2}`)
			}
		}
		c.agrees(t, r)
		r.Faults(`{"restart":true}`)
		ask(t, r, 3)
		c.agrees(t, r)
		c.has(t, "restart seen", func() bool { return c.anomalies[Restart] == 1 })
		stop()
		run.Wait()
		if c.events[TypeStored] == 0 || c.events[TypeRemoved] == 0 {
			t.Errorf("events %v", c.events)
		}
	}
}

// ask has the engine answer one of many prompts, some of which begin alike.
func ask(t *testing.T, r *replicatest.Replica, n int) {
	t.Helper()
	prompt := strings.Repeat("All prompts begin like this one. ", n%3) + strings.Repeat(fmt.Sprintf("Then comes number %d. ", n), 20)
	resp, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":%q,"max_tokens":20}`, prompt)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, body)
	}
}
