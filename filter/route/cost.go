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
	l, rec, inFlight := &r.table.lanes[slot], r.books.page.record(slot), r.books.inFlight[slot]
	rate := rec.f32(recRate)
	if !plausibleRate(rate) {
		rate = r.startRate(l)
	}
	matched, owed := uint32(0), float32(0)
	if slot < len(q.Matched) {
		matched = min(q.Matched[slot], q.Prompt)
	}
	if inFlight > 0 {
		owed = r.books.backlog(slot, rate).left(now)
	}
	if !l.settled {
		r.settleForeign(l, inFlight, owed)
	}
	f := l.foreign
	if at, n := rec.i64(recReportAt), rec.u16(recForeign); n != unknown16 && at > f.at {
		f = foreign{at: at, inFlight: float32(n), owed: float32(rec.u32(recForeignOwed))}
	}
	c.slot, c.matched, c.rate, c.fresh = slot, matched, rate, 0
	c.terms.Owed = owed / rate
	c.terms.Prefill = (1 + r.cfg.Behind) * float32(q.Prompt-matched) / rate
	c.terms.Busy = r.cfg.PerRequest * float32(inFlight)
	c.terms.Foreign = f.owed/rate + r.cfg.PerRequest*f.inFlight
	if f.at != 0 {
		c.fresh = halved(float64(now-f.at) / float64(max(r.cfg.HalfLifeMS, 1)))
	}
}

// settleForeign compares the load that control pushed with our own books, once.
func (r *Router) settleForeign(l *lane, inFlight uint32, owed float32) {
	pushed := Report{Load: l.load, Owed: -1, InFlight: -1}
	l.foreign = foreignOf(&pushed, inFlight, owed, r.mean)
	l.settled = true
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
