package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
)

// quick are bounds that let a test see what takes minutes in earnest.
var quick = Options{ReplyTimeout: 3 * time.Second, Quiet: 300 * time.Millisecond, RetryMin: 10 * time.Millisecond, RetryMax: 200 * time.Millisecond}

// recorder is a Sink and Counters that keep everything.
type recorder struct {
	delay time.Duration // of each batch

	mu        sync.Mutex
	seqs      []uint64 // since the last Reset
	hashes    []Hash   // first of each of these batches
	resets    []Reason
	partial   []bool // changes
	anomalies map[Anomaly]int
	events    [Types]int
}

func (r *recorder) Batch(_ int, seq uint64, b *Batch) {
	time.Sleep(r.delay)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs = append(r.seqs, seq)
	if len(b.Events) > 0 && len(b.Events[0].Removed.Hashes) > 0 {
		r.hashes = append(r.hashes, b.Events[0].Removed.Hashes[0])
	}
}

func (r *recorder) Reset(_ int, why Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seqs, r.hashes, r.partial, r.resets = nil, nil, nil, append(r.resets, why)
}

func (r *recorder) Partial(_ int, partial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, partial)
}

func (r *recorder) Anomaly(a Anomaly, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.anomalies == nil {
		r.anomalies = map[Anomaly]int{}
	}
	r.anomalies[a] += n
}

func (r *recorder) Events(t Type, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[t] += n
}

// has waits until f is true of the recorder.
func (r *recorder) has(t *testing.T, what string, f func() bool) {
	t.Helper()
	var last string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		r.mu.Lock()
		ok := f()
		last = fmt.Sprintf("%d batches %v, resets %v, partial %v, anomalies %v", len(r.seqs), r.seqs[max(0, len(r.seqs)-10):], r.resets, r.partial, r.anomalies)
		r.mu.Unlock()
		if ok {
			return
		}
	}
	t.Fatalf("never %s: %s", what, last)
}

// told waits for exactly the batches from one number to before another.
func (r *recorder) told(t *testing.T, from, to uint64) {
	t.Helper()
	r.has(t, fmt.Sprintf("batches %d to %d", from, to), func() bool { return len(r.seqs) > 0 && r.seqs[len(r.seqs)-1] == to-1 })
	r.mu.Lock()
	defer r.mu.Unlock()
	var want []uint64
	for seq := from; seq < to; seq++ {
		want = append(want, seq)
	}
	if !slices.Equal(r.seqs, want) {
		t.Fatalf("batches %v, want %d to %d", r.seqs, from, to)
	}
}

func (r *recorder) whole() bool {
	return len(r.partial) > 0 && !r.partial[len(r.partial)-1]
}

// counted checks all anomalies but for those that depend on time.
func (r *recorder) counted(t *testing.T, want map[Anomaly]int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range Anomalies {
		if r.anomalies[a] != want[a] {
			t.Errorf("%s: %d, want %d (all: %v)", a, r.anomalies[a], want[a], r.anomalies)
		}
	}
}

