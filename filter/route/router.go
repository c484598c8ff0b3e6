package route

import (
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// ClockUnit is how many tokens make one unit of [Router.Clock].
const ClockUnit = 16

// A Router places the requests of one pool. Each worker has its own; those of
// one proxy meet in shared data. It is not safe for concurrent use, and its
// calls must not be interleaved with others on the same store view only in so
// far as values of that view do not outlive them.
type Router struct {
	cfg        Config
	table      Table
	books      books
	candidates []candidate
	mean       float32 // uncached tokens of a request, as a moving average
	usual      float32 // mean of the rates learned, as of the last tick; 0 = none was
}

// New returns the router of one worker for one pool, without replicas yet.
// nonce tells this worker from all others that ever use the store; 0 is not
// allowed and becomes 1.
func New(store shared.Store, pool string, cfg Config, nonce uint32) *Router {
	return &Router{
		cfg: cfg,
		books: books{
			store: store,
			key:   shared.LedgerKey(pool),
			nonce: max(nonce, 1),
			lease: cfg.LeaseMS,
			page:  newPage(nil, 0, 0),
			seat:  -1,
		},
	}
}

// Configure replaces the weights and times.
func (r *Router) Configure(cfg Config) {
	r.cfg, r.books.lease = cfg, cfg.LeaseMS
}

// Adopt compiles p; nothing of p is kept. generation must grow (as a serial
// number, it may wrap) with each state spread in this proxy: a worker with an
// older one leaves replicas it does not know alone. Requests in flight at a
// replica that is no longer in its slot are forgotten.
func (r *Router) Adopt(p *state.Pool, generation uint32) {
	r.table.build(p, generation)
	r.books.kept = false
	r.books.stats.Beyond = uint64(r.table.beyond)
	for slot := range r.table.lanes {
		l := &r.table.lanes[slot]
		if m := &r.books.mine[slot]; l.key != 0 && m.key != l.key {
			*m = account{key: l.key}
		}
	}
	for len(r.table.lanes) > cap(r.candidates) {
		r.candidates = append(r.candidates[:cap(r.candidates)], candidate{})
	}
	for slot := range r.books.start {
		r.books.start[slot] = r.cfg.StartRate
		if slot < len(r.table.lanes) && r.table.lanes[slot].rate > 0 {
			r.books.start[slot] = r.table.lanes[slot].rate
		}
	}
}

// Generation is the one last adopted.
func (r *Router) Generation() uint32 { return r.table.generation }

// Choose places a request, enters it into the ledger and fills in c and t,
// both wholly. dice is any random number. If every write met another, the
// choice stands and is entered with the next write.
func (r *Router) Choose(q *Query, now int64, dice uint64, c *Choice, t *Ticket) {
	for try := range tries {
		r.books.read(&r.table, now)
		r.decide(q, now, dice, c)
		*t = Ticket{slot: -1, prompt: q.Prompt, uncached: q.Prompt, stream: q.Stream}
		if c.N == 0 {
			return
		}
		slot := int(c.Order[0])
		t.uncached = c.Uncached
		before := r.books.mine[slot]
		r.books.enter(t, slot, now)
		if r.books.write(now) {
			break
		}
		r.books.mine[slot] = before
		if try == tries-1 {
			r.books.begin(t, slot, now)
			r.books.stats.Lost++
		}
	}
	r.mean += (float32(c.Uncached) - r.mean) / 16
}

// decide fills in the choice from the books as last read.
func (r *Router) decide(q *Query, now int64, dice uint64, c *Choice) {
	*c = Choice{Prompt: q.Prompt, Generation: r.books.page.generation()}
	r.table.judge(q.Model)
	r.gather(q, now, c, false)
	if len(r.candidates) == 0 && c.Dropped[FilterAvoid]+c.Dropped[FilterUnknown] > 0 {
		c.Relented = true
		r.gather(q, now, c, true)
	}
	c.Candidates = len(r.candidates)
	if c.Candidates == 0 {
		c.Branch, c.Rung = NoHealthyWorker, RungEnvoy
		return
	}
	priceForeign(r.candidates)
	r.pick(q, dice, c)
}

// gather lists and prices the candidates, and counts who was dropped why. With
// relent, soft filters let pass, and what they dropped before stays counted.
func (r *Router) gather(q *Query, now int64, c *Choice, relent bool) {
	n, cs := 0, r.candidates[:len(r.table.lanes)]
	for slot := range r.table.lanes {
		if r.table.lanes[slot].key == 0 {
			continue
		}
		f := r.sift(q, slot, now)
		if f == NumFilters || relent && f.soft() {
			r.price(&cs[n], slot, q, now)
			n++
		} else if !relent {
			c.Dropped[f]++
		}
	}
	r.candidates = cs[:n]
}

// Tick keeps this worker's seat, empties those of silent workers and writes
// what is pending; without need it only reads. Call it at least three times in
// a lease. Afterwards [Router.InFlight] is up to date.
func (r *Router) Tick(now int64) {
	had := r.books.seat
	r.books.reread(&r.table, now)
	r.takeUsual()
	if !r.books.dirty && r.books.seat == had && r.books.gone == 0 && !r.books.aging(now) {
		return
	}
	if !r.books.write(now) {
		r.books.update(&r.table, now)
	}
}

// Slots is one more than the highest slot of the state last adopted.
func (r *Router) Slots() int { return len(r.table.lanes) }

// InFlight is how many requests this proxy has at the slot, as last read.
func (r *Router) InFlight(slot int) int {
	if slot < 0 || slot >= r.books.page.slots() {
		return 0
	}
	return int(r.books.inFlight[slot])
}

// Owed is how many tokens the slot still has to prefill at now, as last read.
func (r *Router) Owed(slot int, now int64) int {
	if slot < 0 || slot >= len(r.table.lanes) || slot >= r.books.page.slots() {
		return 0
	}
	return int(r.books.backlog(slot, r.rate(slot)).left(now))
}

// Rate is the slot's prefill rate in tokens per second, as last read.
func (r *Router) Rate(slot int) float32 {
	if slot < 0 || slot >= len(r.table.lanes) || slot >= r.books.page.slots() {
		return 0
	}
	return r.rate(slot)
}

// Clock is how many tokens went into the slot's cache (prompts' uncached ones,
// and outputs where told), in units of [ClockUnit], as last read; it wraps. What was resident when the clock stood
// at c is likely gone when Clock-c exceeds [Router.Capacity].
func (r *Router) Clock(slot int) uint32 {
	if slot < 0 || slot >= r.books.page.slots() {
		return 0
	}
	return uint32(r.books.page.record(slot).u64(recClock) / ClockUnit)
}

// Capacity is the size of the slot's cache in units of [ClockUnit]; 0 = not
// known.
func (r *Router) Capacity(slot int) uint32 {
	if slot < 0 || slot >= len(r.table.lanes) {
		return 0
	}
	return r.table.lanes[slot].capacity
}

// Address is the slot's address as control wrote it, nil if nobody is there.
// It is valid until the next Adopt.
func (r *Router) Address(slot int) []byte { return r.table.address(slot) }

// Slot finds the replica with this address, or returns -1.
func (r *Router) Slot(address []byte) int { return r.table.slot(address) }

// Key tells the replicas of one slot apart over time; 0 = nobody is there.
func (r *Router) Key(slot int) uint32 {
	if slot < 0 || slot >= len(r.table.lanes) {
		return 0
	}
	return r.table.lanes[slot].key
}

// AppendOrder appends the choice's addresses, separated by commas, as the
// override_host policy reads them.
func (r *Router) AppendOrder(dst []byte, c *Choice) []byte {
	for i, slot := range c.Order[:c.N] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.table.address(int(slot))...)
	}
	return dst
}

// Stats counts what went wrong on the ledger.
func (r *Router) Stats() Stats { return r.books.stats }
