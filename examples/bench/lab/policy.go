package lab

// Policy chooses an engine for each request. Now is in microseconds of virtual
// time; id is the request's number in the workload.
type Policy interface {
	// Pick returns the engine's number. The request is then sent there.
	Pick(now int64, id int, r *Request) int
	// Head says that the answer's head came back, with what the engine had to
	// do for all its clients at that time.
	Head(now int64, id int, owed, inFlight int)
	// First says that the first token came.
	First(now int64, id int)
	// Done says that the answer is complete.
	Done(now int64, id int)
}

// deaf is a policy's ear that hears nothing.
type deaf struct{}

func (deaf) Head(int64, int, int, int) {}
func (deaf) First(int64, int)          {}
func (deaf) Done(int64, int)           {}

// roundRobin takes the engines in turn.
type roundRobin struct {
	deaf
	fleet, next int
}

func (p *roundRobin) Pick(int64, int, *Request) int {
	p.next = (p.next + 1) % p.fleet
	return p.next
}

// work takes the engine with the fewest prompt tokens that wait for their
// first token. It knows nothing of caches.
type work struct {
	deaf
	owed []int
	at   map[int]sent
}

type sent struct{ engine, tokens int }

func newWork(fleet int) *work {
	return &work{owed: make([]int, fleet), at: map[int]sent{}}
}

func (p *work) Pick(_ int64, id int, r *Request) int {
	best := 0
	for i, n := range p.owed {
		if n < p.owed[best] {
			best = i
		}
	}
	p.owed[best] += r.Input
	p.at[id] = sent{best, r.Input}
	return best
}

func (p *work) First(_ int64, id int) {
	s := p.at[id]
	p.owed[s.engine] -= s.tokens
	delete(p.at, id)
}

// oracle sees every queue, step and cache. It plays the request through a copy
// of each engine and takes the smallest time to first token, plus extra times
// the request's own uncached work, which is what it costs those behind it. It
// is greedy, so not a bound that cannot be beaten.
type oracle struct {
	deaf
	engines []*Engine
	extra   float64
}

func (p *oracle) Pick(now int64, id int, r *Request) int {
	best, least := 0, 0.0
	for i, e := range p.engines {
		ttft, uncached := e.predict(now, r)
		cost := float64(ttft)/1e6 + p.extra*float64(uncached)/e.cfg.PrefillRate
		if i == 0 || cost < least {
			best, least = i, cost
		}
	}
	return best
}

// probe listens for one request.
type probe struct {
	id       int
	at       int64
	uncached int
	heard    bool
	input    int
}

func (p *probe) first(now int64, id, cached int) {
	if id == p.id {
		p.at, p.uncached, p.heard = now, p.input-cached, true
	}
}

func (p *probe) finished(int64, int) {}

// predict is the time to first token in microseconds and the uncached tokens
// of r, were it submitted now and nothing after it.
func (e *Engine) predict(now int64, r *Request) (ttft int64, uncached int) {
	d := e.clone()
	p := &probe{id: -1, input: r.Input}
	d.submit(now, -1, r)
	for !p.heard {
		d.end(p)
	}
	return p.at - now, p.uncached
}