// start follows a source until the test ends.
func start(t *testing.T, s Source, r *recorder, o Options) *Follower {
	t.Helper()
	f, err := New(7, s, r, r, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

func listen(t *testing.T, o kvevents.Options) *kvevents.Publisher {
	t.Helper()
	if o.Endpoint == "" {
		o.Endpoint, o.Replay = "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	}
	p, err := kvevents.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func source(p *kvevents.Publisher) Source {
	return Source{Endpoint: p.Endpoint(), Replay: p.ReplayEndpoint()}
}

// publish sends batches, each with the hash of its number plus mark.
func publish(p *kvevents.Publisher, n int, mark byte) {
	for range n {
		seq := p.Next()
		p.Publish(time.Unix(int64(seq), int64(mark)), []engine.Event{{Kind: engine.BlockRemoved, Hashes: []engine.Hash{{30: byte(seq), 31: mark}}}})
	}
}

func connected(t *testing.T, f *Follower, r *recorder) {
	t.Helper()
	r.has(t, "connected and caught up", func() bool { return f.Status().Connected && r.whole() })
}

// TestLateSubscription: what was published before is had from the replay, what comes
// during and after it from the socket, nothing twice.
func TestLateSubscription(t *testing.T) {
	for _, old := range []bool{false, true} {
		p, r := listen(t, kvevents.Options{OldReplay: old, Topic: "kv@a@m"}), &recorder{}
		publish(p, 500, 1)
		f := start(t, source(p), r, quick)
		publish(p, 500, 1)
		r.told(t, 0, 1000)
		connected(t, f, r)
		publish(p, 10, 1)
		r.told(t, 0, 1010)
		r.has(t, "without overrun", func() bool { return r.whole() && len(r.resets) == 0 && r.events[TypeRemoved] == 1010 })
		if s := f.Status(); s.Last != 1009 || !s.Seen || s.Partial || s.Err != nil {
			t.Errorf("status %+v", s)
		}
	}
}

// TestGap: batches lost on the way are had from the replay, in order and once.
func TestGap(t *testing.T) {
	p, r := listen(t, kvevents.Options{}), &recorder{}
	o := quick
	o.Quiet = time.Hour
	f := start(t, source(p), r, o)
	connected(t, f, r)
	settled(t, p, r)
	n := p.Next()
	p.Drop(3)
	publish(p, 4, 1)
	r.told(t, 0, n+4)
	r.counted(t, map[Anomaly]int{Gap: 1})
	if s := f.Status(); s.Partial {
		t.Error("partial after a gap that was filled")
	}
}

// settled publishes until one comes over the live socket: a publisher may not know
// of its subscriber yet.
func settled(t *testing.T, p *kvevents.Publisher, r *recorder) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		publish(p, 1, 1)
		r.mu.Lock()
		n := len(r.seqs)
		r.mu.Unlock()
		if n > 0 {
			r.told(t, 0, p.Next())
			r.mu.Lock()
			r.anomalies = nil
			r.mu.Unlock()
			return
		}
	}
	t.Fatal("nothing comes")
}

func TestGapWithoutReplay(t *testing.T) {
	p, r := publishing(t), &recorder{}
	f := start(t, Source{Endpoint: p.endpoint}, r, quick)
	c := p.subscriber(t)
	c.publish(t, 0, 1)
	r.told(t, 0, 2)
	r.has(t, "whole", r.whole)
	c.publish(t, 5)
	r.has(t, "told the last", func() bool { return slices.Equal(r.seqs, []uint64{0, 1, 5}) })
	r.has(t, "partial", func() bool { return slices.Equal(r.partial, []bool{false, true}) })
	r.counted(t, map[Anomaly]int{Gap: 1})
	if err := c.send(nil, number8(6), pack(t, batch(list{"AllBlocksCleared"}))); err != nil {
		t.Fatal(err)
	}
	r.has(t, "whole again", r.whole)
	if s := f.Status(); s.Partial || s.Last != 6 {
		t.Errorf("status %+v", s)
	}
}

// TestBeginningMissed: without a replay nothing tells what was before the first message.
func TestBeginningMissed(t *testing.T) {
	p, r := publishing(t), &recorder{}
	f := start(t, Source{Endpoint: p.endpoint}, r, quick)
	p.subscriber(t).publish(t, 3, 4)
	r.told(t, 3, 5)
	r.counted(t, nil)
	if s := f.Status(); !s.Partial || len(r.partial) != 0 {
		t.Errorf("status %+v, partial %v", s, r.partial)
	}
}

// TestTailLost: a lost batch with none after it is found when all is quiet.
func TestTailLost(t *testing.T) {
	p, r := listen(t, kvevents.Options{}), &recorder{}
	f := start(t, source(p), r, quick)
	connected(t, f, r)
	settled(t, p, r)
	p.Drop(1)
	publish(p, 1, 1)
	r.told(t, 0, p.Next())
	r.counted(t, nil)
}

// TestRestart: an engine that starts anew at the same address, with fewer, as many
// or more batches than before.
func TestRestart(t *testing.T) {
	for _, n := range []int{0, 3, 10, 11, 40} {
		p, r := listen(t, kvevents.Options{}), &recorder{}
		publish(p, 10, 1)
		f := start(t, source(p), r, quick)
		r.told(t, 0, 10)
		o := p.Options()
		p.Close()
		r.has(t, "disconnected", func() bool { return !f.Status().Connected })
		again := listen(t, o)
		publish(again, n, 2)
		r.has(t, "reset", func() bool { return slices.Equal(r.resets, []Reason{Restarted}) })
		publish(again, 1, 2)
		r.told(t, 0, uint64(n+1))
		r.has(t, "whole", r.whole)
		r.counted(t, map[Anomaly]int{Restart: 1, Gap: r.anomalies[Gap], ReplayFailed: r.anomalies[ReplayFailed]})
		if slices.ContainsFunc(r.hashes, func(h Hash) bool { return h&0xff != 2 }) {
			t.Errorf("%d: batches of the old engine after the reset: %x", n, r.hashes)
		}
	}
}

// TestRestartWithoutReplay: only a number that falls shows it.
func TestRestartWithoutReplay(t *testing.T) {
	p, r := publishing(t), &recorder{}
	start(t, Source{Endpoint: p.endpoint}, r, quick)
	c := p.subscriber(t)
	c.publish(t, 0, 1, 2, 3, 4)
	r.told(t, 0, 5)
	_ = c.Conn.Close()
	c = p.subscriber(t)
	c.publish(t, 5, 6) // the same engine, as far as one can tell
	r.told(t, 0, 7)
	_ = c.Conn.Close()
	c = p.subscriber(t)
	c.publish(t, 0, 1)
	r.told(t, 0, 2)
	c.publish(t, 1) // falls within a connection
	r.has(t, "second reset", func() bool {
		return slices.Equal(r.resets, []Reason{Restarted, Restarted}) && slices.Equal(r.seqs, []uint64{1})
	})
	r.counted(t, map[Anomaly]int{Restart: 2})
}

// TestReconnect: the connection breaks, the engine does not.
func TestReconnect(t *testing.T) {
	p, r := listen(t, kvevents.Options{}), &recorder{}
	publish(p, 10, 1)
	wire := relay(t, p.Endpoint())
	f := start(t, Source{Endpoint: wire.endpoint(), Replay: p.ReplayEndpoint()}, r, quick)
	r.told(t, 0, 10)
	wire.cut()
	publish(p, 10, 1)
	r.told(t, 0, 20)
	r.has(t, "connected", func() bool { return f.Status().Connected })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.resets) != 0 || !r.whole() || r.anomalies[Restart] != 0 {
		t.Errorf("resets %v, partial %v, anomalies %v", r.resets, r.partial, r.anomalies)
	}
}

// TestBeginningForgotten: the replay begins later than asked.
func TestBeginningForgotten(t *testing.T) {
	p, r := listen(t, kvevents.Options{KeptSteps: 4}), &recorder{}
	publish(p, 10, 1)
	f := start(t, source(p), r, quick)
	r.told(t, 6, 10)
	if !f.Status().Partial {
		t.Error("not partial")
	}
	r.counted(t, map[Anomaly]int{ReplayIncomplete: 1})
	p.Publish(time.Now(), []engine.Event{{Kind: engine.AllBlocksCleared}})
	r.told(t, 6, 11)
	r.has(t, "whole", r.whole)
}

func TestResync(t *testing.T) {
	p, r := listen(t, kvevents.Options{}), &recorder{}
	publish(p, 10, 1)
	f := start(t, source(p), r, quick)
	r.told(t, 0, 10)
	for range 3 {
		f.Resync()
	}
	r.has(t, "reset", func() bool { return len(r.resets) > 0 && r.whole() && len(r.seqs) == 10 })
	publish(p, 2, 1)
	r.told(t, 0, 12)
	if r.resets[0] != Asked || len(r.resets) > 3 {
		t.Errorf("resets %v", r.resets)
	}
	r.counted(t, map[Anomaly]int{Gap: r.anomalies[Gap]})
}

func TestTopic(t *testing.T) {
	p, r := listen(t, kvevents.Options{Topic: "kv@b@m"}), &recorder{}
	publish(p, 3, 1)
	s := source(p)
	s.Topic = "kv@a@m"
	start(t, s, r, quick)
	r.has(t, "unknown topic", func() bool { return r.anomalies[UnknownTopic] == 3 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seqs) != 0 {
		t.Errorf("batches %v of another topic", r.seqs)
	}
}

// TestFlood: more than a slow sink can take is dropped at the queue and had from the
// replay later; nothing is missing or twice in the end.
func TestFlood(t *testing.T) {
	p, r := listen(t, kvevents.Options{KeptSteps: 100000}), &recorder{delay: 20 * time.Microsecond}
	o := quick
	o.QueueMessages, o.ReplyTimeout = 64, 5*time.Second
	f := start(t, source(p), r, o)
	connected(t, f, r)
	settled(t, p, r)
	publish(p, 5000, 1)
	r.told(t, 0, p.Next())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.anomalies[Overrun] == 0 || r.anomalies[Gap] == 0 || len(r.resets) != 0 || !r.whole() {
		t.Errorf("anomalies %v, resets %v, partial %v", r.anomalies, r.resets, r.partial)
	}
}

func TestQueueBytes(t *testing.T) {
	r := &recorder{}
	l := &live{queue: make(chan *message, 10), spare: make(chan *message, 1), most: 100, counters: r}
	for range 4 {
		l.put(&message{data: make([]byte, 40)})
	}
	if len(l.queue) != 2 || r.anomalies[Overrun] != 2 {
		t.Errorf("%d queued, %v", len(l.queue), r.anomalies)
	}
	l.release(<-l.queue)
	if l.put(&message{data: make([]byte, 60)}); len(l.queue) != 2 || l.waiting.Load() != 100 {
		t.Errorf("%d queued, %d bytes", len(l.queue), l.waiting.Load())
	}
}

// router is a replay socket whose answers a test writes.
func router(t *testing.T, answer func(n int, from uint64, reply func(frames ...[]byte))) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := zmq4.NewRouter(ctx, zmq4.WithLogger(log.New(io.Discard, "", 0)))
	if err := s.Listen("tcp://127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			m, err := s.Recv()
			if err != nil {
				return
			}
			answer(n, binary.BigEndian.Uint64(m.Frames[2]), func(frames ...[]byte) {
				_ = s.SendMulti(zmq4.NewMsgFrom(append([][]byte{m.Frames[0], {}}, frames...)...))
			})
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = s.Close()
		<-done
	})
	return "tcp://" + s.Addr().String()
}

