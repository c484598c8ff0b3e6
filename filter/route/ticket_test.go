package route

import "testing"

func TestSettleIsExactlyOnce(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 1)
	r := c.workers[0]
	_, a := send(r, 1000, t0, 1)
	_, b := send(r, 1000, t0, 1)
	for range 3 {
		r.Settle(&a, t0+10, Failed)
		r.FirstToken(&a, t0+10)
		r.Move(&a, t0+10, 0, 5, true)
	}
	if r.InFlight(0) != 1 || a.Open() {
		t.Errorf("%d in flight, open %v, want 1 and closed", r.InFlight(0), a.Open())
	}
	r.Settle(&b, t0+10, OK)
	r.Tick(t0 + 10)
	c.wantIdle(t, p, t0+10)
}

func TestZeroTicketDoesNothing(t *testing.T) {
	c := newCrew(fleet(1), 1)
	r := c.workers[0]
	var none Ticket
	rep := NoReport()
	r.FirstToken(&none, t0)
	r.Note(&none, t0, &rep)
	r.Settle(&none, t0, Failed)
	if none.Slot() != -1 || c.mem.Sets != 0 {
		t.Errorf("slot %d, %d writes", none.Slot(), c.mem.Sets)
	}
}

func TestMove(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 1)
	r := c.workers[0]
	_, ticket := send(r, 1000, t0, 1)
	from := ticket.Slot()
	to := (from + 1) % 3
	r.Move(&ticket, t0+5, to, 400, true)
	if r.InFlight(from) != 0 || r.InFlight(to) != 1 || ticket.Slot() != to {
		t.Errorf("in flight %d and %d, slot %d", r.InFlight(from), r.InFlight(to), ticket.Slot())
	}
	if owed := r.Owed(to, t0+5); owed != 400 {
		t.Errorf("owed %d, want 400", owed)
	}
	if next, _ := send(r, 100, t0+6, 1); next.Dropped[FilterAvoid] != 1 {
		t.Error("the replica that failed is not avoided")
	}
	r.Move(&ticket, t0+7, -1, 0, false) // one we do not know
	if ticket.Slot() != -1 || r.InFlight(to) > 1 {
		t.Errorf("slot %d", ticket.Slot())
	}
	r.Settle(&ticket, t0+8, OK)
}

// A request that was left to Envoy is entered when it is known who has it.
func TestMoveEntersWhatWasLeftToEnvoy(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 1)
	r := c.workers[0]
	q := Query{Prompt: 700, Stream: true, Exclude: Slots{1}}
	var choice Choice
	var ticket Ticket
	r.Choose(&q, t0, 1, &choice, &ticket)
	if choice.N != 0 || ticket.Slot() != -1 {
		t.Fatalf("choice %+v", choice)
	}
	r.Move(&ticket, t0, 0, 700, false)
	if r.InFlight(0) != 1 || r.Owed(0, t0) != 700 {
		t.Errorf("%d in flight, %d owed", r.InFlight(0), r.Owed(0, t0))
	}
	r.FirstToken(&ticket, t0+50)
	r.Settle(&ticket, t0+60, OK)
	r.Tick(t0 + 60)
	c.wantIdle(t, p, t0+60)
}

func TestFirstTokenTeachesTheRate(t *testing.T) {
	r := newCrew(fleet(1), 1).workers[0]
	now := t0
	for range 300 {
		_, ticket := send(r, 2000, now, 1)
		now += 500 // 4,000 tokens per second
		r.FirstToken(&ticket, now)
		r.Settle(&ticket, now+100, OK)
		now += 1000
	}
	if rate := r.Rate(0); rate < 3900 || rate > 4200 {
		t.Errorf("rate %v, want about 4000", rate)
	}
}

// A request may turn out to be a stream when its answer begins: what it owes
// stays, no longer runs off by the clock, and goes with the first token.
func TestStreams(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 2)
	r, other := c.workers[0], c.workers[1]
	var choice Choice
	var ticket Ticket
	r.Choose(&Query{Prompt: 1000}, t0, 1, &choice, &ticket)
	r.FirstToken(&ticket, t0+10) // of what is no stream yet
	before := r.Owed(0, t0+20)
	r.Streams(&ticket)
	r.Streams(&ticket)
	r.Tick(t0 + 20)
	other.Tick(t0 + 20)
	for _, w := range c.workers {
		if owed := w.Owed(0, t0+20); owed != before || owed != 800 {
			t.Errorf("%d owed, want 800 as before: %d", owed, before)
		}
		if owed := w.Owed(0, t0+300); owed == 0 {
			t.Error("a stream without its first token owes nothing")
		}
	}
	rate := r.Rate(0)
	r.FirstToken(&ticket, t0+500)
	r.Streams(&ticket)
	other.Tick(t0 + 500)
	if owed := other.Owed(0, t0+500); owed != 0 || other.InFlight(0) != 1 {
		t.Errorf("%d owed, %d in flight after the first token, want 0 and 1", owed, other.InFlight(0))
	}
	if r.Rate(0) >= rate {
		t.Errorf("rate %v after a slow first token, %v before", r.Rate(0), rate)
	}
	r.Settle(&ticket, t0+600, OK)
	r.Streams(&ticket)
	r.Tick(t0 + 600)
	c.wantIdle(t, p, t0+600)
}

