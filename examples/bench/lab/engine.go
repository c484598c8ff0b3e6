package lab

import "math"

// EngineConfig describes one kind of replica.
type EngineConfig struct {
	PrefillRate  float64 // uncached prompt tokens per second
	StepTokens   int     // tokens of a step, prefill and decode together
	DecodeAlone  float64 // tokens per second of a single running request
	DecodeCrowd  float64 // of each of CrowdSize running ones
	CrowdSize    int
	CacheBlocks  int // of 16 tokens
	MaxSequences int
}

// DefaultEngine is an 8B model on one large GPU.
func DefaultEngine() EngineConfig {
	return EngineConfig{
		PrefillRate: 16000, StepTokens: 2048, DecodeAlone: 60, DecodeCrowd: 25, CrowdSize: 64,
		CacheBlocks: 31250, MaxSequences: 256,
	}
}

// Engine is one replica in virtual time. It works in steps; between Begin and
// End of a step only Submit changes it.
type Engine struct {
	cfg     EngineConfig
	cache   *cache
	waiting []*job
	running []*job
	stepEnd int64 // end of the step under way, microseconds; 0 = idle
	done    int   // prompt tokens computed, ever
}

// job is one request inside an engine.
type job struct {
	id      int
	req     *Request
	cached  int // tokens found in the cache at admission
	filled  int // prompt tokens resident or computed
	plan    int // prompt tokens of the step under way
	chunks  int // chunks pinned
	private int // blocks reserved beyond them
	output  int // tokens generated
}

// NewEngine returns an idle, cold engine.
func NewEngine(cfg EngineConfig) *Engine {
	return &Engine{cfg: cfg, cache: newCache(cfg.CacheBlocks)}
}

// clone copies everything a prediction may change.
func (e *Engine) clone() *Engine {
	d := *e
	d.cache = e.cache.clone()
	d.waiting, d.running = cloneJobs(e.waiting), cloneJobs(e.running)
	return &d
}

func cloneJobs(jobs []*job) []*job {
	all := make([]job, len(jobs))
	out := make([]*job, len(jobs))
	for i, j := range jobs {
		all[i] = *j
		out[i] = &all[i]
	}
	return out
}

// submit queues a request; an idle engine starts a step with it.
func (e *Engine) submit(now int64, id int, r *Request) {
	e.waiting = append(e.waiting, &job{id: id, req: r})
	if e.stepEnd == 0 {
		e.begin(now)
	}
}

// begin plans a step: running requests first, then whoever can be admitted.
func (e *Engine) begin(now int64) {
	budget, decoding := e.cfg.StepTokens, 0
	for _, j := range e.running {
		if j.filled == j.req.Input {
			budget--
			decoding++
		}
	}
	prefill := 0
	for _, j := range e.running {
		prefill += j.planPrefill(budget - prefill)
	}
	for len(e.waiting) > 0 && prefill < budget && len(e.running) < e.cfg.MaxSequences {
		j := e.waiting[0]
		if !e.admit(j) {
			break
		}
		e.waiting = e.waiting[1:]
		e.running = append(e.running, j)
		prefill += j.planPrefill(budget - prefill)
	}
	e.stepEnd = 0
	if len(e.running) > 0 {
		e.stepEnd = now + e.stepTime(prefill, decoding)
	}
}

func (j *job) planPrefill(budget int) int {
	j.plan = max(min(j.req.Input-j.filled, budget), 0)
	return j.plan
}

// admit reserves memory for prompt and output. The last token of a prompt is
// always computed, whatever is cached.
func (e *Engine) admit(j *job) bool {
	n := e.cache.match(j.req)
	have, tokens := 0, 0
	for i := range n {
		e.cache.chunks[j.req.Chunks[i]].pins++
		have += e.cache.chunks[j.req.Chunks[i]].blocks
		tokens += j.req.chunkTokens(i)
	}
	need := blocks(j.req.Input+j.req.Output) - have
	if !e.cache.reserve(need) {
		for i := range n {
			e.cache.chunks[j.req.Chunks[i]].pins--
		}
		return false
	}
	j.chunks, j.private = n, need
	j.cached = min(tokens, j.req.Input-1)
	j.filled = j.cached
	return true
}

func blocks(tokens int) int { return (tokens + blockTokens - 1) / blockTokens }

// stepTime is the time of a step in microseconds.
func (e *Engine) stepTime(prefill, decoding int) int64 {
	t := float64(prefill) / e.cfg.PrefillRate
	if decoding > 0 {
		t += e.decodeTime(decoding)
	}
	return max(int64(math.Ceil(t*1e6)), 1)
}

// decodeTime is what n decoding requests add to a step, in seconds: it grows
// with each by the same amount.
func (e *Engine) decodeTime(n int) float64 {
	alone, crowd := 1/e.cfg.DecodeAlone, 1/e.cfg.DecodeCrowd
	return alone + (crowd-alone)*float64(n-1)/float64(e.cfg.CrowdSize-1)
}

// listener hears what a step brought.
type listener interface {
	first(now int64, id int, cached int)
	finished(now int64, id int)
}

// end finishes the step under way and begins the next.
func (e *Engine) end(l listener) {
	now := e.stepEnd
	keep := e.running[:0]
	for _, j := range e.running {
		if e.advance(now, j, l) {
			keep = append(keep, j)
		}
	}
	clear(e.running[len(keep):])
	e.running = keep
	e.begin(now)
}

// advance moves one request by the step; false when it is finished.
func (e *Engine) advance(now int64, j *job, l listener) bool {
	if j.filled == j.req.Input {
		j.output++
	} else if j.plan > 0 {
		e.prefill(j)
		if j.filled < j.req.Input {
			return true
		}
		j.output = 1
		l.first(now, j.id, j.cached)
	} else {
		return true
	}
	if j.output < j.req.Output {
		return true
	}
	e.cache.unpin(j.req, j.chunks)
	e.cache.used -= j.private
	l.finished(now, j.id)
	return false
}

// prefill accounts for the planned tokens and caches the chunks they complete.
func (e *Engine) prefill(j *job) {
	j.filled += j.plan
	e.done += j.plan
	for j.chunks < len(j.req.Chunks) {
		tokens := j.req.chunkTokens(j.chunks)
		if j.chunks*ChunkTokens+tokens > j.filled {
			return
		}
		n := tokens / blockTokens
		e.cache.fill(j.req.Chunks[j.chunks], n)
		j.private -= n
		j.chunks++
	}
}

// owed is how many prompt tokens are still to be computed, as far as the
// engine can tell before admission.
func (e *Engine) owed() int {
	n := 0
	for _, j := range e.running {
		n += j.req.Input - j.filled
	}
	for _, j := range e.waiting {
		hit := 0
		for i := range e.cache.match(j.req) {
			hit += j.req.chunkTokens(i)
		}
		n += j.req.Input - hit
	}
	return n
}

func (e *Engine) inFlight() int { return len(e.running) + len(e.waiting) }