func number8(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// body is the payload of a batch of a test's replay, the same each time.
func body(t testing.TB, seq uint64) []byte {
	return pack(t, list{float64(seq), list{list{"BlockRemoved", list{seq}, "GPU"}}, 0})
}

// scripted follows a publisher of the test's, with a replay of the test's.
func scripted(t *testing.T, o Options, answer func(n int, from uint64, reply func(frames ...[]byte))) (*Follower, *recorder, *publisher) {
	t.Helper()
	p, r := publishing(t), &recorder{}
	return start(t, Source{Endpoint: p.endpoint, Replay: router(t, answer)}, r, o), r, p
}

// hasty is quick, with replies that are late after less.
func hasty() Options {
	o := quick
	o.ReplyTimeout = 300 * time.Millisecond
	return o
}

// TestReplayWithHoles: a ROUTER drops replies when its peer is slow, even the end mark.
func TestReplayWithHoles(t *testing.T) {
	_, r, _ := scripted(t, hasty(), func(n int, from uint64, reply func(frames ...[]byte)) {
		for seq := from; seq < 30; seq++ {
			if n < 3 && seq == uint64(5*(n+1)) { // the first three answers lose one
				continue
			}
			reply(nil, number8(seq), body(t, seq))
		}
		if n > 3 {
			reply(nil, number8(endSeq), nil)
		}
	})
	r.told(t, 0, 30)
	r.has(t, "whole", r.whole)
	r.counted(t, map[Anomaly]int{ReplayFailed: r.anomalies[ReplayFailed]})
}

// TestHoleThatStays: a number the engine itself left out.
func TestHoleThatStays(t *testing.T) {
	f, r, _ := scripted(t, quick, func(n int, from uint64, reply func(frames ...[]byte)) {
		for seq := from; seq < 10; seq++ {
			if seq != 4 {
				reply(nil, number8(seq), body(t, seq))
			}
		}
		reply(nil, number8(endSeq), nil)
	})
	r.has(t, "told the rest", func() bool { return slices.Equal(r.seqs, []uint64{0, 1, 2, 3, 5, 6, 7, 8, 9}) })
	r.counted(t, map[Anomaly]int{ReplayIncomplete: 1})
	if !f.Status().Partial {
		t.Error("not partial")
	}
}

// TestHungReplay: a replay that does not answer costs its deadline, not the live
// events; when it answers at last, what was missed is had from it.
func TestHungReplay(t *testing.T) {
	a := &replays{hung: true, upTo: 60}
	f, r, p := scripted(t, hasty(), a.answer(t))
	r.has(t, "replay failed", func() bool { return r.anomalies[ReplayFailed] > 0 })
	p.subscriber(t).publish(t, 50, 51, 52)
	r.has(t, "told live batches", func() bool { return slices.Equal(r.seqs, []uint64{50, 51, 52}) })
	if !f.Status().Partial {
		t.Error("not partial")
	}
	a.set(false, 0, 60)
	r.has(t, "whole", func() bool {
		return r.whole() && len(r.seqs) == 60 && r.seqs[0] == 0 && slices.Equal(r.resets, []Reason{Lost})
	})
}

// replays is what a replay socket holds; it can hang.
type replays struct {
	mu    sync.Mutex
	hung  bool
	floor uint64 // what is before is forgotten
	upTo  uint64
}

func (a *replays) set(hung bool, floor, upTo uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hung, a.floor, a.upTo = hung, floor, upTo
}

func (a *replays) answer(t *testing.T) func(n int, from uint64, reply func(frames ...[]byte)) {
	return func(_ int, from uint64, reply func(frames ...[]byte)) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.hung {
			return
		}
		for seq := max(from, a.floor); seq < a.upTo; seq++ {
			reply(nil, number8(seq), body(t, seq))
		}
		reply(nil, number8(endSeq), nil)
	}
}

