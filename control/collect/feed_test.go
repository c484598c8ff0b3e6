package collect

import (
	"encoding/binary"
	"fmt"
	"io"
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
	"github.com/warmlane/warmlane/filter/state"
)

// What two engines tell and what they really have come out the same: shared
// beginnings, adapters, salts, copies, blocks told again.
func TestIndexAgreesWithEngines(t *testing.T) {
	a, b := telling(t, node.Options{}), telling(t, node.Options{})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr, b.Addr)
	m.agree(t, "at first", a, b)
	system := prose("system", 200)
	for i := range 4 {
		ask(t, a, system+prose(fmt.Sprint("user", i), 50))
		ask(t, b, system+prose("other", 10*i))
	}
	m.agree(t, "shared beginnings", a, b)
	post(t, a, "/v1/load_lora_adapter", map[string]any{"lora_name": "lora-a", "lora_path": "/adapters/a"})
	ask(t, a, system, "model", "lora-a")
	ask(t, a, system, "cache_salt", "tenant-7")
	ask(t, a, system, "model", "lora-a", "cache_salt", "tenant-7")
	m.agree(t, "adapters and salts", a, b)
	ask(t, a, system+"and more", "vllm_xargs", map[string]any{"kv_cache_report_mode": "full"})
	m.agree(t, "told again", a, b)
	var both sync.WaitGroup
	for i := range 8 {
		both.Go(func() { ask(t, b, prose("same", 300)+fmt.Sprint(i%2)) })
	}
	both.Wait()
	m.agree(t, "copies", a, b)
	m.counts.add(func() {
		if len(m.counts.anomalies) > 0 {
			t.Errorf("anomalies %v", m.counts.anomalies)
		}
	})
}

// Blocks come and go while the cache is full.
func TestIndexAgreesAfterEviction(t *testing.T) {
	a := telling(t, node.Options{Engine: tiny})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr)
	for i := range 12 {
		ask(t, a, prose(fmt.Sprint("p", i%5), 300+40*(i%4)))
		if i%4 == 3 {
			m.agree(t, fmt.Sprint("after ", i), a)
		}
	}
	removed := 0
	m.counts.add(func() { removed = m.counts.events[kvevents.TypeRemoved] })
	if removed == 0 {
		t.Error("nothing was evicted")
	}
	ask(t, a, prose("last", 30))
	post(t, a, "/reset_prefix_cache", nil)
	ask(t, a, prose("after", 60)) // brings the clear with it
	m.agree(t, "cleared", a)
}

// Batches that got lost are asked for again.
func TestIndexAgreesAfterAGap(t *testing.T) {
	a := telling(t, node.Options{})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr)
	ask(t, a, prose("before", 100))
	m.agree(t, "before", a)
	a.Faults(`{"drop_batches": 2}`)
	for i := range 4 {
		ask(t, a, prose(fmt.Sprint("lost", i), 100))
	}
	m.agree(t, "after", a)
	if n := m.counts.anomaly(kvevents.Gap); n == 0 {
		t.Error("no gap was counted")
	}
}

// An engine that is started anew has nothing; session tags are of its life.
func TestIndexAgreesAfterARestart(t *testing.T) {
	a := telling(t, node.Options{})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr)
	post(t, a, "/v1/completions", map[string]any{"prompt": prose("tagged", 100), "max_tokens": 4}, "X-Session-ID", "wl1-00112233aabbccdd")
	m.wait(t, "tags", a.Addr, func(r state.Replica) bool { return r.Tags })
	m.agree(t, "before", a)
	before, _ := m.replica(a.Addr)
	a.Faults(`{"restart": true}`)
	ask(t, a, prose("anew", 50))
	m.agree(t, "after", a)
	m.wait(t, "another one", a.Addr, func(r state.Replica) bool { return r.Incarnation != before.Incarnation && !r.Tags })
	m.agree(t, "at last", a)
	a.Faults(`{"restart": true, "refuse_s": 0.3}`)
	second, _ := m.replica(a.Addr)
	m.wait(t, "back", a.Addr, func(r state.Replica) bool { return r.Incarnation != second.Incarnation && r.Health == state.Healthy })
	ask(t, a, prose("third", 50))
	m.agree(t, "after the third start", a)
}

