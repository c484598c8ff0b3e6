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
	rate := r.rateOf(rec.f32(recRate), l)
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
	return r.rateOf(r.books.page.record(slot).f32(recRate), &r.table.lanes[slot])
}

// rateOf judges what was learned of a replica. Rates that differ by less than
// alike are noise of the same hardware. One who never had a request has nothing
// against it: on a start value far below what others have shown it would never
// get one.
func (r *Router) rateOf(learned float32, l *lane) float32 {
	switch {
	case !plausibleRate(learned):
		return r.startRate(l)
	case learned < r.usual*alike && r.usual < learned*alike:
		return r.usual
	}
	return learned
}

// alike is up to which ratio two rates are taken for the same.
const alike = 1.25

func (r *Router) startRate(l *lane) float32 {
	switch {
	case l.rate > 0:
		return l.rate
	case r.usual > 0:
		return r.usual
	}
	return r.cfg.StartRate
}

// takeUsual averages the rates that were learned, and lets others start there.
func (r *Router) takeUsual() {
	sum, n := float32(0), float32(0)
	for slot := range r.table.lanes {
		if v := r.books.page.record(slot).f32(recRate); r.table.lanes[slot].key != 0 && plausibleRate(v) {
			sum, n = sum+v, n+1
		}
	}
	if r.usual = 0; n == 0 {
		return
	}
	r.usual = sum / n
	for slot := range r.table.lanes {
		r.books.start[slot] = r.startRate(&r.table.lanes[slot])
	}
}
