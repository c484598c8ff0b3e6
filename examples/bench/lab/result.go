package lab

import (
	"slices"
	"time"
)

// Result is what a run measured. Times are in seconds.
type Result struct {
	Setting  string  `json:"setting"`
	Policy   string  `json:"policy"`
	Workers  int     `json:"workers"`
	Proxies  int     `json:"proxies"`
	Requests int     `json:"requests"`
	HitRatio float64 `json:"hit_ratio"` // cached prompt tokens / prompt tokens
	TTFTMean float64 `json:"ttft_mean_s"`
	TTFTP50  float64 `json:"ttft_p50_s"`
	TTFTP90  float64 `json:"ttft_p90_s"`
	TTFTP99  float64 `json:"ttft_p99_s"`
	EndToEnd float64 `json:"end_to_end_mean_s"`
	// Skew is the most prompt tokens any engine computed, over the mean.
	Skew          float64 `json:"work_max_over_mean"`
	TokenizeCalls float64 `json:"tokenize_calls_per_request"`
}

// gauge is what is measured on the way.
type gauge struct {
	ttft   []float64
	total  float64
	cached int
	calls  int // of /tokenize
}

func (g *gauge) first(now time.Duration, f *flight) {
	g.ttft = append(g.ttft, (now - f.At).Seconds())
	g.cached += f.job.CachedTokens()
}

func (g *gauge) done(now time.Duration, f *flight) { g.total += (now - f.At).Seconds() }

func (p *play) result(name string, w *Workload) Result {
	g, n := &p.gauge, len(p.gauge.ttft)
	slices.Sort(g.ttft)
	res := Result{
		Setting: w.Setting, Policy: name, Workers: p.options.Workers, Proxies: p.options.Proxies, Requests: n,
		HitRatio: float64(g.cached) / float64(w.PromptTokens()),
		TTFTP50:  g.ttft[n/2], TTFTP90: g.ttft[n*90/100], TTFTP99: g.ttft[n*99/100],
		EndToEnd: g.total / float64(n), TokenizeCalls: float64(g.calls) / float64(n),
	}
	for _, t := range g.ttft {
		res.TTFTMean += t / float64(n)
	}
	most, all := 0, 0
	for _, r := range p.fleet.replicas {
		most, all = max(most, r.work), all+r.work
	}
	res.Skew = float64(most) * float64(len(p.fleet.replicas)) / float64(max(all, 1))
	return res
}
