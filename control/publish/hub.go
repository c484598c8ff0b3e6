package publish

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/warmlane/warmlane/filter/state"
)

// kept is how many states back a delta can begin. At the fastest, one each 20
// ms, that is 2.5 seconds; whoever is further behind gets the whole.
const kept = 128

// Hub holds the latest state, the ones before it, and those who wait for the
// next. It may be used by many goroutines.
type Hub struct {
	epoch uint64

	mu      sync.Mutex
	ring    []*state.Snapshot // oldest first, generations without a gap
	changed map[string]uint64 // pool -> the generation in which it last changed
	next    chan struct{}     // closed when ring gets a new one
	closing chan struct{}
	closed  bool
	answers answers
}

// NewHub returns a hub without a state. Its epoch is random, of 53 bits so
// that JSON readers that know only floats can hold it.
func NewHub() *Hub {
	return &Hub{
		epoch:   1 + rand.Uint64N(1<<53-1),
		changed: make(map[string]uint64),
		next:    make(chan struct{}),
		closing: make(chan struct{}),
	}
}

// Publish makes pools the latest state, unless they say what the latest one
// says already. pools must be sorted as package state wants them and must not
// be changed any more.
func (h *Hub) Publish(pools []state.Pool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.latest()
	if last == nil {
		last = &state.Snapshot{}
	}
	s := &state.Snapshot{Epoch: h.epoch, Generation: last.Generation + 1, Pools: pools}
	if !h.note(last, s) && last.Generation > 0 {
		return
	}
	if len(h.ring) == kept {
		h.ring = slices.Delete(h.ring, 0, 1)
	}
	h.ring = append(h.ring, s)
	h.answers.reset()
	close(h.next)
	h.next = make(chan struct{})
}

// note remembers which pools s changes, and reports whether there are any. A
// hub is given the same pools each time, as they stand in the configuration.
func (h *Hub) note(last, s *state.Snapshot) (any bool) {
	for i := range s.Pools {
		if i < len(last.Pools) && state.EqualPool(&last.Pools[i], &s.Pools[i]) {
			continue
		}
		h.changed[s.Pools[i].Name] = s.Generation
		any = true
	}
	return any
}

// news reports whether the chosen pools changed after s, which is kept.
func (h *Hub) news(s *state.Snapshot, want pools) bool {
	if len(want.names) == 0 {
		return s != h.latest()
	}
	return slices.ContainsFunc(want.names, func(name string) bool {
		return h.changed[name] > s.Generation
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
	return h.latest()
}

func (h *Hub) latest() *state.Snapshot {
	if len(h.ring) == 0 {
		return nil
	}
	return h.ring[len(h.ring)-1]
}

// at returns the state of a generation, nil if it is not kept.
func (h *Hub) at(generation uint64) *state.Snapshot {
	if len(h.ring) == 0 {
		return nil
	}
	i := generation - h.ring[0].Generation // wraps far beyond the length if older
	if i >= uint64(len(h.ring)) {
		return nil
	}
	return h.ring[i]
}
