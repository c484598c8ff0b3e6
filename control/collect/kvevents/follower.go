package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Sink takes in what a source tells. All calls for one Follower come from the
// goroutine of its Run, batches in the order of their sequence numbers; none comes
// after Run has returned. src is the number given to New. A Sink that is slow costs
// replays, not events.
type Sink interface {
	// Batch hands over events; b is valid during the call.
	Batch(src int, seq uint64, b *Batch)
	// Reset voids all that was told before. The source is partial again.
	Reset(src int, why Reason)
	// Partial is called when it changes whether events are missing since the last
	// Reset or Cleared. At first they are.
	Partial(src int, partial bool)
}

// Reason says why what is known of a source is void.
type Reason string

// The reasons.
const (
	Restarted Reason = "restart" // the engine started anew
	Lost      Reason = "lost"    // events were missed, and only from the start can the engine tell what is true
	Asked     Reason = "asked"   // by Resync
)

// Options are the bounds of a Follower; zero values stand for the defaults.
type Options struct {
	QueueMessages int           // live messages waiting, default 8192
	QueueBytes    int           // and their bytes, default 64 MiB
	DialTimeout   time.Duration // until a socket is connected and greeted, default 5 s
	ReplyTimeout  time.Duration // until each reply of a replay, default 2 s
	ReplayTimeout time.Duration // of a whole replay, default 60 s
	ReplayBytes   int64         // of a whole replay, default 4 GiB
	Quiet         time.Duration // silence after which the replay is asked whether something was lost, default 5 s
	RetryMin      time.Duration // first pause before connecting again or asking again for a failed replay, default 250 ms
	RetryMax      time.Duration // longest, default 10 s
}

func (o Options) withDefaults() Options {
	setDefault(&o.QueueMessages, 8192)
	setDefault(&o.QueueBytes, 64<<20)
	setDefault(&o.DialTimeout, 5*time.Second)
	setDefault(&o.ReplyTimeout, 2*time.Second)
	setDefault(&o.ReplayTimeout, 60*time.Second)
	setDefault(&o.ReplayBytes, 4<<30)
	setDefault(&o.Quiet, 5*time.Second)
	setDefault(&o.RetryMin, 250*time.Millisecond)
	setDefault(&o.RetryMax, 10*time.Second)
	return o
}

func setDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Status is where a Follower stands.
type Status struct {
	Connected bool   // to the live events
	Seen      bool   // a batch has been taken in since the last Reset
	Last      uint64 // sequence number of the last one, if Seen
	Partial   bool
	Err       error // why it is not connected; nil: it is, or has not tried
}

// Follower keeps up with one source.
//
// The engine numbers its batches from 0, anew in each life. A hole in the numbers is
// a gap; a number that falls, or another batch under a known number, is a restart. At
// each connection, at each gap, and when all is quiet, the replay is asked for
// everything from the last batch known. While it plays, live messages wait; those it
// has brought already are dropped.
type Follower struct {
	src           int
	topic         string
	address       string // of the events
	replayAddress string // "" none
	sink          Sink
	counters      Counters
	opts          Options
	resync        chan struct{}

	mu     sync.Mutex
	status Status

	// What follows belongs to Run.
	batch   Batch
	message message // of a replay

	seen    bool   // a batch was taken in since the last Reset
	base    uint64 // number of the first one, or of the last that cleared the cache; a replay from there on tells as much
	next    uint64 // number of the one that is due
	sum     uint64 // XXH64 of the payload before that
	rebuild bool   // events are missing that a replay from the start may bring
	holes   bool   // events are missing since base
	unsure  bool   // events may be missing since the connection broke
	partial bool   // one of these two, as the Sink was told

	synced   bool   // what is connected is known to be the engine that numbered next
	liveSeen bool   // a live message came over this connection
	liveLast uint64 // its number
	heard    bool   // a live message came since the last tick

	dealer   *conn // to the replay, nil: none open
	replayed int64 // bytes of the replay under way
	failures int   // of replays, in a row
	retryAt  time.Time
}

