package engine

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"
)

// The reasons for which Submit refuses a request.
var (
	ErrQueueFull = errors.New("engine: the queue is full")
	ErrTooLong   = errors.New("engine: the prompt leaves no room for an answer")
	ErrEmpty     = errors.New("engine: the prompt has no tokens")
)

// Engine is one engine. It is not safe for concurrent use, apart from NewRequest.
type Engine struct {
	cfg   Config
	seed  Hash
	cache *cache

	now     time.Duration
	waiting []*Request
	running []*Request
	step    step
	slow    float64
	pending []Event // events of the step under way, and a clear that waits for the next
	stats   Stats
}

// New returns an idle engine with an empty cache.
func New(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	return &Engine{
		cfg:   cfg,
		seed:  sha256.Sum256([]byte(cfg.HashSeed)),
		cache: newCache(cfg.Blocks, cfg.BlockSize, cfg.SingleCopy),
		slow:  1,
		stats: newStats(cfg.MaxModelLen),
	}
}

// Config returns the configuration with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// SetSlow multiplies the time of all later steps by factor; below or at 0 means 1.
func (e *Engine) SetSlow(factor float64) {
	if factor <= 0 {
		factor = 1
	}
	e.slow = factor
}

// Submit queues a request at the given time, which must not be before that of
// an earlier call. A request is submitted once.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	e.Advance(now)
	switch {
	case len(r.spec.Prompt) == 0:
		return ErrEmpty
	case len(r.spec.Prompt) >= e.cfg.MaxModelLen:
		return ErrTooLong
	case e.cfg.MaxQueued > 0 && len(e.waiting) >= e.cfg.MaxQueued:
		e.stats.Rejected++
		return ErrQueueFull
	}
	r.arrived, r.phase = now, phaseWaiting
	e.waiting = append(e.waiting, r)
	if !e.step.busy {
		e.begin()
	}
	return nil
}

// Abort ends a request whose outputs nobody wants. A waiting one goes at once, a
// running one when the step under way ends; what it computed stays cached.
func (e *Engine) Abort(now time.Duration, r *Request) {
	e.Advance(now)
	if r.phase == phaseDone || r.phase == phaseNew {
		return
	}
	r.aborted = true
	if i := slices.Index(e.waiting, r); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
		e.drop(r)
	}
}

// Next is the time at which something happens next; not busy means never,
// unless a request is submitted.
func (e *Engine) Next() (at time.Duration, busy bool) { return e.step.ends, e.step.busy }

// Advance lets time pass: every step that ends by now is completed, and its
// successor starts at the moment it ended.
func (e *Engine) Advance(now time.Duration) {
	for e.step.busy && e.step.ends <= now {
		e.now = e.step.ends
		e.finish()
		e.begin()
	}
	e.now = max(e.now, now)
}

// Reset drops the cache, as POST /reset_prefix_cache does. It refuses while
// blocks are in use. The event is sent with the next step's, as vLLM does.
func (e *Engine) Reset(now time.Duration) bool {
	e.Advance(now)
	if !e.cache.reset() {
		return false
	}
	e.pending = append(e.pending, Event{Kind: AllBlocksCleared})
	return true
}

// Resident is how many prompt tokens of r would come from the cache if it ran now.
func (e *Engine) Resident(r *Request) int {
	return e.cache.match(r.reusable(e.cfg.BlockSize)) * e.cfg.BlockSize
}

// Backlog is how many tokens the queued and running requests have left to
// prefill, as far as can be told now: what is cached counts as done.
func (e *Engine) Backlog() (tokens int) {
	for _, r := range e.waiting {
		tokens += len(r.tokens) - e.Resident(r)
	}
	for _, r := range e.running {
		if left := len(r.tokens) - r.computed; left > 1 || r.output() == 0 {
			tokens += left
		}
	}
	return tokens
}

// drop ends a request and gives its blocks back.
func (e *Engine) drop(r *Request) {
	e.cache.release(r.blocks)
	r.blocks, r.phase = nil, phaseDone
}
