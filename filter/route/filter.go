package route

import "github.com/warmlane/warmlane/filter/state"

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

// sift returns the filter that drops the slot, or NumFilters.
func (r *Router) sift(q *Query, model uint64, slot int, now int64) Filter {
	l := &r.table.lanes[slot]
	switch {
	case len(q.Model) > 0 && !r.table.serves(l, model):
		return FilterModel
	case l.health == state.Unhealthy:
		return FilterUnhealthy
	case l.health == state.Draining:
		return FilterDraining
	case q.Exclude.Has(slot):
		return FilterTried
	case !r.books.holds(slot, l.key):
		return FilterStale
	case r.books.avoided(slot, now):
		return FilterAvoid
	case l.health == state.Unknown:
		return FilterUnknown
	}
	return NumFilters
}