// New makes a Follower for a source, src being the number that its Sink is told.
func New(src int, s Source, sink Sink, c Counters, o Options) (*Follower, error) {
	address, err := dialAddress(s.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("kvevents: endpoint: %w", err)
	}
	f := &Follower{src: src, topic: s.Topic, address: address, sink: sink, counters: c, opts: o.withDefaults(),
		resync: make(chan struct{}, 1), status: Status{Partial: true}, holes: true, partial: true}
	if s.Replay != "" {
		if f.replayAddress, err = dialAddress(s.Replay); err != nil {
			return nil, fmt.Errorf("kvevents: replay: %w", err)
		}
	}
	return f, nil
}

// Resync makes Run void what was told and start over from the oldest batch that the
// engine keeps. It does not wait, and may be called from any goroutine.
func (f *Follower) Resync() {
	select {
	case f.resync <- struct{}{}:
	default: // it is to do so already
	}
}

// Status may be called from any goroutine.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Follower) connection(connected bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Connected, f.status.Err = connected, err
}

// Run follows the source until ctx is done. It is called once.
func (f *Follower) Run(ctx context.Context) {
	pause := f.opts.RetryMin
	for ctx.Err() == nil {
		began := time.Now()
		err := f.session(ctx)
		f.connection(false, err)
		if time.Since(began) > f.opts.RetryMax {
			pause = f.opts.RetryMin
		}
		sleep(ctx, pause/2+rand.N(pause))
		pause = min(2*pause, f.opts.RetryMax)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// session is the time of one connection.
func (f *Follower) session(ctx context.Context) error {
	l, err := f.subscribe(ctx)
	if err != nil {
		return err
	}
	defer l.stop()
	defer f.hangUp()
	f.connection(true, nil)
	f.begin(ctx)
	tick := time.NewTicker(f.opts.Quiet)
	defer tick.Stop()
	for {
		select {
		case m, ok := <-l.queue:
			if !ok {
				return l.err
			}
			f.take(ctx, m)
			l.release(m)
		case <-f.resync:
			f.void(Asked)
			f.begin(ctx)
		case <-tick.C:
			f.tick(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin brings what was published before the connection, or before a Resync.
func (f *Follower) begin(ctx context.Context) {
	f.synced, f.liveSeen, f.failures, f.retryAt = false, false, 0, time.Time{}
	if f.replayAddress != "" && !f.catchUp(ctx) && ctx.Err() == nil {
		f.setPartial(f.holes, true)
	}
}

// tick asks the replay if no live message came for a while, as the last one may have
// been lost, or if events are missing and it is time to try again.
func (f *Follower) tick(ctx context.Context) {
	heard := f.heard
	f.heard = false
	if f.mayAsk() && (f.rebuild || !heard) {
		f.catchUp(ctx)
	}
}

// mayAsk tells whether a replay can be asked now; after one that failed it has to wait.
func (f *Follower) mayAsk() bool { return f.replayAddress != "" && !time.Now().Before(f.retryAt) }

// take looks at a live message: topic, number, payload.
func (f *Follower) take(ctx context.Context, m *message) {
	f.heard = true
	if m.frames() != 3 || len(m.frame(1)) != 8 {
		f.counters.Anomaly(Undecodable, 1)
		return
	}
	seq := binary.BigEndian.Uint64(m.frame(1))
	if seq == endSeq {
		f.counters.Anomaly(Undecodable, 1)
		return
	}
	if f.wanted(m.frame(0)) {
		f.arrive(ctx, seq, m.frame(2))
	}
}

func (f *Follower) wanted(topic []byte) bool {
	if f.topic == "" || string(topic) == f.topic {
		return true
	}
	f.counters.Anomaly(UnknownTopic, 1)
	return false
}

// arrive takes in a live batch, after what is missing before it.
func (f *Follower) arrive(ctx context.Context, seq uint64, payload []byte) {
	if f.liveSeen && seq <= f.liveLast || !f.synced && f.seen && seq < f.next {
		f.counters.Anomaly(Restart, 1)
		f.void(Restarted)
	}
	f.liveSeen, f.liveLast = true, seq
	if seq > f.next {
		f.gap(ctx, seq)
	}
	f.synced = true
	f.setPartial(f.holes, false)
	if seq >= f.next {
		f.deliver(seq, payload)
	}
}

// gap brings what is missing before a live batch, if it can.
func (f *Follower) gap(ctx context.Context, seq uint64) {
	if f.seen {
		f.counters.Anomaly(Gap, 1)
	}
	if f.mayAsk() && f.catchUp(ctx) {
		if seq > f.next {
			f.incomplete()
		}
		return
	}
	f.setPartial(true, false)
	f.rebuild = f.replayAddress != ""
	if !f.synced {
		f.base = math.MaxUint64 // it may even be another engine
	}
}

// incomplete notes that events are missing which the engine cannot tell any more.
func (f *Follower) incomplete() {
	f.counters.Anomaly(ReplayIncomplete, 1)
	f.setPartial(true, f.unsure)
	f.rebuild = false
}

// deliver takes in the batch of a number, whatever was before it.
func (f *Follower) deliver(seq uint64, payload []byte) {
	if !f.seen {
		f.base = seq
		f.setPartial(seq != 0, f.unsure)
	}
	f.seen, f.next, f.sum = true, seq+1, xxhash.Sum64(payload)
	f.mu.Lock()
	f.status.Seen, f.status.Last = true, seq
	f.mu.Unlock()
	if err := Decode(payload, &f.batch); err != nil {
		f.counters.Anomaly(Undecodable, 1)
		f.setPartial(true, f.unsure)
		return
	}
	f.sink.Batch(f.src, seq, &f.batch)
	if f.count(&f.batch); f.batch.Lost() {
		f.setPartial(true, f.unsure)
	}
}

// count counts the events of a batch, and notes a cleared cache: nothing is missing
// from then on.
func (f *Follower) count(b *Batch) {
	var types [Types]int
	media := 0
	for i := range b.Events {
		e := &b.Events[i]
		types[e.Type]++
		if e.Stored.Medium == OtherMedium || e.Removed.Medium == OtherMedium {
			media++
		}
	}
	for t, n := range types {
		if n > 0 {
			f.counters.Events(Type(t), n)
		}
	}
	f.anomalies(UnknownMedium, media)
	f.anomalies(UnknownEvent, b.Unknown)
	f.anomalies(Undecodable, b.Bad-b.BadSize)
	f.anomalies(BadBlockSize, b.BadSize)
	if types[TypeCleared] > 0 {
		f.base, f.rebuild = f.next-1, false
		f.setPartial(false, f.unsure)
	}
}

func (f *Follower) anomalies(a Anomaly, n int) {
	if n > 0 {
		f.counters.Anomaly(a, n)
	}
}

// void forgets the source; what comes next begins from nothing.
func (f *Follower) void(why Reason) {
	f.seen, f.next, f.rebuild = false, 0, false
	f.holes, f.unsure, f.partial = true, false, true
	f.mu.Lock()
	f.status.Seen, f.status.Partial = false, true
	f.mu.Unlock()
	f.sink.Reset(f.src, why)
}

// setPartial notes why the source is partial, and tells if it is otherwise than before.
func (f *Follower) setPartial(holes, unsure bool) {
	f.holes, f.unsure = holes, unsure
	partial := holes || unsure
	if f.partial == partial {
		return
	}
	f.partial = partial
	f.mu.Lock()
	f.status.Partial = partial
	f.mu.Unlock()
	f.sink.Partial(f.src, partial)
}
