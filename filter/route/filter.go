package route

import (
	"github.com/cespare/xxhash/v2"

	"github.com/warmlane/warmlane/filter/state"
)

// Filter names a reason for which a replica is no candidate.
type Filter uint8

// Hard filters hold always. Soft ones are lifted when together with the hard
// ones they would leave nobody.
const (
	FilterModel     Filter = iota // does not serve the model
	FilterUnhealthy               // control says so
	FilterDraining                // finishes what it has
	FilterTried                   // excluded by the caller
	FilterStale                   // this worker and the ledger disagree on who is in the slot
	FilterUnknown                 // soft: nothing heard of it yet
	FilterAvoid                   // soft: failed a moment ago
	NumFilters
)

var filterNames = [NumFilters]string{
	"model", "unhealthy", "draining", "tried", "stale", "unknown", "avoid",
}

// String returns the word for metrics.
func (f Filter) String() string {
	if f < NumFilters {
		return filterNames[f]
	}
	return "none"
}

func (f Filter) soft() bool { return f == FilterUnknown || f == FilterAvoid }

// sift returns the filter that drops the slot, or NumFilters. The table has
// been judged for the query's model.
func (r *Router) sift(q *Query, slot int, now int64) Filter {
	l, rec := &r.table.lanes[slot], r.books.page.record(slot)
	switch {
	case l.standing < FilterTried:
		return l.standing
	case q.Exclude.Has(slot):
		return FilterTried
	case rec.u32(recKey) != l.key:
		return FilterStale
	case rec.avoided(now):
		return FilterAvoid
	}
	return l.standing
}

// judge notes for every lane what is against it for requests to model, as far
// as control's word goes. Most requests are for the model of the one before.
func (t *Table) judge(model []byte) {
	if t.judged && string(t.model) == string(model) {
		return
	}
	t.model, t.judged = append(t.model[:0], model...), true
	hash := xxhash.Sum64(model)
	for i := range t.lanes {
		l := &t.lanes[i]
		l.standing = NumFilters
		switch {
		case len(model) > 0 && !t.serves(l, hash):
			l.standing = FilterModel
		case l.health == state.Unhealthy:
			l.standing = FilterUnhealthy
		case l.health == state.Draining:
			l.standing = FilterDraining
		case l.health == state.Unknown:
			l.standing = FilterUnknown
		}
	}
}
