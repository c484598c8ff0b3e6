package route

import (
	"bytes"
	"sync"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

// Thirty unlike prompts within ten milliseconds on idle replicas, on however
// many workers: the counts of all are seen by all.
func TestBurstIsSpread(t *testing.T) {
	f := func(workers int) {
		t.Helper()
		c := newCrew(fleet(3), workers)
		for i := range int64(10) { // the first one has been alone for a while
			q := Query{Prompt: 20}
			exchange(c.workers[0], &q, t0+200*(i-10), nil)
		}
		c.workers[0].Tick(t0)
		var per [3]int
		for i := range 30 {
			q := Query{Prompt: 20, Tree: true, Stream: true, Ring: mix(uint64(i))}
			var choice Choice
			var ticket Ticket
			c.workers[i%workers].Choose(&q, t0+int64(i/3), uint64(i), &choice, &ticket)
			per[ticket.Slot()]++
		}
		if per != [3]int{10, 10, 10} {
			t.Errorf("%d workers: %v, want 10 each", workers, per)
		}
	}
	f(1)
	f(4)
	f(16)
}

func TestAbortedRequestsLeaveNothing(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 4)
	var tickets []Ticket
	for i := range 200 {
		_, ticket := send(c.workers[i%4], 3000, t0, uint64(i))
		if i%2 == 0 {
			c.workers[i%4].FirstToken(&ticket, t0+10)
		}
		tickets = append(tickets, ticket)
	}
	for i := range tickets {
		c.workers[i%4].Settle(&tickets[i], t0+20, Cancelled)
	}
	c.wantIdle(t, p, t0+20)
}

func TestDeadWorkerLosesItsSeat(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 2)
	for i := range 9 {
		send(c.workers[0], 1000, t0, uint64(i))
	}
	_, mine := send(c.workers[1], 1000, t0, 1)
	alive := c.workers[1]
	total := func() (n int) {
		for slot := range alive.Slots() {
			n += alive.InFlight(slot)
		}
		return n
	}
	for now := t0; now <= t0+Defaults().LeaseMS; now += 1000 {
		alive.Tick(now)
	}
	if total() != 10 {
		t.Errorf("%d in flight within the lease, want 10", total())
	}
	alive.Tick(t0 + Defaults().LeaseMS + 1)
	if total() != 1 || alive.Stats().Expired != 1 {
		t.Errorf("%d in flight, %d seats expired after it, want 1 and 1", total(), alive.Stats().Expired)
	}
	alive.Settle(&mine, t0+20000, OK)
	alive.Tick(t0 + 20000)
	c.wantIdle(t, p, t0+20000)
}

// A worker that was only late finds its seat taken, takes another and
// publishes all it has; its settlements take off what is its own.
func TestLateWorkerIsCountedOnce(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 2)
	late, other := c.workers[0], c.workers[1]
	_, a := send(late, 1000, t0, 1)
	_, b := send(late, 1000, t0, 1)
	now := t0 + 2*Defaults().LeaseMS
	_, x := send(other, 1000, now, 1) // takes the late one's seat
	if other.InFlight(0) != 1 {
		t.Fatalf("%d in flight without the late worker, want 1", other.InFlight(0))
	}
	late.Settle(&a, now+1, OK)
	late.Tick(now + 1) // it took itself for alone
	other.Tick(now + 2)
	if other.InFlight(0) != 2 || late.Stats().Evicted != 1 {
		t.Errorf("%d in flight, evicted %d, want 2 and 1", other.InFlight(0), late.Stats().Evicted)
	}
	late.Settle(&b, now+3, OK)
	other.Settle(&x, now+3, OK)
	c.wantIdle(t, p, now+3)
}

func TestReplacedReplicaStartsEmpty(t *testing.T) {
	c := newCrew(fleet(2), 2)
	old, current := c.workers[0], c.workers[1]
	only := Query{Prompt: 1000, Stream: true}
	only.Exclude.Add(1)
	var choice Choice
	var ticket Ticket
	old.Choose(&only, t0, 1, &choice, &ticket)

	next := fleet(2)
	next.Replicas[0].Incarnation = 2
	current.Adopt(next, 2)
	current.Spread(t0)
	if current.InFlight(0) != 0 || current.Clock(0) != 0 {
		t.Errorf("the new replica has %d in flight at clock %d", current.InFlight(0), current.Clock(0))
	}
	// The other worker still has the old state: it must neither use the slot
	// nor give it back, and must see that there is newer state.
	old.FirstToken(&ticket, t0+10)
	var c2 Choice
	var t2 Ticket
	old.Choose(&only, t0, 1, &c2, &t2)
	if t2.Slot() != -1 || c2.Dropped[FilterStale] != 1 || c2.Generation != 2 {
		t.Errorf("slot %d, choice %+v", t2.Slot(), c2)
	}
	old.Adopt(next, 2)
	old.Settle(&ticket, t0+20, OK)
	if old.Stats().Late != 1 {
		t.Errorf("late %d, want 1", old.Stats().Late)
	}
	c.wantIdle(t, next, t0+20)
}