// told is an engine whose pages and events a test makes.
type told struct {
	addr    string
	sources atomic.Pointer[string] // of /kv_event_sources; nil = 404
	metrics atomic.Pointer[string]
	asked   atomic.Int32
}

func newTold(t *testing.T) *told {
	t.Helper()
	e := &told{}
	mux := http.NewServeMux()
	page := func(p *atomic.Pointer[string]) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if text := p.Load(); text != nil {
				io.WriteString(w, *text)
				return
			}
			http.NotFound(w, r)
		}
	}
	mux.HandleFunc("/metrics", page(&e.metrics))
	mux.HandleFunc("/kv_event_sources", func(w http.ResponseWriter, r *http.Request) {
		e.asked.Add(1)
		page(&e.sources)(w, r)
	})
	e.addr = engineServer(t, mux)
	e.say("up 1\n")
	return e
}

func (e *told) say(metrics string)  { e.metrics.Store(&metrics) }
func (e *told) list(sources string) { e.sources.Store(&sources) }

// publish opens an event socket, and returns what /kv_event_sources says of it.
func publish(t *testing.T, replay bool) (p *replicaevents.Publisher, sources string) {
	t.Helper()
	o := replicaevents.Options{Endpoint: "tcp://127.0.0.1:0"}
	if replay {
		o.Replay = o.Endpoint
	}
	p, err := replicaevents.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	anywhere := func(endpoint string) string { return strings.Replace(endpoint, "127.0.0.1", "*", 1) }
	sources = fmt.Sprintf(`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":%q,"replay_endpoint":%q}}`,
		anywhere(p.Endpoint()), anywhere(p.ReplayEndpoint()))
	return p, sources
}

// one is an event that stores the first block of a prompt of its own.
func one(n uint64) sim.Event {
	e := sim.Event{Kind: sim.BlockStored, Root: true, BlockSize: 4, Hashes: make([]sim.Hash, 1), Extra: make([][]string, 1)}
	binary.BigEndian.PutUint64(e.Hashes[0][24:], n)
	e.Tokens = []sim.Token{sim.Token(n), sim.Token(n >> 32), 1, 2}
	return e
}

// A replica without events is asked now and then, one that failed to answer
// soon; where its events are follows the answers.
func TestDiscovery(t *testing.T) {
	e := newTold(t)
	events := DefaultEvents
	events.DiscoverEvery = 50 * time.Millisecond
	m := watching(t, events)
	m.list <- members(e.addr)
	m.wait(t, "none", e.addr, func(r state.Replica) bool { return r.Health == state.Healthy && r.KV == state.KVNone })
	holds := func(n int) func(state.Replica) bool {
		return func(r state.Replica) bool {
			kv, ok := m.collector.KV(r.Slot)
			return r.KV == state.KVComplete && ok && kv.Blocks == n
		}
	}
	first, where := publish(t, true)
	first.Publish(time.Now(), []sim.Event{one(1), one(2)})
	e.list(where)
	m.wait(t, "found", e.addr, holds(2))
	e.list("<html>")
	for asked := e.asked.Load(); e.asked.Load() < asked+3; time.Sleep(5 * time.Millisecond) {
	}
	first.Publish(time.Now(), []sim.Event{one(3)})
	m.wait(t, "kept", e.addr, holds(3))
	second, where := publish(t, true)
	second.Publish(time.Now(), []sim.Event{one(4)})
	e.list(where)
	m.wait(t, "moved", e.addr, holds(1))
	e.list("{}")
	m.wait(t, "gone", e.addr, func(r state.Replica) bool { return r.KV == state.KVNone })
	m.counts.add(func() {
		for _, a := range Answers {
			if m.counts.answers[a] == 0 {
				t.Errorf("%s was not counted", a)
			}
		}
	})
}