// TestReconnectWhileHung: the connection breaks and the replay does not answer.
func TestReconnectWhileHung(t *testing.T) {
	begin := func() (*replays, *Follower, *recorder, *publisher, *conn) {
		a := &replays{upTo: 10}
		f, r, p := scripted(t, hasty(), a.answer(t))
		c := p.subscriber(t)
		r.told(t, 0, 10)
		r.has(t, "whole", r.whole)
		a.set(true, 0, 10)
		_ = c.Conn.Close()
		c = p.subscriber(t)
		r.has(t, "failed and partial", func() bool { return r.anomalies[ReplayFailed] > 0 && !r.whole() })
		return a, f, r, p, c
	}
	t.Run("it goes on", func(t *testing.T) {
		_, _, r, _, c := begin()
		c.publish(t, 10, 11)
		r.told(t, 0, 12)
		r.has(t, "whole", func() bool { return r.whole() && len(r.resets) == 0 })
	})
	t.Run("replay comes back", func(t *testing.T) {
		a, _, r, _, _ := begin()
		a.set(false, 0, 13)
		r.told(t, 0, 13)
		r.has(t, "whole", func() bool { return r.whole() && len(r.resets) == 0 })
	})
	t.Run("an empty engine", func(t *testing.T) {
		a, _, r, _, c := begin()
		a.set(false, 0, 0)
		r.has(t, "reset", func() bool { return slices.Equal(r.resets, []Reason{Restarted}) && r.whole() })
		c.publish(t, 0)
		r.told(t, 0, 1)
	})
	t.Run("a gap", func(t *testing.T) {
		a, _, r, _, c := begin()
		c.publish(t, 20)
		r.has(t, "told", func() bool { return r.seqs[len(r.seqs)-1] == 20 && !r.whole() })
		a.set(false, 0, 21)
		r.has(t, "rebuilt", func() bool { return slices.Equal(r.resets, []Reason{Lost}) && r.whole() && len(r.seqs) == 21 })
	})
	t.Run("a number that falls", func(t *testing.T) {
		a, _, r, _, c := begin()
		c.publish(t, 2)
		r.has(t, "reset", func() bool { return slices.Equal(r.resets, []Reason{Restarted}) && slices.Equal(r.seqs, []uint64{2}) })
		a.set(false, 0, 3)
		r.has(t, "rebuilt", func() bool { return r.whole() && len(r.seqs) == 3 })
	})
}

