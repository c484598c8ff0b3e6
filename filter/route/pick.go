package route

// tieSeconds is the difference below which two costs are the same.
const tieSeconds = 1e-4

// top are the best candidates, best first: indices into a list of candidates.
type top struct {
	at [MaxOrder]int
	n  int
}

// rank finds the best of cs.
func rank(cs []candidate) (best top) {
	for i := range cs {
		at := best.n
		for at > 0 && before(&cs[i], &cs[best.at[at-1]]) {
			if at < MaxOrder {
				best.at[at] = best.at[at-1]
			}
			at--
		}
		if at < MaxOrder {
			best.at[at], best.n = i, min(best.n+1, MaxOrder)
		}
	}
	return best
}

func before(a, b *candidate) bool {
	if a.level != b.level {
		return a.level < b.level
	}
	return a.tie > b.tie
}

// knot sets levels and ties. Costs within band of the best are equal; among
// those the tie decides, so that no list order herds. Ties are by the prompt's
// hash, which is rendezvous hashing and the same in every proxy, or by the
// dice.
func (r *Router) knot(cs []candidate, seed uint64, band float32) {
	best := cs[0].cost
	for i := range cs {
		if cs[i].cost < best {
			best = cs[i].cost
		}
	}
	best += band
	for i := range cs {
		c := &cs[i]
		c.tie = mix(seed ^ r.table.lanes[c.slot].ring)
		if c.level = c.cost; c.level < best {
			c.level = best
		}
	}
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pick ranks the candidates and fills in the choice.
func (r *Router) pick(q *Query, dice uint64, c *Choice) {
	cs := r.candidates
	longest, ring := uint32(0), false
	for i := range cs {
		longest = max(longest, cs[i].matched)
	}
	seed, band := dice, float32(tieSeconds)
	if longest == 0 && q.Ring != 0 {
		seed, band, ring = q.Ring, r.cfg.Noise, true
	}
	r.knot(cs, seed, band)
	best := rank(cs)
	r.explain(q, c, &best, longest, ring)
}

func (r *Router) explain(q *Query, c *Choice, top *top, longest uint32, ring bool) {
	cs := r.candidates
	best := &cs[top.at[0]]
	for c.N = 0; c.N < top.n; c.N++ {
		c.Order[c.N] = uint16(cs[top.at[c.N]].slot)
	}
	c.Matched, c.Uncached, c.Longest = best.matched, q.Prompt-best.matched, longest
	c.Terms = best.terms
	c.Scores = best.terms.scores(best.matched, q.Prompt)
	c.Load = r.table.lanes[best.slot].load
	if rec := r.books.page.record(best.slot); rec.i64(recReportAt) != 0 {
		c.Load = newer(rec.load(), c.Load)
	}
	if top.n > 1 {
		c.RunnerUp = cs[top.at[1]].cost - best.cost
	}
	c.Branch = branch(q, best.matched, longest, r.cfg.Block)
	switch {
	case longest > 0:
		c.Rung = RungMatch
	case ring && len(cs) > 1 && c.RunnerUp <= r.cfg.Noise:
		c.Rung = RungRing
	default:
		c.Rung = RungLoad
	}
}

func branch(q *Query, matched, longest, block uint32) Branch {
	switch {
	case !q.Tree && !q.Precise:
		return NoTree
	case longest-matched >= max(block, 1):
		return LoadBalanceOverride
	case q.Precise && matched > 0:
		return KVHit
	case q.Precise:
		return KVMissMinLoad
	case matched > 0:
		return CacheHit
	}
	return CacheMissMinLoad
}
