package exchange

// takeUsage learns from what the answer said of its tokens: how good the
// prediction was, how many tokens the prompt has, and what the replica's cache
// took in.
func (e *Exchange) takeUsage(now int64, outcome Outcome) {
	u := &e.said.Usage
	e.ticket.Output = uint32(e.generated())
	switch {
	case u.Has():
		e.charge()
		e.judge(now)
	case outcome == OK && e.head.dialect != byLoad:
		e.worker.tally.add(e.series.unsaid, 1)
	}
	if outcome == OK && e.firstAt != 0 {
		e.pace()
	}
	if e.pool.indexed() {
		e.teach(outcome)
	}
}

// generated is how many tokens the replica has generated: as it says, or as
// many as there were events with output.
func (e *Exchange) generated() int64 {
	if n := e.said.Usage.Completion; n >= 0 {
		return n
	}
	return int64(e.said.Outputs)
}

// charge adds the request's tokens to the metrics.
func (e *Exchange) charge() {
	u, t := &e.said.Usage, e.worker.tally
	for kind, n := range [tokenKinds]int64{promptTokens: u.Prompt, completionTokens: u.Completion, cachedTokens: u.Cached} {
		t.add(e.series.tokens[kind], uint64(max(n, 0)))
	}
}

// pace observes the time each token after the first took.
func (e *Exchange) pace() {
	if n := e.generated() - 1; n > 0 {
		e.worker.tally.observe(e.series.pace, (e.lastAt-e.firstAt)*1000/n)
	}
}

// teach gives tier 2 what the answer says of the prompt.
func (e *Exchange) teach(outcome Outcome) {
	tokens := uint32(max(e.said.Usage.Prompt, 0))
	if tokens == 0 && e.known.exact {
		tokens = e.known.prompt
	}
	if outcome == OK || e.firstAt != 0 {
		e.remember(tokens)
	}
	if r := e.scanner.Request(); e.tree && tokens > 0 && r.PromptTokens == 0 && r.OtherParts == 0 && r.AsideBytes == 0 {
		e.pool.precise.density(tokens, r.PromptBytes)
	}
}

// predicted is how many tokens of the prompt the replica named was expected to
// have cached.
func (e *Exchange) predicted() uint32 {
	n := e.choice.Matched
	if e.said.Usage.Has() && e.named >= 0 {
		n = min(n, cacheable(uint32(e.said.Usage.Prompt), e.pool.blockSize(e.named)))
	}
	return n
}

// blockSize is that of the engine in a slot, 0 if it is not known.
func (p *pool) blockSize(slot int) uint32 {
	if p.precise == nil || slot >= len(p.precise.slots) {
		return 0
	}
	return p.precise.slots[slot].size
}

// judge compares the prediction with what was cached, if the replica it is about
// has answered and says so.
func (e *Exchange) judge(now int64) {
	u := &e.said.Usage
	if u.Cached < 0 || e.named < 0 || e.ticket.Slot() != e.named {
		return
	}
	predicted, cached := e.predicted(), uint32(u.Cached)
	wrong := uint64(max(predicted, cached) - min(predicted, cached))
	t, p := e.worker.tally, e.pool
	t.add(e.series.missed, wrong)
	t.add(p.series.wrong(e.named), wrong)
	if e.known.precise {
		s := &p.precise.slots[e.named]
		claimed := min(e.known.claimed, cacheable(uint32(u.Prompt), s.size))
		s.trust.note(p.router.Key(e.named), claimed, cached, s.size, now)
	}
}
