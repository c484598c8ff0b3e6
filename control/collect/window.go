package collect

import "time"

// Rates and ratios are taken over a window: the newest sample against the
// oldest one that is at most windowAge old.
const (
	windowAge  = 10 * time.Second
	windowStep = time.Second // between two marks that are kept
	minRate    = time.Second // shorter spans give no rate: noise
)

// counters is what a window compares.
type counters struct {
	at                                 time.Time
	queries, hits, finished, generated float64
}

// window keeps marks of the past, one for each windowStep at most.
type window struct {
	marks []counters // oldest first
}

// add takes in a sample and returns the mark to compare it with.
func (w *window) add(c counters) (oldest counters, ok bool) {
	drop := 0
	for drop < len(w.marks)-1 && c.at.Sub(w.marks[drop].at) > windowAge {
		drop++
	}
	w.marks = append(w.marks[:0], w.marks[drop:]...)
	n := len(w.marks)
	if n > 0 {
		oldest, ok = w.marks[0], true
	}
	if n == 0 || c.at.Sub(w.marks[n-1].at) >= windowStep {
		w.marks = append(w.marks, c)
	}
	return oldest, ok
}

// reset forgets the past, as the counters have begun anew.
func (w *window) reset() { w.marks = w.marks[:0] }
