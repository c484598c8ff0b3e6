package collect

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// startTolerance is how far two readings of one process's start time may lie
// apart: some exporters compute it from the clock each time.
const startTolerance = 2 // seconds

// tracker makes of samples in a row what a single one does not say: rates, the
// hit ratio, and whether the engine is the one of before. It outlives the
// goroutine that feeds it, so that an address that comes back is compared with
// what was there.
type tracker struct {
	known       bool
	last        Sample
	start       float64 // of the engine's process
	resets      uint32  // of the counters while start stayed the same
	window      window
	hit         float32
	block       uint32
	cacheTokens uint32
}

// observe takes in a sample and returns the load at that moment.
func (t *tracker) observe(s *Sample, at time.Time) state.Load {
	if !t.known {
		t.hit = nan
		t.start = s.Start
	} else if t.restarted(s) {
		t.window.reset()
		t.hit = nan
	}
	t.known = true
	t.last = *s
	t.sizes(s)
	l := state.NoLoad()
	l.At = at.UnixMilli()
	l.Waiting, l.Running = count(s.Waiting), count(s.Running)
	if s.KV.N > 0 {
		l.KV = quantum(s.KV.Sum/float64(s.KV.N), 1000)
	}
	t.rates(s, at, &l)
	return l
}

// restarted reports whether s comes from another process or engine than the
// sample before it, and takes note of that.
func (t *tracker) restarted(s *Sample) bool {
	fell := fell(t.last.Queries, s.Queries) || fell(t.last.Generated, s.Generated) ||
		fell(t.last.Prompt, s.Prompt) || fell(t.last.Finished, s.Finished)
	// A start time that is not said has not changed.
	if s.Start != 0 && s.Start != t.start && (fell || math.Abs(s.Start-t.start) > startTolerance) {
		t.start, t.resets = s.Start, 0
		return true
	}
	if fell {
		t.resets++
	}
	return fell
}

// fell reports whether a counter went back. One that was not there, or is not
// there now, says nothing.
func fell(before, now Total) bool {
	return before.N > 0 && now.N > 0 && now.Sum < before.Sum
}

// sizes takes over what is said about the cache; an engine that is still
// loading does not say it yet.
func (t *tracker) sizes(s *Sample) {
	if s.BlockSize > 0 {
		t.block = s.BlockSize
	}
	if s.CacheTokens > 0 {
		t.cacheTokens = uint32(min(s.CacheTokens, math.MaxUint32))
	}
}

func (t *tracker) rates(s *Sample, at time.Time, l *state.Load) {
	now := counters{at, s.Queries.Sum, s.Hits.Sum, s.Finished.Sum, s.Generated.Sum}
	old, ok := t.window.add(now)
	span := at.Sub(old.at)
	if ok && span >= minRate {
		if s.Finished.N > 0 {
			l.RPS = rate(now.finished-old.finished, span)
		}
		if s.Generated.N > 0 {
			l.TPS = rate(now.generated-old.generated, span)
		}
	}
	if ok && s.Hits.N > 0 && now.queries > old.queries {
		t.hit = quantum(min(max((now.hits-old.hits)/(now.queries-old.queries), 0), 1), 100)
	}
	l.Hit = t.hit
}

// incarnation is a number for the engine's process that every control
// instance arrives at, and that is never 0 once a sample was seen.
func (t *tracker) incarnation() uint32 {
	if !t.known {
		return 0
	}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], uint64(int64(t.start*1000)))
	binary.LittleEndian.PutUint32(b[8:], t.resets)
	h := fnv.New32a()
	h.Write(b[:])
	return max(h.Sum32(), 1)
}

var nan = float32(math.NaN())

// count turns a sum of gauges into a count; -1 if there was none.
func count(t Total) int32 {
	if t.N == 0 {
		return -1
	}
	return int32(min(t.Sum, math.MaxInt32))
}

// quantum rounds v to 1/parts, so that jitter nobody can use is not news.
func quantum(v, parts float64) float32 {
	return float32(math.Round(v*parts) / parts)
}

// rate is what a counter grew by per second, to three digits.
func rate(delta float64, span time.Duration) float32 {
	v := max(delta, 0) / span.Seconds()
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return float32(math.Round(v/unit) * unit)
}
