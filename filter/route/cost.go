package route

// candidate is a replica that may take the request.
type candidate struct {
	slot    int
	matched uint32
	terms   Terms
	cost    float32
	tie     uint64 // the larger one wins among equal costs
	foreign foreign
	fresh   float32 // weight of foreign, 1 = just heard
	rate    float32
}

// price fills in the candidate's own terms. The foreign one needs all
// candidates and comes after.
func (r *Router) price(c *candidate, q *Query, now int64) {
	b := r.books.backlog(c.slot, r.rate(c.slot))
	c.rate = b.rate
	if c.slot < len(q.Matched) {
		c.matched = min(q.Matched[c.slot], q.Prompt)
	}
	owed := b.left(now)
	c.terms.Owed = owed / b.rate
	c.terms.Prefill = (1 + r.cfg.Behind) * float32(q.Prompt-c.matched) / b.rate
	c.terms.Busy = r.cfg.PerRequest * float32(r.books.inFlight[c.slot])
	c.foreign = r.foreign(c.slot, owed)
	c.fresh = c.foreign.weight(now, r.cfg.HalfLifeMS)
}

// foreign is the latest of what was reported and what was pushed.
func (r *Router) foreign(slot int, owed float32) foreign {
	l := &r.table.lanes[slot]
	if !l.settled {
		pushed := Report{Load: l.load, Owed: -1, InFlight: -1}
		l.foreign = foreignOf(&pushed, r.books.inFlight[slot], owed, r.mean)
		l.settled = true
	}
	if f := r.books.foreign(slot); f.at > l.foreign.at {
		return f
	}
	return l.foreign
}

// priceForeign adds what each candidate does for others. As a report ages it
// fades towards the mean of the fresher ones, and an unknown load is taken for
// that mean: who says nothing gains nothing.
func (r *Router) priceForeign(cs []candidate) {
	var sum, weight float32
	for i := range cs {
		c := &cs[i]
		c.terms.Foreign = c.foreign.owed/c.rate + r.cfg.PerRequest*c.foreign.inFlight
		sum += c.fresh * c.terms.Foreign
		weight += c.fresh
	}
	var mean float32
	if weight > 1e-6 {
		mean = sum / weight * min(weight, 1)
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
	if v := r.books.rate(slot); plausibleRate(v) {
		return v
	}
	if v := r.table.lanes[slot].rate; v > 0 {
		return v
	}
	return r.cfg.StartRate
}
