package lab

import "math/rand/v2"

// roundRobin has every worker take the engines in turn, as Envoy does.
type roundRobin struct {
	deaf
	next map[door]int
	dice *rand.Rand
	n    int
}

func newRoundRobin(p *play) *roundRobin {
	return &roundRobin{next: make(map[door]int), dice: p.dice, n: p.options.Fleet}
}

func (r *roundRobin) pick(f *flight) int {
	if _, known := r.next[f.door]; !known {
		r.next[f.door] = r.dice.IntN(r.n)
	}
	r.next[f.door] = (r.next[f.door] + 1) % r.n
	return r.next[f.door]
}

// tally counts something by proxy and engine.
type tally [][]int

func newTally(o Options) tally {
	t := make(tally, o.Proxies)
	for i := range t {
		t[i] = make([]int, o.Fleet)
	}
	return t
}

func (t tally) add(f *flight, n int) { t[f.door.proxy][f.replica.slot] += n }

// leastRequest takes the one with fewer requests of two, as Envoy does.
type leastRequest struct {
	deaf
	flying tally
	dice   *rand.Rand
}

func newLeastRequest(p *play) *leastRequest {
	return &leastRequest{flying: newTally(p.options), dice: p.dice}
}

func (l *leastRequest) pick(f *flight) int {
	counts := l.flying[f.door.proxy]
	a, b := l.dice.IntN(len(counts)), l.dice.IntN(len(counts))
	if counts[b] < counts[a] {
		a = b
	}
	counts[a]++
	return a
}

func (l *leastRequest) done(f *flight) { l.flying.add(f, -1) }

// leastWork takes the engine with the fewest prompt tokens that wait for their
// first token. It knows nothing of caches.
type leastWork struct {
	deaf
	owed tally
}

func newLeastWork(p *play) *leastWork { return &leastWork{owed: newTally(p.options)} }

func (l *leastWork) pick(f *flight) int {
	owed := l.owed[f.door.proxy]
	best := 0
	for slot, n := range owed {
		if n < owed[best] {
			best = slot
		}
	}
	owed[best] += f.Tokens
	return best
}

func (l *leastWork) first(f *flight) { l.owed.add(f, -f.Tokens) }
