package exchange

// takeUsage learns from what the answer said of its tokens: how good the
// prediction was, how many tokens the prompt has, and what the replica's cache
// took in.
func (e *Exchange) takeUsage(now int64, outcome Outcome) {
	if e.counted {
		e.usage, e.used = e.tail.Usage()
	}
	tokens := uint32(0)
	switch {
	case e.used:
		tokens = uint32(e.usage.Prompt)
		e.ticket.Output = uint32(max(e.usage.Completion, 0))
		e.judge(now)
	case outcome == OK && e.head.dialect != byLoad:
		e.worker.tally.add(e.series.unsaid, 1)
	}
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
	if e.used && e.named >= 0 {
		n = min(n, cacheable(uint32(e.usage.Prompt), e.pool.precise.slots[e.named].size))
	}
	return n
}

// judge compares the prediction with what was cached, if the replica it is about
// has answered and says so.
func (e *Exchange) judge(now int64) {
	if e.usage.Cached < 0 || e.named < 0 || e.ticket.Slot() != e.named {
		return
	}
	predicted, cached := e.predicted(), uint32(e.usage.Cached)
	wrong := uint64(max(predicted, cached) - min(predicted, cached))
	t, p := e.worker.tally, e.pool
	t.add(e.series.missed, wrong)
	t.add(p.series.wrong(e.named), wrong)
	if e.known.precise {
		s := &p.precise.slots[e.named]
		claimed := min(e.known.claimed, cacheable(uint32(e.usage.Prompt), s.size))
		s.trust.note(p.router.Key(e.named), claimed, cached, s.size, now)
	}
}
