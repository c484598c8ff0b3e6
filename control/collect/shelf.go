package collect

import (
	"context"
	"sync"
	"time"

	"github.com/warmlane/warmlane/control/collect/blocks"
	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/state"
)

// shelf is what the replicas of one pool have cached, as their KV events tell.
// The goroutines that follow the events bring it up to date, each for one batch
// at a time; a goroutine of its own takes off what has changed. The fold's
// owner never waits for the lock, so that a flood of events holds up nobody
// who asks for load and health.
type shelf struct {
	dirty chan struct{} // one element while something waits to be taken off

	mu      sync.Mutex
	index   *blocks.Index
	holders map[*holder]struct{}
}

func newShelf(pool string, counters kvevents.Counters) *shelf {
	return &shelf{
		dirty:   make(chan struct{}, 1),
		index:   blocks.New(pool, counters),
		holders: make(map[*holder]struct{}),
	}
}

// enter makes the holder of a replica.
func (s *shelf) enter(owner *replica) *holder {
	h := &holder{shelf: s, owner: owner, slot: owner.place.slot}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders[h] = struct{}{}
	return h
}

// touch says that there is something to take off.
func (s *shelf) touch() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// changes are what was taken off a shelf at one moment.
type changes struct {
	records   []state.Record
	standings map[*replica]standing // those that changed
}

// run takes off what has changed until ctx ends. Changes are gathered for as
// long as coalesce says.
func (s *shelf) run(ctx context.Context, coalesce time.Duration, tell func(changes)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		if !sleep(ctx, coalesce) {
			return
		}
		tell(s.take())
	}
}

func (s *shelf) take() changes {
	c := changes{standings: make(map[*replica]standing)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.Records(func(id uint64, payload []byte) {
		c.records = append(c.records, state.Record{ID: id, Payload: payload})
	})
	for h := range s.holders {
		if now := h.standing(); now != h.told {
			h.told = now
			c.standings[h.owner] = now
		}
	}
	return c
}
