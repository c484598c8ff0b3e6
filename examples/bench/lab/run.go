package lab

import (
	"fmt"
	"slices"
)

// Result is what a run measured. Times are in seconds.
type Result struct {
	Policy   string  `json:"policy"`
	Requests int     `json:"requests"`
	HitRatio float64 `json:"hit_ratio"` // cached prompt tokens / prompt tokens
	TTFTMean float64 `json:"ttft_mean_s"`
	TTFTP50  float64 `json:"ttft_p50_s"`
	TTFTP90  float64 `json:"ttft_p90_s"`
	TTFTP99  float64 `json:"ttft_p99_s"`
	EndToEnd float64 `json:"end_to_end_mean_s"`
	// Skew is the most any engine computed, over the mean.
	Skew float64 `json:"work_max_over_mean"`
}

// run is one play of a workload.
type run struct {
	reqs    []Request
	engines []*Engine
	policy  Policy
	ttft    []float64
	total   float64
	cached  int
	done    int
}

// Run plays the workload against a fleet of engines under the named policy
// (see [Policies]).
func Run(name string, reqs []Request, fleet int, cfg EngineConfig, seed uint64) (Result, error) {
	engines := make([]*Engine, fleet)
	for i := range engines {
		engines[i] = NewEngine(cfg)
	}
	p, err := newPolicy(name, engines, seed)
	if err != nil {
		return Result{}, err
	}
	for i := range reqs {
		if n := blocks(reqs[i].Input + reqs[i].Output); n > cfg.CacheBlocks {
			return Result{}, fmt.Errorf("request %d needs %d blocks, an engine has %d", i, n, cfg.CacheBlocks)
		}
	}
	r := &run{reqs: reqs, engines: engines, policy: p}
	r.play()
	return r.result(name), nil
}

// headDelay is how long after its arrival an engine sends the head of a
// stream, in microseconds: long before the first token.
const headDelay = 20_000

// play takes arrivals, heads and step ends in the order of their times.
func (r *run) play() {
	next, head := 0, 0
	places := make([]int, len(r.reqs))
	for r.done < len(r.reqs) {
		e, at := r.earliest()
		arrival, answer := never, never
		if next < len(r.reqs) {
			arrival = r.reqs[next].At
		}
		if head < next {
			answer = r.reqs[head].At + headDelay
		}
		switch min(arrival, answer, at) {
		case answer:
			x := r.engines[places[head]]
			r.policy.Head(answer, head, x.owed(), x.inFlight())
			head++
		case arrival:
			places[next] = r.policy.Pick(arrival, next, &r.reqs[next])
			r.engines[places[next]].submit(arrival, next, &r.reqs[next])
			next++
		default:
			e.end(r)
		}
	}
}

// never is later than anything.
const never = int64(1) << 62

// earliest is the engine whose step ends first.
func (r *run) earliest() (*Engine, int64) {
	var first *Engine
	at := never
	for _, e := range r.engines {
		if e.stepEnd > 0 && e.stepEnd < at {
			first, at = e, e.stepEnd
		}
	}
	return first, at
}

func (r *run) first(now int64, id, cached int) {
	r.ttft = append(r.ttft, float64(now-r.reqs[id].At)/1e6)
	r.cached += cached
	r.policy.First(now, id)
}

func (r *run) finished(now int64, id int) {
	r.total += float64(now-r.reqs[id].At) / 1e6
	r.done++
	r.policy.Done(now, id)
}

func (r *run) result(name string) Result {
	slices.Sort(r.ttft)
	n := len(r.ttft)
	res := Result{
		Policy: name, Requests: n,
		TTFTP50: r.ttft[n/2], TTFTP90: r.ttft[n*90/100], TTFTP99: r.ttft[n*99/100],
		EndToEnd: r.total / float64(n),
	}
	prompts, most, all := 0, 0, 0
	for i := range r.reqs {
		prompts += r.reqs[i].Input
	}
	for _, e := range r.engines {
		most, all = max(most, e.done), all+e.done
	}
	for _, t := range r.ttft {
		res.TTFTMean += t / float64(n)
	}
	res.HitRatio = float64(r.cached) / float64(prompts)
	res.Skew = float64(most) * float64(len(r.engines)) / float64(max(all, 1))
	return res
}