// Configured sources are used as they are; what they lack of replay sockets the
// replica is asked for.
func TestConfiguredSources(t *testing.T) {
	e := newTold(t)
	p, where := publish(t, true)
	p.Publish(time.Now(), []sim.Event{one(1)})
	e.list(where)
	m := watching(t, DefaultEvents)
	whole := kvevents.Source{Endpoint: p.Endpoint(), Replay: p.ReplayEndpoint()}
	complete := func(r state.Replica) bool { return r.KV == state.KVComplete }
	m.list <- []Member{{Address: e.addr, Feeds: []kvevents.Source{whole}}}
	m.wait(t, "whole", e.addr, complete)
	if e.asked.Load() > 0 {
		t.Error("asked, though all was known")
	}
	wrong := kvevents.Source{Endpoint: "tcp://127.0.0.1:1", Replay: "tcp://127.0.0.1:1"}
	m.list <- []Member{{Address: e.addr, Feeds: []kvevents.Source{wrong}}}
	m.wait(t, "wrong", e.addr, func(r state.Replica) bool { return r.KV == state.KVNone })
	m.list <- []Member{{Address: e.addr, Feeds: []kvevents.Source{{Endpoint: p.Endpoint()}}}}
	m.wait(t, "filled", e.addr, complete)
	if e.asked.Load() == 0 {
		t.Error("not asked for a replay socket")
	}
}

// A replica has what any of its data-parallel engines has, and each is followed
// on its own.
func TestDataParallelRanks(t *testing.T) {
	e := newTold(t)
	zero, first := publish(t, true)
	other, second := publish(t, true)
	e.list(strings.TrimSuffix(first, "}") + "," + strings.Replace(strings.TrimPrefix(second, "{"), `"0"`, `"1"`, 1))
	zero.Publish(time.Now(), []sim.Event{one(1), one(2)})
	other.Publish(time.Now(), []sim.Event{one(2), one(3)})
	m := watching(t, DefaultEvents)
	m.list <- members(e.addr)
	hashes := func(want ...uint64) func(state.Replica) bool {
		return func(r state.Replica) bool {
			list, _ := m.collector.Blocks("default", r.Slot)
			var got []uint64
			for _, b := range list {
				got = append(got, b.Hash)
			}
			return r.KV == state.KVComplete && slices.Equal(got, want)
		}
	}
	m.wait(t, "both", e.addr, hashes(1, 2, 3))
	other.Publish(time.Now(), []sim.Event{{Kind: sim.AllBlocksCleared}})
	m.wait(t, "one is empty", e.addr, hashes(1, 2))
}

// Doubts lead to one new beginning in half a minute.
func TestDoubt(t *testing.T) {
	a := telling(t, node.Options{})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr)
	ask(t, a, prose("doubted", 100))
	m.agree(t, "before", a)
	before, _ := m.collector.KV(0)
	for range 5 {
		m.collector.Doubt(0)
		m.collector.Doubt(77) // nobody's
		time.Sleep(20 * time.Millisecond)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if kv, _ := m.collector.KV(0); kv.Epoch > before.Epoch {
			break
		}
	}
	m.agree(t, "after", a)
	if kv, _ := m.collector.KV(0); kv.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d, was %d", kv.Epoch, before.Epoch)
	}
}

// Whoever goes takes its blocks along, and whoever comes has only its own,
// whatever address and slot it gets.
func TestReplicasWithEventsComeAndGo(t *testing.T) {
	a, b := telling(t, node.Options{}), telling(t, node.Options{})
	m := watching(t, DefaultEvents)
	m.list <- members(a.Addr)
	ask(t, a, prose("a", 100))
	ask(t, b, prose("b", 50))
	m.agree(t, "one", a)
	m.list <- members(b.Addr)
	m.agree(t, "the other", b)
	if _, ok := m.collector.KV(0); ok {
		t.Error("the one that has gone is still followed")
	}
	m.forgets(t, a.Addr, 0)
	for range 10 { // flaps
		m.list <- members(a.Addr, b.Addr)
		m.list <- members(b.Addr)
	}
	m.list <- members(a.Addr, b.Addr)
	m.agree(t, "both", a, b)
}

