package collect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	sim "github.com/warmlane/warmlane/examples/replica/engine"
	replicaevents "github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// mirror is a collector with KV events and what a filter makes of all it
// published.
type mirror struct {
	collector *Collector
	counts    counts
	list      manual
	blind     atomic.Bool // does not look at records

	mu      sync.Mutex
	pools   []state.Pool
	records int // that were published
	writer  *kvindex.Writer
	reader  *kvindex.Reader
	known   map[string][][]uint64 // by address: all chains of keys that were ever cached there
}

// counts counts what a collector reports.
type counts struct {
	mu        sync.Mutex
	anomalies map[kvevents.Anomaly]int
	events    map[kvevents.Type]int
	answers   map[Answer]int
	scrapes   int
}

func (c *counts) Anomaly(a kvevents.Anomaly, n int) { c.add(func() { c.anomalies[a] += n }) }
func (c *counts) Events(t kvevents.Type, n int)     { c.add(func() { c.events[t] += n }) }
func (c *counts) answer(a Answer)                   { c.add(func() { c.answers[a]++ }) }
func (c *counts) scrape(Outcome)                    { c.add(func() { c.scrapes++ }) }

func (c *counts) add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *counts) anomaly(a kvevents.Anomaly) (n int) {
	c.add(func() { n = c.anomalies[a] })
	return n
}

// watching runs a collector over one pool whose list the test sends.
func watching(t *testing.T, events Events) *mirror {
	t.Helper()
	store := shared.NewMem().View()
	m := &mirror{
		list: make(manual), known: map[string][][]uint64{},
		counts: counts{anomalies: map[kvevents.Anomaly]int{}, events: map[kvevents.Type]int{}, answers: map[Answer]int{}},
		writer: kvindex.NewWriter(store, kvindex.Options{}), reader: kvindex.NewReader(store, kvindex.Options{}),
	}
	if err := m.writer.Begin(); err != nil {
		t.Fatal(err)
	}
	m.collector = New(Config{
		Pools:    []Pool{{Name: "default", Sources: []Source{m.list}, Scrape: quick, Events: &events}},
		Coalesce: 20 * time.Millisecond, LoadEvery: 100 * time.Millisecond, RefreshEvery: time.Second, FirstWithin: 3 * time.Second,
		Log: slog.New(slog.DiscardHandler), Publish: func(pools []state.Pool, patches []state.Patch) { m.publish(t, pools, patches) },
		Observe: m.counts.scrape, Counters: &m.counts, Answered: m.counts.answer,
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.collector.Run(t.Context())
	}()
	t.Cleanup(func() { <-done })
	return m
}

// publish takes in a generation, as a filter does.
func (m *mirror) publish(t *testing.T, pools []state.Pool, patches []state.Patch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = pools
	if m.blind.Load() {
		return
	}
	for _, p := range patches {
		seen := map[uint64]bool{}
		for _, r := range p.Records {
			if seen[r.ID] || p.Pool != "default" {
				t.Errorf("record %x of pool %s is there twice", r.ID, p.Pool)
			}
			seen[r.ID] = true
			m.records++
			m.writer.Queue(r.ID, r.Payload)
		}
	}
	for done := false; !done; {
		var err error
		if done, err = m.writer.Apply(1 << 20); err != nil {
			t.Error(err)
			return
		}
	}
	if err := m.writer.Complete(); err != nil {
		t.Error(err)
	}
}

// replica returns what was last told of an address.
func (m *mirror) replica(address string) (state.Replica, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools {
		for _, r := range p.Replicas {
			if r.Address == address {
				return r, true
			}
		}
	}
	return state.Replica{}, false
}

// agrees says in what the index differs from what a replica really has.
func (m *mirror) agrees(r *replicatest.Replica) error {
	cache := r.Blocks()
	now, ok := m.replica(r.Addr)
	if !ok {
		return fmt.Errorf("%s is not told of", r.Addr)
	}
	kv, ok := m.collector.KV(now.Slot)
	if !ok || cache.Unsent > 0 || kv.LastSeq != int64(cache.NextSeq)-1 {
		return fmt.Errorf("known %t, last %d, of %d with %d unsent", ok, kv.LastSeq, cache.NextSeq, cache.Unsent)
	}
	if now.KV != state.KVComplete {
		return fmt.Errorf("told to be %v", now.KV)
	}
	held, _ := m.collector.Blocks("default", now.Slot)
	want := make([]Block, len(cache.Blocks))
	for i, b := range cache.Blocks {
		want[i] = Block{Hash: b.Hash, Copies: b.Copies}
	}
	slices.SortFunc(want, func(a, b Block) int { return cmp.Compare(a.Hash, b.Hash) })
	if !slices.Equal(held, want) {
		return fmt.Errorf("it has %d blocks, the index %d: %s", len(want), len(held), firstDifference(want, held))
	}
	return m.agreesByKeys(r.Addr, now.Slot, &cache)
}

func firstDifference(a, b []Block) string {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("at %d, want %+v", i, a[i])
		}
	}
	return "more than it has"
}

