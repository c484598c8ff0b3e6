package route

// candidate is a replica that may take the request.
type candidate struct {
	slot    int
	matched uint32
	rate    float32
	terms   Terms
	fresh   float32 // weight of the foreign term, 1 = just heard
	cost    float32
	level   float32 // cost, or what all that count as equally good have
	tie     uint64  // the larger one wins at the same level
}

// price fills in the candidate's own terms. The foreign one is as heard, and
// needs all candidates to be weighed. This runs for every replica of every
// request and calls little: calls are what compiled Go pays most for in Wasm.
func (r *Router) price(c *candidate, slot int, q *Query, now int64) {
	b, l, rec := &r.books, &r.table.lanes[slot], r.books.page.record(slot)
	rate := rec.f32(recRate)
	if !plausibleRate(rate) {
		rate = r.startRate(l)
	}
	matched := uint32(0)
	if slot < len(q.Matched) {
		matched = min(q.Matched[slot], q.Prompt)
	}
	owed := float32(0)
	if b.inFlight[slot] > 0 {
		owed = b.backlog(slot, rate).left(now)
	}
	f := r.foreign(l, rec, slot, owed)
	c.slot, c.matched, c.rate = slot, matched, rate
	c.terms.Owed = owed / rate
	c.terms.Prefill = (1 + r.cfg.Behind) * float32(q.Prompt-matched) / rate
	c.terms.Busy = r.cfg.PerRequest * float32(b.inFlight[slot])
	c.terms.Foreign = f.owed/rate + r.cfg.PerRequest*f.inFlight
	c.fresh = 0
	if f.at != 0 {
		c.fresh = halved(now-f.at, r.cfg.HalfLifeMS)
	}
}

// foreign is the latest of what was reported and what was pushed.
func (r *Router) foreign(l *lane, rec *record, slot int, owed float32) foreign {
	if !l.settled {
		pushed := Report{Load: l.load, Owed: -1, InFlight: -1}
		l.foreign = foreignOf(&pushed, r.books.inFlight[slot], owed, r.mean)
		l.settled = true
	}
	n, at := rec.u16(recForeign), rec.i64(recReportAt)
	if n == unknown16 || at <= l.foreign.at {
		return l.foreign
	}
	return foreign{at: at, inFlight: float32(n), owed: float32(rec.u32(recForeignOwed))}
}

// priceForeign weighs what each candidate does for others. As a report ages it
// fades towards the mean of the fresher ones, and an unknown load is taken for
// that mean: who says nothing gains nothing.
func priceForeign(cs []candidate) {
	var sum, weight float32
	for i := range cs {
		sum += cs[i].fresh * cs[i].terms.Foreign
		weight += cs[i].fresh
	}
	var mean float32
	if weight > 1e-6 {
		mean = sum / weight
		if weight < 1 {
			mean *= weight
		}
	}
	for i := range cs {
		c := &cs[i]
		c.terms.Foreign = c.fresh*c.terms.Foreign + (1-c.fresh)*mean
		c.cost = c.terms.Cost()
	}
}

// rate is what the slot prefills in a second: learned, else pushed, else
// configured.
func (r *Router) rate(slot int) float32 {
	if v := r.books.page.record(slot).f32(recRate); plausibleRate(v) {
		return v
	}
	return r.startRate(&r.table.lanes[slot])
}

func (r *Router) startRate(l *lane) float32 {
	if l.rate > 0 {
		return l.rate
	}
	return r.cfg.StartRate
}
