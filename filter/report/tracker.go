package report

import (
	"math"

	"github.com/warmlane/warmlane/filter/state"
)

// Rates and the hit ratio are taken over a window, as control takes them: the
// newest text against the oldest one that is at most windowMS old.
const (
	windowMS   = 10_000
	markMS     = 1000 // between two marks that are kept
	minRateMS  = 1000 // shorter spans give no rate: noise
	windowSize = windowMS/markMS + 1
)

// counters is what a window compares.
type counters struct {
	at                                 int64 // ms
	queries, hits, finished, generated total
}

// tracker makes of metrics texts in a row what a single one does not say.
type tracker struct {
	marks [windowSize]counters // oldest first
	n     int
	hit   float32
}

func newTracker() tracker { return tracker{hit: nan} }

var nan = float32(math.NaN())

// observe takes in a text and gives what the engine is at now.
func (t *tracker) observe(s *scanner, now int64) sample {
	v := sample{Load: state.NoLoad(), gpu: nan, gpuMemory: nan}
	v.At = now
	v.Waiting, v.Running = count(s.totals[waiting]), count(s.totals[running])
	v.KV = mean(s.totals[kvUsage], 1000, 1)
	v.gpu = mean(s.totals[gpuUtil], 1000, 100)
	if used, free := s.totals[gpuUsed], s.totals[gpuFree]; used.n > 0 && free.n > 0 && used.sum+free.sum > 0 {
		v.gpuMemory = quantum(used.sum/(used.sum+free.sum), 1000)
	}
	t.rates(counters{now, s.totals[queries], s.totals[hits], s.totals[finished], s.totals[generated]}, &v.Load)
	return v
}

func (t *tracker) rates(c counters, l *state.Load) {
	old, ok := t.mark(c)
	if span := c.at - old.at; ok && span >= minRateMS {
		l.RPS = rate(old.finished, c.finished, span)
		l.TPS = rate(old.generated, c.generated, span)
	}
	if ok && old.queries.n > 0 && old.hits.n > 0 && c.hits.n > 0 && c.queries.sum > old.queries.sum {
		t.hit = quantum(max(c.hits.sum-old.hits.sum, 0)/(c.queries.sum-old.queries.sum), 100)
	}
	l.Hit = t.hit
}

// mark keeps c for later comparison, if it is time, and gives the mark to
// compare it with. Counters that went back are another engine's, and so are
// marks from a clock that has been set back since.
func (t *tracker) mark(c counters) (oldest counters, ok bool) {
	if t.n > 0 && t.marks[t.n-1].after(c) {
		t.n, t.hit = 0, nan
	}
	drop := 0
	for drop < t.n-1 && c.at-t.marks[drop].at > windowMS {
		drop++
	}
	t.n = copy(t.marks[:], t.marks[drop:t.n])
	if t.n > 0 {
		oldest, ok = t.marks[0], true
	}
	if t.n == 0 || c.at-t.marks[t.n-1].at >= markMS {
		if t.n == windowSize {
			t.n = copy(t.marks[:], t.marks[1:])
		}
		t.marks[t.n] = c
		t.n++
	}
	return oldest, ok
}

// after says that m cannot have come before c.
func (m *counters) after(c counters) bool {
	return m.at > c.at || fell(m.queries, c.queries) || fell(m.hits, c.hits) ||
		fell(m.finished, c.finished) || fell(m.generated, c.generated)
}

// fell reports whether a counter went back. One that is not there says nothing.
func fell(before, now total) bool { return before.n > 0 && now.n > 0 && now.sum < before.sum }

// rate is what a counter grew by per second; NaN if it was not there.
func rate(before, now total, span int64) float32 {
	if before.n == 0 || now.n == 0 {
		return nan
	}
	return quantum((now.sum-before.sum)*1000/float64(span), 10)
}

// count turns a sum of gauges into a count; -1 if there was none.
func count(t total) int32 {
	if t.n == 0 {
		return -1
	}
	return int32(min(t.sum, math.MaxInt32))
}

// mean is the mean of gauges that run from 0 to full, as a part of 1, rounded
// to one of so many parts; NaN if there was none.
func mean(t total, parts, full float64) float32 {
	if t.n == 0 {
		return nan
	}
	return quantum(min(t.sum/float64(t.n)/full, 1), parts)
}

// quantum rounds v, not negative, to 1/parts, so that it is short to write.
func quantum(v, parts float64) float32 {
	return float32(math.Floor(v*parts+0.5) / parts)
}