// TestShortReplay: a replay that reaches back less than what is known does not replace it.
func TestShortReplay(t *testing.T) {
	a := &replays{floor: 5, upTo: 13}
	f, r, p := scripted(t, hasty(), a.answer(t))
	c := p.subscriber(t)
	r.told(t, 5, 13)
	a.set(true, 5, 13)
	r.has(t, "failed", func() bool { return r.anomalies[ReplayFailed] > 0 })
	c.publish(t, 20)
	r.has(t, "told", func() bool { return r.seqs[len(r.seqs)-1] == 20 })
	a.set(false, 7, 21)
	r.has(t, "kept", func() bool { return r.anomalies[ReplayIncomplete] == 2 })
	if r.mu.Lock(); len(r.resets) != 0 || len(r.seqs) != 9 || !f.Status().Partial {
		t.Errorf("resets %v, batches %v", r.resets, r.seqs)
	}
	r.mu.Unlock()
}

// TestEndlessReplay: a replay is bounded by bytes and by time.
func TestEndlessReplay(t *testing.T) {
	endless := func(_ int, from uint64, reply func(frames ...[]byte)) {
		for seq := from; seq < from+1000; seq++ {
			reply(nil, number8(seq), body(t, seq))
		}
	}
	o := hasty()
	o.ReplayBytes = 10000
	f, r, _ := scripted(t, o, endless)
	r.has(t, "failed by size", func() bool { return r.anomalies[ReplayFailed] > 0 && f.Status().Partial })
	o = hasty()
	o.ReplayTimeout = time.Second
	f, r, _ = scripted(t, o, endless)
	r.has(t, "failed by time", func() bool { return r.anomalies[ReplayFailed] > 0 && f.Status().Partial })
}

