package report

import (
	"errors"
	"math"
	"strconv"

	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// Env is what comes from outside.
type Env struct {
	Store shared.Store
	Dice  func() uint64 // uniform random numbers
	// Counts says whether a POST to this path is work for the engine. It must
	// be what the routers go by, or their requests look like others'.
	Counts func(path []byte) bool
}

// Config says what is reported on.
type Config struct {
	Engine     string // name of its cluster; names the keys in shared data
	IntervalMS int64  // between two readings of its metrics
	MaxBytes   int    // of a metrics text
}

// freshFor is how many intervals what the engine said last is repeated for.
const freshFor = 8

// Reporter is one VM's part in reporting on an engine.
type Reporter struct {
	config Config
	env    Env

	books  *route.Router // its pool is the engine alone
	choice route.Choice
	held   [1]uint32 // tokens of the request that the engine holds

	lease    shared.Lease
	asking   bool
	dueAt    int64
	scanner  scanner
	tracker  tracker
	key      []byte // of the sample
	encoded  [sampleSize]byte
	stamp    []byte
	response route.Report // as the engine said it with its answer
}

// New returns the reporter of one VM. It touches nothing in env.Store until the
// first event or tick.
func New(c Config, env Env) *Reporter {
	nonce := env.Dice()
	for nonce == 0 {
		nonce = env.Dice()
	}
	r := &Reporter{
		config: c, env: env, tracker: newTracker(), key: shared.EngineKey(c.Engine),
		books: route.New(env.Store, "report:"+c.Engine, route.Defaults(), uint32(nonce)),
		lease: shared.NewLease(env.Store, shared.ScrapeKey(c.Engine), nonce),
	}
	r.books.Adopt(&state.Pool{Replicas: []state.Replica{{
		Incarnation: 1, Address: c.Engine, Health: state.Healthy, Load: state.NoLoad(),
	}}}, 1)
	return r
}

// Busy tells that this VM serves streams, so that it leaves the asking to one
// that does not.
func (r *Reporter) Busy() { r.lease.Busy() }

// Tick keeps the books and says whether the engine's metrics are to be read now
// by this VM. now is in milliseconds since the Unix epoch. Call it at least
// every second; each reading ends with Answer or Failed.
func (r *Reporter) Tick(now int64) (ask bool) {
	r.books.Tick(now)
	led := r.lease.Held()
	if !r.lease.Keep(now) {
		return false
	}
	if !led {
		r.asking, r.dueAt, r.tracker = false, now, newTracker()
	}
	if r.asking || now < r.dueAt && r.dueAt-now <= r.config.IntervalMS { // or the clock was set back
		return false
	}
	r.asking, r.dueAt = true, now+r.config.IntervalMS-tickJitter
	return true
}

// tickJitter is by how many milliseconds a tick may come early.
const tickJitter = 10

// Failed tells that the engine's metrics could not be asked for, or not in time.
func (r *Reporter) Failed() { r.asking = false }

// chunkSize is how much of a metrics text is looked at at once.
const chunkSize = 64 << 10

// Answer takes in the engine's answer, a body of size bytes of which read gives
// a part. An error says what was wrong with it; then what was known before goes
// on to count until it is too old.
func (r *Reporter) Answer(now int64, status, size int, read func(offset, max int) []byte) error {
	r.asking = false
	if status != 200 {
		return errors.New("engine: status " + strconv.Itoa(status))
	}
	if size > r.config.MaxBytes {
		return errors.New("engine: metrics of " + strconv.Itoa(size) + " bytes; allowed: " + strconv.Itoa(r.config.MaxBytes))
	}
	r.scanner.reset()
	for at := 0; at < size; at += chunkSize {
		want := min(chunkSize, size-at)
		chunk := read(at, want)
		if len(chunk) != want {
			return errCut
		}
		r.scanner.write(chunk)
	}
	r.scanner.end()
	if r.scanner.empty() {
		return errNothing
	}
	v := r.tracker.observe(&r.scanner, now)
	v.encode(&r.encoded)
	return r.env.Store.Set(r.key, r.encoded[:], 0)
}

var (
	errCut     = errors.New("engine: its metrics cannot be read to their end")
	errNothing = errors.New("engine: its metrics have none of those that are reported")
)

// Close gives up the lease, for the VM that comes next.
func (r *Reporter) Close() { r.lease.Release() }

// engine is what the engine said of itself last, if that is not too old.
func (r *Reporter) engine(now int64) (v sample, ok bool) {
	value, _, err := r.env.Store.Get(r.key)
	if err != nil || !v.decode(value) {
		return v, false
	}
	age := now - v.At
	return v, age <= freshFor*r.config.IntervalMS && age >= -freshFor*r.config.IntervalMS
}

// report writes what is known at now as the value of the answer's header. said
// is what the engine itself had put there; it counts where we know nothing.
func (r *Reporter) report(now int64, said *route.Report) []byte {
	rep := *said
	v, ok := r.engine(now)
	if ok {
		merge(&rep.Load, &v.Load)
	}
	r.books.Tick(now)
	rep.Owed = int32(min(r.books.Owed(0, now), math.MaxInt32))
	rep.InFlight = int32(r.books.InFlight(0))
	r.stamp = route.AppendReport(r.stamp[:0], &rep)
	if ok {
		r.stamp = appendRatio(r.stamp, ", named_metrics.gpu_utilization=", v.gpu)
		r.stamp = appendRatio(r.stamp, ", named_metrics.gpu_memory_utilization=", v.gpuMemory)
	}
	return r.stamp
}

// merge puts what b knows over a.
func merge(a, b *state.Load) {
	if b.Waiting >= 0 {
		a.Waiting = b.Waiting
	}
	if b.Running >= 0 {
		a.Running = b.Running
	}
	for _, p := range [...]struct{ to, from *float32 }{{&a.KV, &b.KV}, {&a.Hit, &b.Hit}, {&a.RPS, &b.RPS}, {&a.TPS, &b.TPS}} {
		if *p.from == *p.from {
			*p.to = *p.from
		}
	}
}

func appendRatio(b []byte, name string, f float32) []byte {
	if f != f {
		return b
	}
	return strconv.AppendFloat(append(b, name...), float64(f), 'g', -1, 32)
}
