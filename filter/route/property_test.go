package route

import (
	"math/rand/v2"
	"testing"
)

// life is one random history of a proxy: workers choose, hear first tokens,
// move, settle, die and are replaced, and lose races in between.
type life struct {
	dice    *rand.Rand
	crew    *crew
	stores  []*contested
	tickets [][]Ticket // by worker
	now     int64
}

func newLife(seed uint64) *life {
	l := &life{dice: rand.New(rand.NewPCG(seed, 0)), crew: newCrew(fleet(3), 1), now: t0}
	for range 4 {
		l.hire()
	}
	return l
}

// hire starts a worker on a store that can be made to lose races against the
// crew's first worker, which does nothing else.
func (l *life) hire() {
	rival := l.crew.workers[0]
	s := &contested{Store: l.crew.mem.View(), rival: func() { rival.Spread(l.now) }}
	r := New(s, "default", Defaults(), l.dice.Uint32())
	r.Adopt(fleet(3), 1)
	l.stores = append(l.stores, s)
	l.crew.workers = append(l.crew.workers, r)
	l.tickets = append(l.tickets, nil)
}

func (l *life) step() {
	l.now += int64(l.dice.IntN(300))
	i := l.dice.IntN(len(l.tickets))
	r := l.crew.workers[i+1]
	if l.dice.IntN(10) == 0 {
		l.stores[i].lose = l.dice.IntN(tries + 3)
	}
	if l.dice.IntN(60) == 0 {
		l.die(i)
		return
	}
	if len(l.tickets[i]) == 0 || l.dice.IntN(3) == 0 {
		l.place(i, r)
		return
	}
	t := &l.tickets[i][l.dice.IntN(len(l.tickets[i]))]
	switch l.dice.IntN(6) {
	case 5:
		r.Streams(t)
	case 0:
		r.FirstToken(t, l.now)
	case 1:
		r.Move(t, l.now, l.dice.IntN(5)-1, uint32(l.dice.IntN(4000)), l.dice.IntN(2) == 0)
	case 2:
		r.Tick(l.now)
	default:
		r.Settle(t, l.now, Outcome(l.dice.IntN(3)))
	}
}

func (l *life) place(i int, r *Router) {
	q := Query{Prompt: uint32(l.dice.IntN(4000)), Stream: l.dice.IntN(2) == 0}
	var c Choice
	var t Ticket
	r.Choose(&q, l.now, l.dice.Uint64(), &c, &t)
	l.tickets[i] = append(l.tickets[i], t)
}

// die forgets a worker and puts another in its place.
func (l *life) die(i int) {
	l.hire()
	n := len(l.tickets) - 1
	l.crew.workers[i+1], l.stores[i], l.tickets[i] = l.crew.workers[n+1], l.stores[n], nil
	l.crew.workers, l.stores, l.tickets = l.crew.workers[:n+1], l.stores[:n], l.tickets[:n]
}

// end settles what the living have and lets the leases of the dead run out.
func (l *life) end() {
	for i := range l.tickets {
		r := l.crew.workers[i+1]
		for j := range l.tickets[i] {
			r.Settle(&l.tickets[i][j], l.now, OK)
			r.Settle(&l.tickets[i][j], l.now, OK)
		}
		l.stores[i].lose = 0
		r.Tick(l.now)
	}
	l.now += Defaults().LeaseMS + 1
}

func TestEveryHistoryEndsAtZero(t *testing.T) {
	for seed := range uint64(200) {
		l := newLife(seed)
		for range 300 {
			l.step()
			total := 0
			for i := range l.tickets {
				for j := range l.tickets[i] {
					if l.tickets[i][j].Open() {
						total++
					}
				}
			}
			l.wantAtLeast(t, seed, total)
		}
		l.end()
		l.crew.wantIdle(t, fleet(3), l.now)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// wantAtLeast: a worker that has just written sees all its own requests.
func (l *life) wantAtLeast(t *testing.T, seed uint64, living int) {
	t.Helper()
	if l.dice.IntN(20) > 0 {
		return
	}
	for i := range l.tickets {
		l.stores[i].lose = 0
		l.crew.workers[i+1].Tick(l.now)
	}
	r := l.crew.workers[0]
	r.Tick(l.now)
	n := 0
	for slot := range r.Slots() {
		n += r.InFlight(slot)
	}
	if n < living {
		t.Fatalf("seed %d: %d in flight, but the living have %d", seed, n, living)
	}
}