// A worker that knows a shorter pool does not cut the ledger.
func TestSlotsOnlyGrow(t *testing.T) {
	c := newCrew(fleet(2), 1)
	_, ticket := send(c.workers[0], 100, t0, 1)
	wide := c.hire(fleet(5))
	send(wide, 100, t0, 1)
	c.workers[0].Settle(&ticket, t0, OK)
	if p := c.page(t); p.slots() != 5 || p.seats() != 2 {
		t.Errorf("%d slots, %d seats, want 5 and 2", p.slots(), p.seats())
	}
}

// contested lets another worker win a number of races before each write.
type contested struct {
	shared.Store
	rival func()
	lose  int
}

func (s *contested) Set(key, value []byte, cas uint32) error {
	if s.lose > 0 {
		s.lose--
		s.rival()
	}
	return s.Store.Set(key, value, cas)
}

func TestLostRacesAreMadeGood(t *testing.T) {
	f := func(lose int, lost uint64) {
		t.Helper()
		p := fleet(3)
		c := newCrew(p, 1)
		rival := c.workers[0]
		s := &contested{Store: c.mem.View(), rival: func() { rival.Spread(t0) }}
		r := New(s, "default", Defaults(), 77)
		r.Adopt(p, 1)
		s.lose = lose
		_, ticket := send(r, 1600, t0, 1)
		if got := r.Stats().Lost; got != lost {
			t.Errorf("lost %d, want %d", got, lost)
		}
		slot := ticket.Slot()
		r.Tick(t0 + 1)
		rival.Tick(t0 + 1)
		if rival.InFlight(slot) != 1 || rival.Clock(slot) != 100 || rival.Owed(slot, t0+1) < 1500 {
			t.Errorf("%d in flight, clock %d, owed %d, want 1, 100 and 1590",
				rival.InFlight(slot), rival.Clock(slot), rival.Owed(slot, t0+1))
		}
		s.lose = lose
		r.FirstToken(&ticket, t0+100)
		s.lose = lose
		r.Settle(&ticket, t0+200, OK)
		r.Tick(t0 + 300)
		c.wantIdle(t, p, t0+300)
		rival.Tick(t0 + 300)
		if rival.Clock(slot) != 100 {
			t.Errorf("clock %d, want 100: nothing counts twice", rival.Clock(slot))
		}
	}
	f(0, 0)
	f(3, 0)
	f(tries, 1)
}

// After an idle time a dispatch that was written late must not look overdue.
func TestLateDispatchIsNotOverdue(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 1)
	s := &contested{Store: c.mem.View(), rival: func() { c.workers[0].Spread(t0) }}
	r := New(s, "default", Defaults(), 77)
	r.Adopt(p, 1)
	_, first := send(r, 100, t0, 1)
	r.Settle(&first, t0+10, OK)
	s.lose = tries
	send(r, 1000, t0+600000, 1)
	r.Tick(t0 + 600050)
	if owed := r.Owed(0, t0+600050); owed < 400 || owed > 1000 {
		t.Errorf("owed %d, want about 500", owed)
	}
}

func TestDamagedLedgerIsReplaced(t *testing.T) {
	f := func(damage []byte) {
		t.Helper()
		p := fleet(3)
		c := newCrew(p, 1)
		r := c.workers[0]
		_, ticket := send(r, 1000, t0, 1)
		if err := c.mem.View().Set(shared.LedgerKey("default"), damage, 0); err != nil {
			t.Fatal(err)
		}
		r.Tick(t0)
		if r.Stats().Damaged != 1 {
			t.Errorf("damaged %d, want 1", r.Stats().Damaged)
		}
		if r.InFlight(ticket.Slot()) != 1 {
			t.Error("the worker's own request was forgotten")
		}
		c.page(t)
		r.Settle(&ticket, t0, OK)
		r.Tick(t0)
		c.wantIdle(t, p, t0)
	}
	f(nil)
	f([]byte("another plugin's"))
	f(bytes.Repeat([]byte{0xff}, 4096))
	f(newPage(nil, 3, 1)[:40])
}

func TestClockSetBackFreesSeats(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 2)
	send(c.workers[0], 100, t0, 1)
	back := t0 - 3600_000
	c.workers[1].Tick(back)
	if n := c.workers[1].InFlight(0); n != 0 {
		t.Errorf("%d in flight: a lease from the future must not last", n)
	}
	c.workers[0].Tick(back)
	c.workers[1].Tick(back)
	if n := c.workers[1].InFlight(0); n != 1 {
		t.Errorf("%d in flight, want the living worker's 1 back", n)
	}
}

