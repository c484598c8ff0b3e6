package collect

import "time"

// agenda says when to publish. The pools and the KV index have dates of their
// own: blocks change all the time, and need not make everybody read what has
// not changed of the pools. Zero times are no dates.
type agenda struct {
	pools, index time.Time
	urgent       bool // the pools have changed in more than their load

	published time.Time // the pools, last
}

// state sets the date of the pools if it is earlier than the one there is.
func (a *agenda) state(at time.Time, urgent bool) {
	a.urgent = a.urgent || urgent
	if a.pools.IsZero() || at.Before(a.pools) {
		a.pools = at
	}
}

// blocks sets the date of the index likewise.
func (a *agenda) blocks(at time.Time) {
	if a.index.IsZero() || at.Before(a.index) {
		a.index = at
	}
}

// next takes what is due off the agenda. Pools whose change is urgent go with
// an index that is due: a replica's blocks are told together with what the
// replica is.
func (a *agenda) next(now time.Time) (pools, index bool) {
	index = !a.index.IsZero() && !now.Before(a.index)
	pools = !a.pools.IsZero() && (index && a.urgent || !now.Before(a.pools))
	if pools {
		a.pools, a.urgent, a.published = time.Time{}, false, now
	}
	if pools || index {
		a.index = time.Time{}
	}
	return pools, index
}

// wait is how long until something is due.
func (a *agenda) wait(now time.Time) time.Duration {
	next := a.pools
	if next.IsZero() || !a.index.IsZero() && a.index.Before(next) {
		next = a.index
	}
	if next.IsZero() {
		return time.Hour
	}
	return next.Sub(now)
}
