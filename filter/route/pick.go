package route

// tieSeconds is the difference below which two costs are the same.
const tieSeconds = 1e-4

// rank orders the first MaxOrder of cs, best first. Costs within band of the
// best are equal; among those the tie decides, so that no list order herds.
func rank(cs []candidate, band float32) {
	best := cs[0].cost
	for i := range cs {
		best = min(best, cs[i].cost)
	}
	for i := range min(len(cs), MaxOrder) {
		top := i
		for j := i + 1; j < len(cs); j++ {
			if before(&cs[j], &cs[top], best+band) {
				top = j
			}
		}
		cs[i], cs[top] = cs[top], cs[i]
	}
}

func before(a, b *candidate, level float32) bool {
	ac, bc := max(a.cost, level), max(b.cost, level)
	if ac != bc {
		return ac < bc
	}
	return a.tie > b.tie
}

// knot sets the ties: by the prompt's hash, which is rendezvous hashing and
// the same in every proxy, or by the dice.
func (r *Router) knot(cs []candidate, seed uint64) {
	for i := range cs {
		cs[i].tie = mix(seed ^ r.table.lanes[cs[i].slot].ring)
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
	r.knot(cs, seed)
	rank(cs, band)
	r.explain(q, c, longest, ring)
}

func (r *Router) explain(q *Query, c *Choice, longest uint32, ring bool) {
	cs := r.candidates
	best := &cs[0]
	for c.N = 0; c.N < min(len(cs), MaxOrder); c.N++ {
		c.Order[c.N] = uint16(cs[c.N].slot)
	}
	c.Matched, c.Uncached, c.Longest = best.matched, q.Prompt-best.matched, longest
	c.Terms = best.terms
	c.Scores = best.terms.scores(best.matched, q.Prompt)
	c.Load = newer(r.books.load(best.slot), r.table.lanes[best.slot].load)
	if len(cs) > 1 {
		c.RunnerUp = cs[1].cost - best.cost
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
	case !q.Tree:
		return NoTree
	case longest-matched >= max(block, 1):
		return LoadBalanceOverride
	case matched > 0:
		return CacheHit
	}
	return CacheMissMinLoad
}