func TestManySeats(t *testing.T) {
	p := fleet(2)
	c := newCrew(p, 80)
	tickets := make([]Ticket, 80)
	for i, r := range c.workers {
		_, tickets[i] = send(r, 100, t0, uint64(i))
	}
	r := c.workers[0]
	r.Tick(t0)
	if n := r.InFlight(0) + r.InFlight(1); n != 80 {
		t.Errorf("%d in flight, want 80", n)
	}
	for i, r := range c.workers {
		r.Settle(&tickets[i], t0, OK)
	}
	c.wantIdle(t, p, t0)
}

func TestNoSeatLeft(t *testing.T) {
	p := fleet(2)
	c := newCrew(p, maxSeats+1)
	var last Ticket
	for i, r := range c.workers {
		_, last = send(r, 100, t0, uint64(i))
	}
	r := c.workers[maxSeats]
	if r.Stats().NoSeat == 0 {
		t.Error("a worker without a seat is not counted")
	}
	if r.InFlight(0)+r.InFlight(1) != maxSeats+1 {
		t.Error("a worker without a seat forgot its own request")
	}
	r.Settle(&last, t0, OK)
	if r.InFlight(0)+r.InFlight(1) != maxSeats {
		t.Error("the request was not settled")
	}
}

// Workers on their own threads, as in a proxy; for the race detector, too.
func TestConcurrentWorkers(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 6)
	var wg sync.WaitGroup
	for id, r := range c.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 300 {
				now := t0 + int64(i)
				_, a := send(r, 500, now, uint64(id*1000+i))
				_, b := send(r, 700, now, uint64(id*1000+i))
				r.FirstToken(&a, now+1)
				r.Settle(&b, now+1, Cancelled)
				r.Settle(&a, now+2, OK)
			}
			r.Tick(t0 + 400)
		}()
	}
	wg.Wait()
	for _, r := range c.workers {
		r.Tick(t0 + 401) // what was put off
	}
	c.wantIdle(t, p, t0+402)
	r := c.workers[0]
	r.Tick(t0 + 402)
	sum := uint32(0)
	for slot := range 3 {
		sum += r.Clock(slot)
	}
	if want := uint32(6 * 300 * (500 + 700) / ClockUnit); sum < want-3 || sum > want {
		t.Errorf("the clocks add up to %d, want %d", sum, want)
	}
}

func TestSharedCallsPerRequest(t *testing.T) {
	p := fleet(8)
	c := newCrew(p, 2)
	r := c.workers[0]
	now := t0
	calls := func(stream bool) [2]int {
		now += 100
		gets, sets := c.mem.Gets, c.mem.Sets
		var choice Choice
		var ticket Ticket
		r.Choose(&Query{Prompt: 100, Stream: stream}, now, 1, &choice, &ticket)
		r.FirstToken(&ticket, now+10)
		r.Settle(&ticket, now+20, OK)
		return [2]int{c.mem.Gets - gets, c.mem.Sets - sets}
	}
	if got := calls(true); got != [2]int{2, 2} {
		t.Errorf("stream, alone: %v reads and writes, want 2 and 2", got)
	}
	send(c.workers[1], 1000, t0, 1)
	if got := calls(false); got != [2]int{2, 2} {
		t.Errorf("one piece: %v reads and writes, want 2 and 2", got)
	}
	if got := calls(true); got != [2]int{2, 3} {
		t.Errorf("stream, the other one silent: %v reads and writes, want 2 and 3", got)
	}
	if got := calls(true); got != [2]int{0, 3} {
		t.Errorf("stream, the other one still silent: %v reads and writes, want 0 and 3", got)
	}
}

func TestLedgerIsSmall(t *testing.T) {
	if n := pageSize(8, 5); n >= 1024 {
		t.Errorf("a ledger of 8 replicas and 5 workers has %d bytes", n)
	}
}

func FuzzLedger(f *testing.F) {
	c := newCrew(fleet(3), 2)
	send(c.workers[0], 1000, t0, 1)
	send(c.workers[1], 1000, t0, 1)
	v, _, _ := c.mem.View().Get(shared.LedgerKey("default"))
	f.Add(v)
	f.Add([]byte{})
	f.Add([]byte(newPage(nil, MaxSlots, 9)))
	f.Fuzz(func(t *testing.T, value []byte) {
		p := fleet(4)
		c := newCrew(p, 1)
		if err := c.mem.View().Set(shared.LedgerKey("default"), value, 0); err != nil {
			t.Fatal(err)
		}
		r := c.workers[0]
		_, ticket := send(r, 1000, t0, 1)
		rep := NoReport()
		rep.Waiting = 3
		r.Note(&ticket, t0+1, &rep)
		r.FirstToken(&ticket, t0+1)
		r.Settle(&ticket, t0+2, Failed)
		r.Tick(t0 + 3)
		c.page(t)
		for slot := range r.Slots() {
			if rate := r.Rate(slot); !plausibleRate(rate) {
				t.Errorf("rate %v", rate)
			}
		}
	})
}
