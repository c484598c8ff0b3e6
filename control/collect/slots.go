package collect

import (
	"math"
	"time"
)

// slotRest is how long a slot is kept for the address that had it. Within that
// time filters may still hold what they learned of the old replica under it.
const slotRest = 10 * time.Minute

// key names a replica: one address may serve in two pools, as two replicas.
type key struct{ pool, address string }

// place is what stays of a replica for a while after it has gone.
type place struct {
	slot    uint16
	tracker *tracker
	left    time.Time     // zero while the replica is there
	idle    chan struct{} // closed when the last goroutine that used tracker has ended; nil = none
}

// slots gives each replica a slot that no other one has, over all pools.
type slots struct {
	places map[key]*place
	used   int // slots below this were given out at some time
	free   []uint16
}

// take returns the place of k, the old one if it is still kept. ok is false
// when all slots are taken.
func (s *slots) take(k key) (p *place, ok bool) {
	if s.places == nil {
		s.places = make(map[key]*place)
	}
	if p = s.places[k]; p != nil {
		p.left = time.Time{}
		return p, true
	}
	p = &place{tracker: new(tracker)}
	switch n := len(s.free); {
	case n > 0:
		p.slot, s.free = s.free[n-1], s.free[:n-1]
	case s.used <= math.MaxUint16:
		p.slot = uint16(s.used)
		s.used++
	default:
		return nil, false
	}
	s.places[k] = p
	return p, true
}

// leave keeps the place of k until it has rested.
func (s *slots) leave(k key, now time.Time) {
	if p := s.places[k]; p != nil {
		p.left = now
	}
}

// sweep frees the slots that have rested.
func (s *slots) sweep(now time.Time) {
	for k, p := range s.places {
		if !p.left.IsZero() && now.Sub(p.left) >= slotRest {
			s.free = append(s.free, p.slot)
			delete(s.places, k)
		}
	}
}
