package engine

import "time"

// Config says how large and how fast an engine is. The zero value of a field
// means its default. Times are in the engine's own (simulated) time.
type Config struct {
	BlockSize    int     // tokens in a block; default 16
	Blocks       int     // blocks of cache, one of which is never used, as in vLLM; default 31,250
	MaxSeqs      int     // requests running at once; default 64
	BatchTokens  int     // tokens a step may compute; default 2,048
	MaxQueued    int     // waiting requests beyond which Submit refuses; 0: no limit
	MaxAdapters  int     // different adapters among running requests; 0: no limit
	MaxModelLen  int     // longest prompt plus answer; default 131,072, at most what the cache holds
	PrefillRate  float64 // uncached prompt tokens per second; default 8,000
	DecodeRate   float64 // tokens per second of one request running alone; default 60
	DecodeFull   float64 // tokens per second of each of MaxSeqs requests; default 25
	AnswerTokens int     // longest answer to a request without a limit of its own; default 64
	HashSeed     string  // seed of the block hashes; equal seeds give equal hashes; default "vllm-none-hash"
	SingleCopy   bool    // do not keep a second copy of a block that is already cached

	// OnBatch receives the events of a step that had any, when the step is done
	// and before its outputs are delivered. It must not call the engine.
	OnBatch func(at time.Duration, events []Event)
}

// withDefaults fills in what was left zero and bounds what depends on the rest.
func (c Config) withDefaults() Config {
	setInt := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	setRate := func(p *float64, v float64) {
		if *p <= 0 {
			*p = v
		}
	}
	setInt(&c.BlockSize, 16)
	setInt(&c.Blocks, 31250)
	c.Blocks = max(c.Blocks, 2)
	setInt(&c.MaxSeqs, 64)
	setInt(&c.BatchTokens, 2048)
	setInt(&c.MaxModelLen, 131072)
	setInt(&c.AnswerTokens, 64)
	setRate(&c.PrefillRate, 8000)
	setRate(&c.DecodeRate, 60)
	setRate(&c.DecodeFull, 25)
	if c.HashSeed == "" {
		c.HashSeed = "vllm-none-hash"
	}
	// A request that fits alone can always be served by preempting the others.
	c.MaxModelLen = min(c.MaxModelLen, (c.Blocks-1)*c.BlockSize)
	return c
}

// stepTime is how long a step takes that computes prefill prompt tokens and one
// token for each of decode requests. Decoding slows down linearly, from
// DecodeRate alone to DecodeFull at MaxSeqs.
func (c *Config) stepTime(prefill, decode int) time.Duration {
	s := float64(prefill) / c.PrefillRate
	if decode > 0 {
		alone, full := 1/c.DecodeRate, 1/c.DecodeFull
		s += alone
		if c.MaxSeqs > 1 {
			s += (full - alone) * float64(decode-1) / float64(c.MaxSeqs-1)
		}
	}
	return time.Duration(s * float64(time.Second))
}
