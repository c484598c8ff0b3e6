package load

import (
	"math"
	"slices"
	"time"
)

// Report sums up the outcomes of a run.
type Report struct {
	Requests     int
	Errors       int
	PromptTokens int
	CachedTokens int
	TTFT         []time.Duration // of all requests that had a first token, ascending
}

// Summarize makes the report of outcomes.
func Summarize(outcomes []Outcome) Report {
	r := Report{Requests: len(outcomes)}
	for _, out := range outcomes {
		if out.Err != nil {
			r.Errors++
		}
		r.PromptTokens += out.Usage.Prompt
		r.CachedTokens += out.Usage.Cached
		if out.TTFT > 0 {
			r.TTFT = append(r.TTFT, out.TTFT)
		}
	}
	slices.Sort(r.TTFT)
	return r
}

// HitRatio is the share of prompt tokens that were found in a cache, 0 if nothing was asked.
func (r Report) HitRatio() float64 {
	if r.PromptTokens == 0 {
		return 0
	}
	return float64(r.CachedTokens) / float64(r.PromptTokens)
}

// TTFTAt is the time to first token that a share q of the requests stayed within, 0 < q <= 1 (nearest rank); 0 if there is none.
func (r Report) TTFTAt(q float64) time.Duration {
	if len(r.TTFT) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(r.TTFT))))
	return r.TTFT[min(max(rank, 1), len(r.TTFT))-1]
}
