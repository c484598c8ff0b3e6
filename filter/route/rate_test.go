package route

import "testing"

// teach has a stream of uncached tokens answered by the slot as fast as rate
// says, often enough for it to be learned.
func teach(t *testing.T, r *Router, slot int, rate float32) {
	t.Helper()
	var others Slots
	for i := range r.Slots() {
		if i != slot {
			others.Add(i)
		}
	}
	now := t0
	for range 200 {
		var c Choice
		var ticket Ticket
		r.Choose(&Query{Prompt: 10000, Tree: true, Stream: true, Exclude: others}, now, 1, &c, &ticket)
		now += int64(10000 / rate * 1000)
		r.FirstToken(&ticket, now)
		r.Settle(&ticket, now, OK)
		now += 1000
	}
	r.Tick(now)
	if got := r.books.page.record(slot).f32(recRate); got < 0.9*rate || got > 1.1*rate {
		t.Fatalf("r%d answered %v tokens/s and %v was learned", slot, rate, got)
	}
}

// A replica that never had a request is thought to be as fast as the others
// have shown themselves to be: on a much lower start value it would never get
// one, and never show more.
func TestUnusedReplicaIsTakenForAnUsualOne(t *testing.T) {
	p := fleet(3)
	for i := range p.Replicas {
		p.Replicas[i].Rate = 0
	}
	r := newCrew(p, 1).workers[0]
	r.Tick(t0)
	if got := r.rate(2); got != r.cfg.StartRate {
		t.Errorf("at first %v, want %v", got, r.cfg.StartRate)
	}
	teach(t, r, 0, 16000)
	if got := r.rate(2); got < 14000 {
		t.Errorf("an unused replica is taken for %v tokens/s, others do 16000", got)
	}
	if got := r.books.start[2]; got < 14000 {
		t.Errorf("and would learn from %v", got)
	}
	p.Replicas[2].Rate = 3000 // control knows better
	r.Adopt(p, 2)
	r.Tick(t0 + 1<<30)
	if got := r.rate(2); got != 3000 {
		t.Errorf("pushed 3000, taken for %v", got)
	}
}

func TestLikeRatesCountAsOne(t *testing.T) {
	r := newCrew(fleet(3), 1).workers[0]
	teach(t, r, 0, 10000)
	teach(t, r, 1, 11500)
	if a, b := r.rate(0), r.rate(1); a != b {
		t.Errorf("10000 and 11500 tokens/s are told apart: %v and %v", a, b)
	}
	teach(t, r, 2, 3000)
	if a, c := r.rate(0), r.rate(2); c > 3300 || a < 8000 {
		t.Errorf("10000 and 3000 tokens/s: %v and %v", a, c)
	}
}

// A report is older than our books: what ended meanwhile is nobody else's.
func TestAFewTooManyAreNotForeign(t *testing.T) {
	f := func(running int32, own uint32, want float32) {
		t.Helper()
		rep := NoReport()
		rep.At, rep.Running, rep.Waiting = t0, running, 0
		if got := foreignOf(&rep, own, 0, 1000); got.inFlight != want {
			t.Errorf("%d running, %d ours: %v foreign, want %v", running, own, got.inFlight, want)
		}
	}
	f(0, 0, 0)
	f(1, 0, 0)
	f(2, 0, 2)
	f(11, 8, 3)
	f(10, 8, 0)
	f(3, 8, 0)
}
