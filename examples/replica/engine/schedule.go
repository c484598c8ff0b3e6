package engine

import (
	"slices"
	"time"
)

// step is the piece of work the engine is at: for each request in work the
// number of tokens that are computed when the step ends.
type step struct {
	busy bool
	ends time.Duration
	work []chunk
}

// chunk is one request's share of a step.
type chunk struct {
	r *Request
	n int
}

// begin schedules the next step at the present time: running requests first,
// then waiting ones, until the budget of tokens, seats or blocks is used up.
func (e *Engine) begin() {
	e.step.work = e.step.work[:0]
	budget, preempted := e.resume(e.cfg.BatchTokens)
	if !preempted {
		e.admit(budget)
	}
	if e.step.busy = len(e.step.work) > 0; !e.step.busy {
		return
	}
	prefill, decode := e.load()
	e.stats.step(prefill + decode)
	e.step.ends = e.now + max(time.Duration(float64(e.cfg.stepTime(prefill, decode))*e.slow), 1)
}

// load splits the step's tokens into prompt tokens and decoding requests.
func (e *Engine) load() (prefill, decode int) {
	for _, c := range e.step.work {
		if c.n == 1 && c.r.output() > 0 {
			decode++
			continue
		}
		prefill += c.n
	}
	return prefill, decode
}

// resume gives running requests their tokens. Without free blocks the one that
// came last is sent back to the queue, until the others fit.
func (e *Engine) resume(budget int) (left int, preempted bool) {
	for i := 0; i < len(e.running) && budget > 0; i++ {
		r := e.running[i]
		n := min(len(r.tokens)-r.computed, budget)
		for e.lacking(r, n) > e.cache.free && len(e.running) > i {
			e.preempt()
			preempted = true
		}
		if len(e.running) <= i {
			break // r itself had to go
		}
		e.grow(r, n)
		e.step.work = append(e.step.work, chunk{r, n})
		budget -= n
	}
	return budget, preempted
}

// preempt sends the last running request back to the head of the queue. Its
// tokens are kept, its blocks are not: it is computed again, from the cache if
// that still has them.
func (e *Engine) preempt() {
	r := e.running[len(e.running)-1]
	e.running = e.running[:len(e.running)-1]
	e.cache.release(r.blocks)
	r.blocks, r.computed, r.stored, r.phase = nil, 0, 0, phaseWaiting
	r.preempted++
	e.stats.Preemptions++
	e.waiting = slices.Insert(e.waiting, 0, r)
}

// admit starts waiting requests in order of arrival. One whose adapter has no
// room is passed over, one that lacks blocks holds up those behind it.
func (e *Engine) admit(budget int) {
	e.stats.Deferred = 0
	for i := 0; i < len(e.waiting) && budget > 0 && len(e.running) < e.cfg.MaxSeqs; {
		r := e.waiting[i]
		if !e.adapterFits(r) {
			e.stats.Deferred++
			i++
			continue
		}
		n, ok := e.start(r, budget)
		if !ok {
			return
		}
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.running = append(e.running, r)
		e.step.work = append(e.step.work, chunk{r, n})
		budget -= n
	}
}

// start reuses what is cached of a request and gives it blocks for its first
// chunk of n tokens. Not ok: there are not enough.
func (e *Engine) start(r *Request, budget int) (n int, ok bool) {
	reusable := r.reusable(e.cfg.BlockSize)
	hits := reusable[:e.cache.match(reusable)]
	done := len(hits) * e.cfg.BlockSize
	n = min(len(r.tokens)-done, budget)
	need := ceilDiv(done+n, e.cfg.BlockSize) - len(hits)
	if need+e.cache.idle(hits) > e.cache.free {
		return 0, false
	}
	for _, h := range hits {
		r.blocks = append(r.blocks, e.cache.hold(h))
	}
	r.computed, r.stored = done, len(hits)
	r.phase = phaseRunning
	e.entered(r, done)
	e.grow(r, n)
	return n, true
}

// entered keeps the books when a request starts to run with done tokens reused.
func (e *Engine) entered(r *Request, done int) {
	if !r.ran {
		r.ran, r.cached, r.started = true, done, e.now
		e.stats.entered(r, done)
	}
	if r.spec.ReportFull && done > 0 {
		e.pending = append(e.pending, e.stored(r, 0, r.stored, slices.Clone(r.tokens[:done])))
	}
}

// lacking is how many more blocks r needs to compute n more tokens.
func (e *Engine) lacking(r *Request, n int) int {
	return ceilDiv(r.computed+n, e.cfg.BlockSize) - len(r.blocks)
}

// grow gives r the blocks for n more tokens; the caller has seen they are free.
func (e *Engine) grow(r *Request, n int) {
	for range e.lacking(r, n) {
		b, lost, removed := e.cache.take()
		if removed {
			e.pending = append(e.pending, Event{Kind: BlockRemoved, Hashes: []Hash{lost}})
		}
		r.blocks = append(r.blocks, b)
	}
}

// adapterFits reports whether r's adapter is in the batch or may join it.
func (e *Engine) adapterFits(r *Request) bool {
	want := r.spec.Space.Adapter
	if want == "" || e.cfg.MaxAdapters <= 0 {
		return true
	}
	active := activeAdapters(e.running)
	return len(active) < e.cfg.MaxAdapters || slices.Contains(active, want)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
