package route

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

// relabeled numbers another store's writes from further up, so that the
// counter soon wraps.
type relabeled struct {
	shared.Store
	by uint32
}

func (s relabeled) Get(key []byte) ([]byte, uint32, error) {
	value, cas, err := s.Store.Get(key)
	if err == nil {
		if cas += s.by; cas < s.by {
			cas++ // over 0
		}
	}
	return value, cas, err
}

func (s relabeled) Set(key, value []byte, cas uint32) error {
	if cas != 0 {
		if cas < s.by {
			cas--
		}
		cas -= s.by
	}
	return s.Store.Set(key, value, cas)
}

// steady is a worker alone with its store, long enough to trust its guesses.
func steady(c *crew) *Router {
	r := c.workers[0]
	for i := range int64(10) {
		exchange(r, &Query{Prompt: 100, Tree: true, Stream: true}, t0+200*(i-10), nil)
	}
	return r
}

func TestAloneNothingIsRead(t *testing.T) {
	f := func(by uint32) {
		t.Helper()
		p := fleet(8)
		c := newCrew(p, 1)
		view := relabeled{c.mem.View(), by}
		c.workers[0] = New(view, "default", Defaults(), 5)
		c.workers[0].Adopt(p, 1)
		r := steady(c)
		gets, retries := c.mem.Gets, r.Stats().Retries
		for i := range int64(100) {
			i *= 10
			var choice Choice
			var ticket Ticket
			r.Choose(&Query{Prompt: 100, Tree: true, Stream: true}, t0+i, uint64(i), &choice, &ticket)
			if err := view.Set([]byte("index"), []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
			r.FirstToken(&ticket, t0+i+5)
			r.Settle(&ticket, t0+i+9, OK)
		}
		if c.mem.Gets != gets || r.Stats().Retries != retries {
			t.Errorf("from %d: %d reads, %d retries, want none", by, c.mem.Gets-gets, r.Stats().Retries-retries)
		}
		r.Tick(t0 + 1200)
		if c.mem.Gets != gets+1 {
			t.Error("a tick did not look")
		}
		c.wantIdle(t, p, t0+1200)
	}
	f(0)
	f(1 << 31)
	f(^uint32(0) - 100) // wraps on the way
}

func TestNumberWraps(t *testing.T) {
	f := func(cas, writes, want uint32) {
		t.Helper()
		var n number
		n.read(cas, 7, false)
		n.wrote(7 + writes)
		if n.page != want {
			t.Errorf("%d after %d: guess %d, want %d", writes, cas, n.page, want)
		}
	}
	f(5, 1, 6)
	f(5, 3, 8)
	f(^uint32(0)-1, 1, ^uint32(0))
	f(^uint32(0)-1, 2, 1)
	f(^uint32(0), 1, 1)
	f(^uint32(0), 3, 3)
}

// The counter is not taken for lower than it is when a read finds nothing new.
func TestNumberRemembersOtherWrites(t *testing.T) {
	var n number
	n.read(5, 0, false)
	n.read(5, 3, false)
	if n.wrote(4); n.page != 9 {
		t.Errorf("guess %d, want 9", n.page)
	}
}

// A worker that joins costs the first one a wasted write, and is counted in the
// very next choice.
func TestWorkerThatJoinsIsSeenAtOnce(t *testing.T) {
	p := fleet(1)
	c := newCrew(p, 2)
	r := steady(c)
	_, first := send(r, 100, t0, 1)
	_, other := send(c.workers[1], 1000, t0+10, 1)
	gets, retries := c.mem.Gets, r.Stats().Retries
	got, ticket := send(r, 100, t0+10, 1)
	if r.InFlight(0) != 3 || got.Terms.Owed < 0.09 {
		t.Errorf("%d in flight, terms %+v", r.InFlight(0), got.Terms)
	}
	if c.mem.Gets-gets != 1 || r.Stats().Retries-retries != 1 {
		t.Errorf("%d reads, %d retries, want 1 and 1", c.mem.Gets-gets, r.Stats().Retries-retries)
	}
	r.Settle(&first, t0+20, OK)
	r.Settle(&ticket, t0+20, OK)
	c.workers[1].Settle(&other, t0+20, OK)
	c.wantIdle(t, p, t0+20)
}

// Workers that take turns do not try guesses that must fail.
func TestBusyWorkersDoNotGuess(t *testing.T) {
	c := newCrew(fleet(3), 2)
	steady(c)
	retries := func() uint64 { return c.workers[0].Stats().Retries + c.workers[1].Stats().Retries }
	before := retries()
	for i := range int64(100) {
		exchange(c.workers[i%2], &Query{Prompt: 100, Stream: true}, t0+10+200*i, nil)
	}
	if n := retries() - before; n > 1 {
		t.Errorf("%d writes were wasted, want at most the first", n)
	}
}

// Writes of others under other keys spoil guesses, and nothing else.
func TestForeignWritesSpoilOnlyGuesses(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 1)
	r, foreign := steady(c), c.mem.View()
	gets, retries := c.mem.Gets, r.Stats().Retries
	for i := range int64(40) {
		if err := foreign.Set([]byte("lease"), []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		exchange(r, &Query{Prompt: 160, Stream: true}, t0+100+i*200, nil)
	}
	if n := r.Stats().Retries - retries; n != 1 {
		t.Errorf("%d writes were wasted, want the first", n)
	}
	if n := c.mem.Gets - gets; n < 30 {
		t.Errorf("%d reads, want one each", n)
	}
	r.Tick(t0 + 9000)
	sum := uint32(0)
	for slot := range 3 {
		sum += r.Clock(slot)
	}
	if want := uint32(10*100+40*160) / ClockUnit; sum < want-3 || sum > want {
		t.Errorf("the clocks add up to %d, want %d", sum, want)
	}
	c.wantIdle(t, p, t0+9000)
}

// What another plugin or version wrote over the page is noticed by the guess.
func TestDamageMeetsAGuess(t *testing.T) {
	p := fleet(3)
	c := newCrew(p, 1)
	r := steady(c)
	if err := c.mem.View().Set(shared.LedgerKey("default"), []byte("?"), 0); err != nil {
		t.Fatal(err)
	}
	_, ticket := send(r, 100, t0+10, 1)
	if r.Stats().Damaged != 1 || r.InFlight(ticket.Slot()) != 1 {
		t.Errorf("damaged %d, %d in flight", r.Stats().Damaged, r.InFlight(ticket.Slot()))
	}
	c.page(t)
}

func TestNewerStateMeetsAGuess(t *testing.T) {
	c := newCrew(fleet(2), 2)
	r := steady(c)
	c.workers[1].Adopt(fleet(3), 2)
	c.workers[1].Spread(t0 + 10)
	if got, _ := send(r, 100, t0+10, 1); got.Generation != 2 {
		t.Errorf("generation %d, want 2", got.Generation)
	}
}

func TestOwnNewerStateIsUsedAtOnce(t *testing.T) {
	c := newCrew(fleet(2), 1)
	r := steady(c)
	r.Adopt(fleet(3), 2)
	if got, _ := send(r, 100, t0+11, 1); got.Candidates != 3 || got.Generation != 2 {
		t.Errorf("%d candidates at generation %d, want 3 at 2", got.Candidates, got.Generation)
	}
}

// A choice that finds nobody leaves a page that was brought up to date but not
// written; what it has been told must not be told again.
func TestNobodyFoundCountsNothingTwice(t *testing.T) {
	c := newCrew(fleet(1), 1)
	r := steady(c)
	clock := r.Clock(0)
	_, ticket := send(r, 160, t0, 1)
	ticket.Output = 1600
	r.Settle(&ticket, t0+10, OK)
	var nobody Choice
	for range 2 {
		r.Choose(&Query{Exclude: Slots{1}}, t0+20, 1, &nobody, &Ticket{})
	}
	send(r, 160, t0+30, 1)
	if got := r.Clock(0) - clock; got < 119 || got > 121 {
		t.Errorf("the clock moved by %d, want 120", got)
	}
}

// A worker that had no seat takes one when it first has a request, also by Move.
func TestGuessTakesASeat(t *testing.T) {
	c := newCrew(fleet(1), 2)
	r := c.workers[0]
	for i := range int64(8) {
		r.Spread(t0 + i)
	}
	var choice Choice
	var ticket Ticket
	r.Choose(&Query{Prompt: 700, Exclude: Slots{1}}, t0+10, 1, &choice, &ticket)
	r.Move(&ticket, t0+11, 0, 700, false)
	c.workers[1].Tick(t0 + 12)
	if n := c.workers[1].InFlight(0); n != 1 {
		t.Errorf("the other worker sees %d in flight, want 1", n)
	}
}

func TestGuessAfterClockWasSetBack(t *testing.T) {
	c := newCrew(fleet(1), 2)
	send(c.workers[1], 100, t0-100, 1)
	r := steady(c)
	if send(r, 100, t0-3600_000, 1); r.InFlight(0) != 1 {
		t.Errorf("%d in flight: a lease from the future must not last", r.InFlight(0))
	}
}

// The seat of a dead worker falls also while nobody else writes.
func TestGuessOutlivesNoLease(t *testing.T) {
	c := newCrew(fleet(1), 2)
	send(c.workers[1], 1000, t0, 1)
	r := c.workers[0]
	for i := range int64(10) {
		exchange(r, &Query{Prompt: 100}, t0+i*900, nil)
	}
	gets := c.mem.Gets
	if send(r, 100, t0+Defaults().LeaseMS, 1); r.InFlight(0) != 2 {
		t.Errorf("%d in flight within the lease, want 2", r.InFlight(0))
	}
	if send(r, 100, t0+Defaults().LeaseMS+1, 1); r.InFlight(0) != 2 || r.Stats().Expired != 1 {
		t.Errorf("%d in flight, %d expired, want 2 and 1", r.InFlight(0), r.Stats().Expired)
	}
	if c.mem.Gets != gets+1 {
		t.Errorf("%d reads, want the one after the lease", c.mem.Gets-gets)
	}
}

// noisy is a store on which somebody else writes something before each write,
// so that no guess ever holds.
type noisy struct {
	shared.Store
	other shared.Store
}

func (s noisy) Set(key, value []byte, cas uint32) error {
	if err := s.other.Set([]byte("noise"), nil, 0); err != nil {
		return err
	}
	return s.Store.Set(key, value, cas)
}

// Guessing changes no choice and no byte of the ledger.
func TestGuessingChangesNothing(t *testing.T) {
	read, total := 0, 0
	for seed := range uint64(60) {
		plain, guessing := newTwin(seed, true), newTwin(seed, false)
		for range 300 {
			a, b := plain.step(), guessing.step()
			if a != b {
				t.Fatalf("seed %d: chose %+v by reading, %+v by guessing", seed, a, b)
			}
			if plain.mem.Sets > 0 && !bytes.Equal(plain.page(t), guessing.page(t)) {
				t.Fatalf("seed %d: the ledgers differ", seed)
			}
		}
		read, total = read+guessing.mem.Gets, total+plain.mem.Gets
	}
	if read > total*9/10 {
		t.Errorf("%d reads with guesses, %d without: they were hardly tried", read, total)
	}
}

// twin is a random history that depends on nothing but its seed.
type twin struct {
	*crew
	dice    *rand.Rand
	now     int64
	who     int
	tickets [3][]Ticket
}

func newTwin(seed uint64, noise bool) *twin {
	w := &twin{crew: newCrew(fleet(3), 0), dice: rand.New(rand.NewPCG(seed, 1)), now: t0}
	for range w.tickets {
		r := w.hire(fleet(3))
		if noise {
			r.books.store = noisy{w.mem.View(), w.mem.View()}
		}
	}
	return w
}

// step lets mostly the same worker go on, as when others are idle.
func (w *twin) step() (c Choice) {
	w.now += int64(w.dice.IntN(100))
	if w.dice.IntN(200) == 0 {
		w.now += Defaults().LeaseMS
	}
	if w.dice.IntN(12) == 0 {
		w.who = w.dice.IntN(len(w.tickets))
	}
	r, tickets := w.workers[w.who], &w.tickets[w.who]
	if len(*tickets) == 0 || w.dice.IntN(3) == 0 {
		q := Query{Prompt: uint32(w.dice.IntN(4000)), Stream: w.dice.IntN(2) == 0}
		if w.dice.IntN(20) == 0 {
			q.Exclude = Slots{7}
		}
		var t Ticket
		r.Choose(&q, w.now, w.dice.Uint64(), &c, &t)
		c.Load.KV, c.Load.Hit, c.Load.RPS, c.Load.TPS = 0, 0, 0, 0 // NaN is not NaN
		*tickets = append(*tickets, t)
		return c
	}
	t := &(*tickets)[w.dice.IntN(len(*tickets))]
	rep := NoReport()
	rep.Waiting = int32(w.dice.IntN(4)) - 1
	switch w.dice.IntN(12) {
	case 0, 1, 2:
		r.Note(t, w.now, &rep)
		r.FirstToken(t, w.now)
	case 3:
		r.Move(t, w.now, w.dice.IntN(4)-1, 100, w.dice.IntN(2) == 0)
	case 4:
		r.Note(t, w.now, &rep)
	case 5:
		r.Tick(w.now)
	default:
		r.Settle(t, w.now, Outcome(w.dice.IntN(3)))
	}
	return c
}
