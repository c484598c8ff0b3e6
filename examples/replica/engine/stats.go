package engine

import (
	"slices"
	"strings"
	"time"
)

// Stats is what an engine counts. Tokens, seconds of engine time, requests.
type Stats struct {
	Running, Waiting, Deferred int     // requests now; deferred ones wait for an adapter's place
	Usage                      float64 // share of blocks in use, 0 to 1
	Backlog                    int     // tokens left to prefill

	Queried, Hit                       uint64 // prompt tokens looked up in the cache, and found
	Prefilled, Generated               uint64 // prompt tokens and answer tokens
	Preemptions, Rejected              uint64
	Finished                           map[Finish]uint64
	Steps, TTFT, TokenGap, PerToken    Histogram // TokenGap: between two tokens; PerToken: mean of a request
	Latency, Queue, Inference          Histogram
	Prefill, Decode                    Histogram
	PromptLen, AnswerLen, MaxTokens    Histogram
	Computed, Preempted, RequestCopies Histogram

	// Adapters holds the combinations of active adapters seen so far with the
	// time they were last seen: names sorted and joined by commas.
	Adapters map[string]time.Duration
}

// Histogram counts observations: Counts[i] those at most Bounds[i], the last one
// all others.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Total is the number of observations.
func (h *Histogram) Total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func (h *Histogram) add(v float64) {
	i, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[i]++
	h.Sum += v
}

// The bounds are vLLM's.
var (
	boundsSteps = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	boundsTTFT  = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	boundsGap   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	boundsWhole = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	boundsN     = []float64{1, 2, 5, 10, 20}
	boundsPre   = []float64{1, 2, 3, 4, 5, 10, 20}
)

// boundsTokens is the series 1, 2, 5, 10, ... up to the longest request.
func boundsTokens(longest int) (bounds []float64) {
	for decade := 1; ; decade *= 10 {
		for _, m := range [...]int{1, 2, 5} {
			if m*decade > longest {
				return bounds
			}
			bounds = append(bounds, float64(m*decade))
		}
	}
}

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func newStats(longest int) Stats {
	h, tokens := newHistogram, boundsTokens(longest)
	return Stats{
		Finished: map[Finish]uint64{}, Adapters: map[string]time.Duration{},
		Steps: h(boundsSteps), TTFT: h(boundsTTFT), TokenGap: h(boundsGap), PerToken: h(boundsGap),
		Latency: h(boundsWhole), Queue: h(boundsWhole), Inference: h(boundsWhole),
		Prefill: h(boundsWhole), Decode: h(boundsWhole),
		PromptLen: h(tokens), AnswerLen: h(tokens), MaxTokens: h(tokens),
		Computed: h(tokens), Preempted: h(boundsPre), RequestCopies: h(boundsN),
	}
}

// Stats returns a copy of the counters as of now.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting = len(e.running), len(e.waiting)
	s.Usage = float64(e.cache.used()) / float64(e.cache.total)
	s.Backlog = e.Backlog()
	s.Finished, s.Adapters = copyMap(s.Finished), copyMap(s.Adapters)
	for _, h := range s.histograms() {
		h.Counts = slices.Clone(h.Counts)
	}
	return s
}

// Load is the part of Stats that load reports need; it costs nothing to take.
func (e *Engine) Load() (running, waiting int, usage float64) {
	return len(e.running), len(e.waiting), float64(e.cache.used()) / float64(e.cache.total)
}

func (s *Stats) histograms() []*Histogram {
	return []*Histogram{&s.Steps, &s.TTFT, &s.TokenGap, &s.PerToken, &s.Latency, &s.Queue, &s.Inference,
		&s.Prefill, &s.Decode, &s.PromptLen, &s.AnswerLen, &s.MaxTokens, &s.Computed, &s.Preempted, &s.RequestCopies}
}

func copyMap[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (s *Stats) step(tokens int) { s.Steps.add(float64(tokens)) }

// entered counts a request that runs for the first time.
func (s *Stats) entered(r *Request, cached int) {
	s.Queried += uint64(len(r.tokens))
	s.Hit += uint64(cached)
}

// sampled counts a token, before the request's own times are brought up to date.
func (s *Stats) sampled(r *Request, now time.Duration, finish Finish) {
	s.Generated++
	if r.first == 0 {
		s.Prefilled += uint64(len(r.spec.Prompt))
		s.TTFT.add((now - r.arrived).Seconds())
	} else {
		s.TokenGap.add((now - r.last).Seconds())
	}
	if finish != "" {
		s.finished(r, now, finish)
	}
}

func (s *Stats) finished(r *Request, now time.Duration, finish Finish) {
	s.Finished[finish]++
	first := r.first
	if first == 0 {
		first = now // a single token
	}
	n := r.output()
	s.Latency.add((now - r.arrived).Seconds())
	s.Queue.add((r.started - r.arrived).Seconds())
	s.Inference.add((now - r.started).Seconds())
	s.Prefill.add((first - r.started).Seconds())
	s.Decode.add((now - first).Seconds())
	if n > 1 {
		s.PerToken.add((now - first).Seconds() / float64(n-1))
	}
	s.PromptLen.add(float64(len(r.spec.Prompt)))
	s.AnswerLen.add(float64(n))
	s.MaxTokens.add(float64(max(n, r.spec.MaxTokens)))
	s.Computed.add(float64(len(r.spec.Prompt) - r.cached))
	s.Preempted.add(float64(r.preempted))
	s.RequestCopies.add(1)
}

// maxAdapterSets bounds the combinations kept; a real engine keeps them all for
// ever, which a small model of it need not copy.
const maxAdapterSets = 256

// adapters notes which adapters are active after a step.
func (s *Stats) adapters(now time.Duration, lists ...[]*Request) {
	names := activeAdapters(lists...)
	if len(names) == 0 && len(s.Adapters) == 0 {
		return
	}
	slices.Sort(names)
	key := strings.Join(names, ",")
	if _, known := s.Adapters[key]; known || len(s.Adapters) < maxAdapterSets {
		s.Adapters[key] = now
	}
}

// activeAdapters lists the adapters that requests of the lists use.
func activeAdapters(lists ...[]*Request) (names []string) {
	for _, list := range lists {
		for _, r := range list {
			if a := r.spec.Space.Adapter; a != "" && !slices.Contains(names, a) {
				names = append(names, a)
			}
		}
	}
	return names
}