// TestForeignReplay: numbers that do not ascend, frames that are none, another engine.
func TestForeignReplay(t *testing.T) {
	f := func(name string, answer func(from uint64, reply func(frames ...[]byte))) {
		t.Helper()
		_, r, _ := scripted(t, hasty(), func(_ int, from uint64, reply func(frames ...[]byte)) { answer(from, reply) })
		r.has(t, name, func() bool { return r.anomalies[ReplayFailed] > 0 })
	}
	f("order", func(from uint64, reply func(frames ...[]byte)) {
		reply(nil, number8(3), body(t, 3))
		reply(nil, number8(3), body(t, 3))
	})
	f("frames", func(from uint64, reply func(frames ...[]byte)) { reply(nil, nil, nil, nil, nil) })
	f("number", func(from uint64, reply func(frames ...[]byte)) { reply(nil, []byte("short"), nil) })
	salt := uint64(0)
	f("another engine", func(from uint64, reply func(frames ...[]byte)) {
		salt++
		reply(nil, number8(from), body(t, salt))
		reply(nil, number8(endSeq), nil)
	})
}

// TestUndecodable: a batch that cannot be read makes the source partial, the next is taken.
func TestUndecodable(t *testing.T) {
	f, r, _ := scripted(t, quick, func(_ int, from uint64, reply func(frames ...[]byte)) {
		bodies := [][]byte{body(t, 0), {0xc1}, pack(t, batch(list{"BlockRemoved", 1}, list{"New"}, stored("block_size", 0))), body(t, 3)}
		for seq := from; seq < 4; seq++ {
			reply(number8(seq), bodies[seq])
		}
		reply(number8(endSeq))
	})
	r.has(t, "told the others", func() bool { return slices.Equal(r.seqs, []uint64{0, 2, 3}) })
	r.counted(t, map[Anomaly]int{Undecodable: 2, UnknownEvent: 1, BadBlockSize: 1})
	r.has(t, "partial", func() bool { return slices.Equal(r.partial, []bool{false, true}) && f.Status().Partial })
}

