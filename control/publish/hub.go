package publish

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/warmlane/warmlane/filter/state"
)

// limits are what a hub keeps to.
type limits struct {
	page int // bytes

	// How many states back a delta can begin, and how many changed KV records
	// those states may name in all. At the fastest, one state each 20 ms, that
	// is 20 seconds, enough to fetch a large whole; whoever is further behind
	// gets another one.
	kept, changes int

	// KV records of all pools, in bytes of pages: twice what the index of a
	// filter can hold.
	index int

	// A delta of so many bytes or less is sent even if the whole is smaller: a
	// whole makes a filter forget the index it has.
	smallDelta int

	// How many answers of one page are kept, and how many bytes of answers of
	// several pages, but for the last one. Beyond that each is made for its
	// asker.
	answers, long int

	// How many states a whole of several pages may be behind the latest to be
	// given to another asker, who gets the rest as a delta.
	age uint64
}

var standard = limits{
	page: state.MaxPage, kept: 1024, changes: 1 << 21, index: 32 << 20,
	smallDelta: 64 << 10, answers: 512, long: 128 << 20, age: 64,
}

// Hub holds the latest state, the ones before it, and those who wait for the
// next. Of the KV index it holds the latest records only, and which of them
// each state changed. It may be used by many goroutines.
type Hub struct {
	epoch  uint64
	limits limits

	mu      sync.Mutex
	ring    []*generation     // oldest first, generations without a gap
	changes int               // KV records that the states of the ring name
	changed map[string]uint64 // pool -> the generation in which it last changed
	index   index
	next    chan struct{} // closed when ring gets a new one
	closing chan struct{}
	closed  bool
	answers answers
}

// generation is a state, and which KV records it changed.
type generation struct {
	*state.Snapshot
	changes []change
}

// NewHub returns a hub without a state. Its epoch is random, of 53 bits so
// that JSON readers that know only floats can hold it.
func NewHub() *Hub {
	return &Hub{
		epoch:   1 + rand.Uint64N(1<<53-1),
		limits:  standard,
		changed: make(map[string]uint64),
		index:   newIndex(),
		next:    make(chan struct{}),
		closing: make(chan struct{}),
	}
}

// Publish makes pools the latest state and takes over the KV records that
// changed, unless all of it is as it was. pools must be sorted as package
// state wants them. Neither they nor the payloads may be changed any more.
// Patches of pools that are not among pools are dropped.
func (h *Hub) Publish(pools []state.Pool, kv []state.Patch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.latest()
	if last == nil {
		last = &generation{Snapshot: &state.Snapshot{}}
	}
	s := &state.Snapshot{Epoch: h.epoch, Generation: last.Generation + 1, Pools: slices.Clone(pools)}
	g := &generation{Snapshot: s, changes: h.index.absorb(kv, s, h.limits.index)}
	if !h.note(last, g) && last.Generation > 0 {
		return
	}
	h.push(g)
	h.answers.reset(h.ring[0].Generation)
	close(h.next)
	h.next = make(chan struct{})
}

// note remembers which pools g changes, and reports whether there are any. A
// hub is given the same pools each time, as they stand in the configuration;
// those that have not changed share the memory of the state before.
func (h *Hub) note(last, g *generation) (any bool) {
	for i := range g.Pools {
		if i < len(last.Pools) && state.EqualPool(&last.Pools[i], &g.Pools[i]) {
			g.Pools[i] = last.Pools[i]
			continue
		}
		h.changed[g.Pools[i].Name] = g.Generation
		any = true
	}
	for i := range g.changes {
		h.changed[g.changes[i].pool] = g.Generation
		any = true
	}
	return any
}

// push puts g into the ring, and the oldest out of it.
func (h *Hub) push(g *generation) {
	h.ring = append(h.ring, g)
	h.changes += g.named()
	for len(h.ring) > 1 && (len(h.ring) > h.limits.kept || h.changes > h.limits.changes) {
		h.changes -= h.ring[0].named()
		h.ring = slices.Delete(h.ring, 0, 1)
	}
}

// news reports whether the chosen pools changed after g, which is kept.
func (h *Hub) news(g *generation, want pools) bool {
	if len(want.names) == 0 {
		return g != h.latest()
	}
	return slices.ContainsFunc(want.names, func(name string) bool {
		return h.changed[name] > g.Generation
	})
}

// Close sends those who wait home and lets nobody wait any more.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
}

// Latest returns the latest state, nil if there is none yet. It must not be
// changed.
func (h *Hub) Latest() *state.Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.latest(); g != nil {
		return g.Snapshot
	}
	return nil
}

// Dropped is how many KV records were left out because the index was full or
// their payload too long.
func (h *Hub) Dropped() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.index.dropped
}

func (h *Hub) latest() *generation {
	if len(h.ring) == 0 {
		return nil
	}
	return h.ring[len(h.ring)-1]
}

// since returns the generations that came after number, or ok false if that
// one is not kept.
func (h *Hub) since(number uint64) (later []*generation, ok bool) {
	if len(h.ring) == 0 {
		return nil, false
	}
	i := number - h.ring[0].Generation // wraps far beyond the length if older
	if i >= uint64(len(h.ring)) {
		return nil, false
	}
	return h.ring[i+1:], true
}

// at returns the state of a generation, nil if it is not kept.
func (h *Hub) at(number uint64) *generation {
	later, ok := h.since(number)
	if !ok {
		return nil
	}
	return h.ring[len(h.ring)-len(later)-1]
}