// agreesByKeys asks the published index for every chain of blocks that the
// replica has or had.
func (m *mirror) agreesByKeys(address string, slot uint16, cache *replicatest.Cache) error {
	chains := chainsOf(cache)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[address] = append(m.known[address], chains...)
	resident := map[uint64]bool{}
	for _, c := range chains {
		for _, key := range c {
			resident[key] = true
		}
	}
	if !m.reader.Begin(time.Now().UnixMilli()) {
		return fmt.Errorf("no index")
	}
	runs := make([]kvindex.Run, slot+1)
	for _, c := range m.known[address] {
		want := uint32(0)
		for int(want) < len(c) && resident[c[want]] {
			want++
		}
		if err := m.reader.Lookup(c, runs); err != nil {
			return err
		}
		if got := runs[slot]; got.GPU != want || got.Any != want {
			return fmt.Errorf("of a prompt of %d blocks it has %d, the index says %+v", len(c), want, got)
		}
	}
	return nil
}

// chainsOf returns the keys of every cached block and of those before it, for
// blocks that have all of these.
func chainsOf(cache *replicatest.Cache) (chains [][]uint64) {
	byHash := map[uint64]*replicatest.Block{}
	for i := range cache.Blocks {
		byHash[cache.Blocks[i].Hash] = &cache.Blocks[i]
	}
	for i := range cache.Blocks {
		if c := chainTo(&cache.Blocks[i], byHash); c != nil {
			chains = append(chains, c)
		}
	}
	return chains
}

func chainTo(b *replicatest.Block, byHash map[uint64]*replicatest.Block) []uint64 {
	if b == nil {
		return nil
	}
	if b.Parent == nil {
		var adapter, salt string
		for _, extra := range b.Extra {
			if strings.HasPrefix(extra, "lora-") {
				adapter = extra
			} else {
				salt = extra
			}
		}
		root := kvindex.Root("default", []byte(adapter), saltHash(salt))
		return []uint64{kvindex.Next(root, b.Tokens)}
	}
	before := chainTo(byHash[*b.Parent], byHash)
	if before == nil {
		return nil
	}
	return append(slices.Clone(before), kvindex.Next(before[len(before)-1], b.Tokens))
}

func saltHash(salt string) uint64 {
	if salt == "" {
		return 0
	}
	return openai.SaltHash(salt)
}

// agree waits until the index agrees with all the replicas.
func (m *mirror) agree(t *testing.T, what string, replicas ...*replicatest.Replica) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		err = nil
		for _, r := range replicas {
			if err == nil {
				err = m.agrees(r)
			}
		}
		if err == nil {
			return
		}
	}
	m.counts.add(func() { t.Fatalf("%s: %v; anomalies %v", what, err, m.counts.anomalies) })
}

// forgets waits until nothing is told any more of what was cached at an address.
func (m *mirror) forgets(t *testing.T, address string, slot uint16) {
	t.Helper()
	holds := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		runs := make([]kvindex.Run, slot+1)
		for _, c := range m.known[address] {
			if !m.reader.Begin(time.Now().UnixMilli()) || m.reader.Lookup(c, runs) != nil || runs[slot] != (kvindex.Run{}) {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(30 * time.Second); holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s, which has gone, still holds blocks", address)
		}
	}
}

// wait waits until what was last told of an address is as ok says.
func (m *mirror) wait(t *testing.T, what, address string, ok func(state.Replica) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if r, there := m.replica(address); there && ok(r) {
			return
		}
	}
	r, there := m.replica(address)
	t.Fatalf("%s: not seen; %t %+v", what, there, r)
}

// telling starts a replica that publishes KV events.
func telling(t *testing.T, o node.Options) *replicatest.Replica {
	t.Helper()
	if o.Events == nil {
		o.Events = &replicaevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"}
	}
	o.Speed = 50
	return replicatest.Start(t, o)
}

// post sends a request of a JSON object to a replica.
func post(t *testing.T, r *replicatest.Replica, path string, body map[string]any, headers ...string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, r.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, resp.Status, answer)
	}
}

// ask sends a prompt.
func ask(t *testing.T, r *replicatest.Replica, prompt string, more ...any) {
	t.Helper()
	body := map[string]any{"prompt": prompt, "max_tokens": 20}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	post(t, r, "/v1/completions", body)
}

// prose is a text of n words that depends on seed.
func prose(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", seed, i)
	}
	return b.String()
}

// tiny is an engine whose cache is soon full.
var tiny = sim.Config{Blocks: 100}