// The sample of a request that queued behind others counts their tokens, too.
func TestRateOfQueuedPrompts(t *testing.T) {
	r := newCrew(fleet(1), 1).workers[0]
	now := t0
	for range 100 {
		_, a := send(r, 2000, now, 1)
		_, b := send(r, 6000, now+100, 1)
		r.FirstToken(&a, now+500)
		r.FirstToken(&b, now+2000)
		r.Settle(&a, now+2000, OK)
		r.Settle(&b, now+2000, OK)
		now += 5000
	}
	if rate := r.Rate(0); rate < 3900 || rate > 4200 {
		t.Errorf("rate %v, want about 4000", rate)
	}
}

// Answers in one piece tell nothing of their prefill; it runs off by the clock.
func TestOnePieceAnswersDrainByTheClock(t *testing.T) {
	r := newCrew(fleet(1), 1).workers[0]
	var choice Choice
	var ticket Ticket
	q := Query{Prompt: 5000}
	r.Choose(&q, t0, 1, &choice, &ticket)
	f := func(ms int64, want int) {
		t.Helper()
		if got := r.Owed(0, t0+ms); got != want {
			t.Errorf("after %d ms %d owed, want %d", ms, got, want)
		}
	}
	f(0, 5000)
	f(200, 3000)
	f(500, 0)
	f(9000, 0)
	r.Settle(&ticket, t0+9000, OK)
}

func TestOutputMovesTheClock(t *testing.T) {
	r := newCrew(fleet(1), 1).workers[0]
	_, ticket := send(r, 1600, t0, 1)
	ticket.Output = 320
	r.Settle(&ticket, t0, OK)
	r.Tick(t0)
	if got := r.Clock(0); got != 120 {
		t.Errorf("clock %d, want 120", got)
	}
}

func TestReportsReachOtherWorkers(t *testing.T) {
	c := newCrew(fleet(1), 2)
	a, b := c.workers[0], c.workers[1]
	_, ticket := send(a, 100, t0, 1)
	rep := NoReport()
	rep.Waiting, rep.KV = 6, 0.25
	a.Note(&ticket, t0+10, &rep)
	a.FirstToken(&ticket, t0+10)
	empty := NoReport()
	a.Note(&ticket, t0+20, &empty)
	a.Settle(&ticket, t0+20, OK) // the last good one stays
	got, _ := send(b, 100, t0+30, 1)
	if got.Load.At != t0+10 || got.Load.Waiting != 6 || got.Load.KV != 0.25 || got.Load.Running != -1 {
		t.Errorf("load %+v", got.Load)
	}
	if got.Terms.Foreign <= 0 {
		t.Error("six requests that are not ours cost nothing")
	}
}

// TestSettleAlone makes no call of the store while nobody else is there, and
// nothing is lost: the next write, of a choice or a tick, has it.
func TestSettleAlone(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 2)
	r, other := c.workers[0], c.workers[1]
	_, a := send(r, 1000, t0, 1)
	_, b := send(r, 1000, t0, 1)
	gets, sets := c.mem.Gets, c.mem.Sets
	r.Settle(&a, t0+10, OK)
	r.Settle(&a, t0+10, OK)
	if c.mem.Gets != gets || c.mem.Sets != sets || a.Open() {
		t.Errorf("%d reads and %d writes, open %v", c.mem.Gets-gets, c.mem.Sets-sets, a.Open())
	}
	_, d := send(other, 1000, t0+20, 1)
	if n := other.InFlight(0); n != 3 {
		t.Errorf("the other worker counts %d before the news, want 3", n)
	}
	r.Tick(t0 + 25)
	sets = c.mem.Sets
	r.Settle(&b, t0+30, Cancelled)
	other.Tick(t0 + 30)
	if n := other.InFlight(0); n != 1 || c.mem.Sets == sets {
		t.Errorf("no longer alone, it is told at once: %d in flight, want 1", n)
	}
	other.Settle(&d, t0+40, OK)
	other.Tick(t0 + 40)
	c.wantIdle(t, p, t0+40)
}