// An engine that sleeps has no cache, and does not say so by events.
func TestAsleepEngineHoldsNothing(t *testing.T) {
	const awake = "vllm:engine_sleep_state{sleep_state=\"awake\"} "
	e := newTold(t)
	e.say(awake + "1\n")
	p, where := publish(t, true)
	p.Publish(time.Now(), []sim.Event{one(1), one(2)})
	e.list(where)
	m := watching(t, DefaultEvents)
	m.list <- members(e.addr)
	holds := func(n int) func(state.Replica) bool {
		return func(r state.Replica) bool {
			kv, ok := m.collector.KV(r.Slot)
			return ok && kv.Blocks == n
		}
	}
	m.wait(t, "awake", e.addr, holds(2))
	e.say(awake + "0\n")
	m.wait(t, "asleep", e.addr, holds(0))
	e.say(awake + "1\n")
	m.wait(t, "awake again", e.addr, func(r state.Replica) bool { return r.Health == state.Healthy })
	time.Sleep(100 * time.Millisecond)
	p.Publish(time.Now(), []sim.Event{one(3)})
	m.wait(t, "new blocks", e.addr, holds(1))
}

// A flood of events holds up neither the scrapes of others nor what is
// published of them.
func TestFloodDoesNotDelayScrapes(t *testing.T) {
	e, calm := newTold(t), newTold(t)
	p, where := publish(t, true)
	e.list(where)
	m := watching(t, DefaultEvents)
	m.list <- members(e.addr, calm.addr)
	m.wait(t, "there", e.addr, func(r state.Replica) bool { return r.KV == state.KVComplete })
	m.blind.Store(true)
	quiet := m.loadTold(t, calm)
	stop, flooded := make(chan struct{}), make(chan int)
	go func() {
		n := uint64(0)
		for batch := make([]sim.Event, 0, 1000); ; batch = batch[:0] {
			for range 500 {
				n++
				batch = append(batch, one(n))
				if old := one(n - 20000); n > 20000 {
					batch = append(batch, sim.Event{Kind: sim.BlockRemoved, Hashes: old.Hashes})
				}
			}
			select {
			case <-stop:
				flooded <- int(n)
				return
			default:
				p.Publish(time.Now(), batch)
			}
		}
	}()
	busy := m.loadTold(t, calm)
	close(stop)
	t.Logf("%d blocks stored meanwhile; a load is told after %v, and %v when all is calm", <-flooded, busy, quiet)
	if busy > 10*quiet+time.Second {
		t.Errorf("a load is told after %v, and %v when all is calm", busy, quiet)
	}
}

// loadTold returns how long it takes until a load is told: the median of some.
func (m *mirror) loadTold(t *testing.T, e *told) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 7 {
		begun := time.Now()
		n := begun.UnixMicro() % 1e6
		e.say(fmt.Sprintf("vllm:num_requests_running %d\n", n))
		m.wait(t, "load", e.addr, func(r state.Replica) bool { return r.Load.Running == int32(n) })
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// Whoever holds the lock of the index for long holds up no news of replicas.
func TestFoldDoesNotWaitForTheIndex(t *testing.T) {
	e := newTold(t)
	_, where := publish(t, true)
	e.list(where)
	m := watching(t, DefaultEvents)
	list := members(e.addr)
	m.list <- list
	m.wait(t, "there", e.addr, func(r state.Replica) bool { return r.KV == state.KVComplete })
	lock := &m.collector.fold.pools["default"].shelf.mu
	lock.Lock()
	defer lock.Unlock()
	list[0].Draining = true
	m.list <- list
	m.wait(t, "draining", e.addr, func(r state.Replica) bool { return r.Health == state.Draining })
	e.say("process_start_time_seconds 5\n") // another life
	m.loadTold(t, e)
	m.collector.Doubt(0)
	m.loadTold(t, e)
}

// What is stored is published soon, also when nothing else happens.
func TestEventsArePublishedSoon(t *testing.T) {
	e := newTold(t)
	p, where := publish(t, true)
	e.list(where)
	m := watching(t, DefaultEvents)
	m.list <- members(e.addr)
	m.wait(t, "there", e.addr, func(r state.Replica) bool { return r.KV == state.KVComplete })
	var took []time.Duration
	for n := range uint64(40) {
		m.mu.Lock()
		before := m.records
		m.mu.Unlock()
		begun := time.Now()
		p.Publish(begun, []sim.Event{one(n)})
		for after := before; after == before; {
			time.Sleep(time.Millisecond)
			m.mu.Lock()
			after = m.records
			m.mu.Unlock()
			if time.Since(begun) > 10*time.Second {
				t.Fatal("not published")
			}
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("published after %v, at the latest %v", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 100*time.Millisecond {
		t.Errorf("published after %v", took[len(took)/2])
	}
}