// TestOddMessages: live messages of other frames are counted and passed over.
func TestOddMessages(t *testing.T) {
	p, r := publishing(t), &recorder{}
	start(t, Source{Endpoint: p.endpoint}, r, quick)
	c := p.subscriber(t)
	for _, frames := range [][][]byte{{[]byte("one")}, {nil, []byte("short"), nil}, {nil, number8(endSeq), nil}, {nil, number8(0), {0xc1}}, {nil, number8(1), body(t, 1)}} {
		if err := c.send(frames...); err != nil {
			t.Fatal(err)
		}
	}
	r.has(t, "told one", func() bool { return slices.Equal(r.seqs, []uint64{1}) })
	r.counted(t, map[Anomaly]int{Undecodable: 4})
	r.has(t, "partial", func() bool { return slices.Equal(r.partial, []bool{false, true}) })
}

// TestNothingStays: after many broken connections and failed replays no goroutine is left.
func TestNothingStays(t *testing.T) {
	before := runtime.NumGoroutine()
	silent := deaf(t)
	ctx, cancel := context.WithCancel(context.Background())
	o := quick
	o.DialTimeout, o.ReplyTimeout = 20*time.Millisecond, 20*time.Millisecond
	var all sync.WaitGroup
	for i, s := range []Source{{Endpoint: silent}, {Endpoint: "tcp://127.0.0.1:1"}, {Endpoint: silent, Replay: silent}} {
		r := &recorder{}
		f, err := New(i, s, r, r, o)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { f.Run(ctx) })
	}
	time.Sleep(500 * time.Millisecond)
	during := runtime.NumGoroutine()
	cancel()
	all.Wait()
	if during > before+20 {
		t.Errorf("%d goroutines, then %d while nothing works", before, during)
	}
	for range 200 {
		if runtime.NumGoroutine() <= before+1 { // the deaf listener's
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
}

func TestNewRefuses(t *testing.T) {
	f := func(s Source, want string) {
		t.Helper()
		if _, err := New(0, s, &recorder{}, &recorder{}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	f(Source{}, "endpoint: \"\" is not tcp://HOST:PORT")
	f(Source{Endpoint: "tcp://*:5557"}, "no host")
	f(Source{Endpoint: "ipc:///kv"}, "is not tcp")
	f(Source{Endpoint: "tcp://a:5557", Replay: "tcp://a"}, "replay:")
}
