package engine

import "slices"

// finish completes the step under way: what was computed becomes visible in the
// cache, the events go out, then each request that has computed all its tokens
// gets its next one.
func (e *Engine) finish() {
	for _, c := range e.step.work {
		c.r.computed += c.n
		e.commit(c.r)
	}
	e.flush()
	for _, c := range e.step.work {
		e.sample(c.r)
	}
	e.leave()
	e.stats.adapters(e.now, e.waiting, e.running)
}

// commit publishes the blocks of r that the step filled.
func (e *Engine) commit(r *Request) {
	size := e.cfg.BlockSize
	full := r.computed / size
	if full <= r.stored {
		return
	}
	r.hashes = r.hasher.extend(r.hashes, r.tokens[:full*size])
	// Blocks and event share one copy of the step's tokens: the sequence's own
	// would be kept alive as a whole by its last cached block.
	tokens := slices.Clone(r.tokens[r.stored*size : full*size])
	base, from := r.stored, r.stored
	for i := base; i < full; i++ {
		if e.fill(r, i, tokens[(i-base)*size:(i-base+1)*size]) {
			continue
		}
		// Another copy is cached: the run of new blocks ends before this one.
		e.announce(r, from, i, tokens[(from-base)*size:])
		from = i + 1
	}
	e.announce(r, from, full, tokens[(from-base)*size:])
	r.stored = full
}

// fill names r's i-th block and enters it into the index, if it is not there.
func (e *Engine) fill(r *Request, i int, tokens []Token) bool {
	b := r.blocks[i]
	b.hash, b.root = r.hashes[i], i == 0
	if i > 0 {
		b.parent = r.hashes[i-1]
	}
	if !e.cache.publish(b) {
		return false
	}
	b.tokens = tokens
	b.extra = r.spec.Space.extraKeys(i == 0)
	return true
}

// announce notes the event for blocks [from, to), whose tokens are the first of tokens.
func (e *Engine) announce(r *Request, from, to int, tokens []Token) {
	if from < to {
		e.pending = append(e.pending, e.stored(r, from, to, tokens[:(to-from)*e.cfg.BlockSize]))
	}
}

// flush hands out the events collected since the last step that had any.
func (e *Engine) flush() {
	if len(e.pending) == 0 {
		return
	}
	if e.cfg.OnBatch != nil {
		e.cfg.OnBatch(e.now, e.pending)
	}
	e.pending = nil
}

// sample generates r's next token if all before it are computed.
func (e *Engine) sample(r *Request) {
	if r.aborted || r.computed < len(r.tokens) {
		return
	}
	i := r.output()
	token, text := r.answer.token(i)
	r.tokens = append(r.tokens, token)
	out := Output{Request: r, Token: token, Text: text, Index: i + 1, At: e.now, Finish: e.ending(r, i+1)}
	e.stats.sampled(r, e.now, out.Finish)
	if r.first == 0 {
		r.first = e.now
	}
	r.last = e.now
	if out.Finish != "" {
		r.phase = phaseDone
	}
	if r.spec.Deliver != nil {
		r.spec.Deliver(out)
	}
}

// ending tells whether the answer ends with its n-th token, and why.
func (e *Engine) ending(r *Request, n int) Finish {
	switch {
	case r.answer.stop > 0 && n >= r.answer.stop:
		return FinishStop
	case r.spec.MaxTokens > 0 && n >= r.spec.MaxTokens, len(r.tokens) >= e.cfg.MaxModelLen:
		return FinishLength
	}
	return ""
}

// leave takes requests that are done or aborted out of the running ones.
func (e *Engine) leave() {
	keep := e.running[:0]
	for _, r := range e.running {
		if r.phase == phaseDone || r.aborted {
			e.drop(r)
			continue
		}
		keep = append(keep, r)
	}
	clear(e.running[len(keep):])
	e.running = keep
}
