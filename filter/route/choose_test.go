package route

import (
	"math"
	"testing"

	"github.com/warmlane/warmlane/filter/state"
)

func TestBranches(t *testing.T) {
	f := func(q Query, busy uint32, branch Branch, rung Rung, slot int) {
		t.Helper()
		r := newCrew(fleet(2), 1).workers[0]
		if busy > 0 { // slot 1 has that many tokens to do
			var c Choice
			var other Ticket
			first := Query{Prompt: busy, Stream: true}
			first.Exclude.Add(0)
			r.Choose(&first, t0, 1, &c, &other)
		}
		var c Choice
		var ticket Ticket
		q.Stream = true
		r.Choose(&q, t0, 1, &c, &ticket)
		if c.Branch != branch || c.Rung != rung {
			t.Errorf("branch %v, rung %v, want %v, %v", c.Branch, c.Rung, branch, rung)
		}
		if slot >= 0 && ticket.Slot() != slot {
			t.Errorf("slot %d, want %d (terms %+v)", ticket.Slot(), slot, c.Terms)
		}
	}
	warm := []uint32{0, 900}
	f(Query{Prompt: 1000, Tree: true, Matched: warm}, 0, CacheHit, RungMatch, 1)
	f(Query{Prompt: 1000, Tree: true, Matched: warm}, 100, CacheHit, RungMatch, 1)
	f(Query{Prompt: 1000, Tree: true, Matched: warm}, 5000, LoadBalanceOverride, RungMatch, 0)
	f(Query{Prompt: 1000, Tree: true, Matched: []uint32{840, 900}}, 5000, CacheHit, RungMatch, 0)
	f(Query{Prompt: 1000, Tree: true, Matched: []uint32{0, 60}}, 5000, CacheMissMinLoad, RungMatch, 0)
	f(Query{Prompt: 1000, Tree: true}, 5000, CacheMissMinLoad, RungLoad, 0)
	f(Query{Prompt: 1000, Tree: true, Ring: 7}, 5000, CacheMissMinLoad, RungLoad, 0)
	f(Query{Prompt: 1000, Tree: true, Ring: 7}, 0, CacheMissMinLoad, RungRing, -1)
	f(Query{Prompt: 1000}, 5000, NoTree, RungLoad, 0)
	f(Query{Prompt: 0}, 5000, NoTree, RungLoad, 0)
	f(Query{Prompt: 10, Exclude: Slots{3}}, 0, NoHealthyWorker, RungEnvoy, -1)
}

func TestFilters(t *testing.T) {
	f := func(change func(p *state.Pool, q *Query), drop Filter, slot int, relented bool) {
		t.Helper()
		p := fleet(2)
		q := Query{Model: []byte("m"), Prompt: 100, Tree: true}
		change(p, &q)
		r := newCrew(p, 1).workers[0]
		var c Choice
		var ticket Ticket
		r.Choose(&q, t0, 1, &c, &ticket)
		if ticket.Slot() != slot || c.Relented != relented {
			t.Errorf("slot %d, relented %v, want %d, %v", ticket.Slot(), c.Relented, slot, relented)
		}
		if c.Dropped[drop] == 0 {
			t.Errorf("dropped %v, want %v", c.Dropped, drop)
		}
	}
	f(func(p *state.Pool, _ *Query) { p.Replicas[0].Models = []string{"other"} }, FilterModel, 1, false)
	f(func(p *state.Pool, _ *Query) { p.Replicas[0].Health = state.Unhealthy }, FilterUnhealthy, 1, false)
	f(func(p *state.Pool, _ *Query) { p.Replicas[0].Health = state.Draining }, FilterDraining, 1, false)
	f(func(p *state.Pool, _ *Query) { p.Replicas[0].Health = state.Unknown }, FilterUnknown, 1, false)
	f(func(_ *state.Pool, q *Query) { q.Exclude.Add(0) }, FilterTried, 1, false)
	f(func(p *state.Pool, _ *Query) {
		p.Replicas[0].Health, p.Replicas[1].Health = state.Unknown, state.Unhealthy
	}, FilterUnknown, 0, true)
	f(func(p *state.Pool, _ *Query) {
		p.Replicas[0].Health, p.Replicas[1].Health = state.Draining, state.Unhealthy
	}, FilterDraining, -1, false)
}

func TestModelsAndAdapters(t *testing.T) {
	p := fleet(1)
	p.Replicas[0].Models = []string{"base", "org/alias"}
	p.Replicas[0].Adapters = []state.Adapter{
		{Name: "sql", State: state.AdapterLoaded}, {Name: "law", State: state.AdapterLoading},
		{Name: "bad", State: state.AdapterFailed},
	}
	r := newCrew(p, 1).workers[0]
	f := func(model string, want int) {
		t.Helper()
		var c Choice
		var ticket Ticket
		r.Choose(&Query{Model: []byte(model), Prompt: 1}, t0, 1, &c, &ticket)
		if c.Candidates != want {
			t.Errorf("%q: %d candidates, want %d", model, c.Candidates, want)
		}
	}
	f("base", 1)
	f("org/alias", 1)
	f("sql", 1)
	f("law", 1)
	f("bad", 0)
	f("unheard of", 0)
	f("", 1)
}

func TestFailedReplicaIsAvoidedForAWhile(t *testing.T) {
	r := newCrew(fleet(2), 1).workers[0]
	_, ticket := send(r, 100, t0, 1)
	bad := ticket.Slot()
	r.Settle(&ticket, t0, Failed)
	for dice := range uint64(20) {
		c, other := send(r, 100, t0+1000, dice)
		if other.Slot() == bad || c.Dropped[FilterAvoid] != 1 {
			t.Fatalf("placed on the failed replica: %+v", c)
		}
		r.Settle(&other, t0+1000, OK)
	}
	if c, _ := send(r, 100, t0+4000, 1); c.Dropped[FilterAvoid] != 0 {
		t.Errorf("still avoided after %d ms", Defaults().AvoidMS)
	}
}

func TestOrderNamesTheBestThree(t *testing.T) {
	r := newCrew(fleet(5), 1).workers[0]
	q := Query{Prompt: 1000, Tree: true, Matched: []uint32{0, 300, 900, 100, 600}}
	var c Choice
	var ticket Ticket
	r.Choose(&q, t0, 1, &c, &ticket)
	if got := string(r.AppendOrder(nil, &c)); got != "10.0.0.3:8000,10.0.0.5:8000,10.0.0.2:8000" {
		t.Errorf("order %q", got)
	}
	if c.Matched != 900 || c.Uncached != 100 || c.Longest != 900 || c.RunnerUp <= 0 {
		t.Errorf("choice %+v", c)
	}
}

// Cold proxies that know nothing of each other agree on where a prompt goes.
func TestRingIsTheSameInEveryProxy(t *testing.T) {
	used := map[int]bool{}
	for ring := uint64(1); ring <= 100; ring++ {
		slot := -1
		for proxy := range 4 {
			r := newCrew(fleet(8), 1).workers[0]
			var c Choice
			var ticket Ticket
			r.Choose(&Query{Prompt: 500, Tree: true, Ring: ring}, t0, uint64(proxy), &c, &ticket)
			if slot >= 0 && slot != ticket.Slot() {
				t.Fatalf("ring %d: slots %d and %d", ring, slot, ticket.Slot())
			}
			slot = ticket.Slot()
		}
		used[slot] = true
	}
	if len(used) != 8 {
		t.Errorf("100 prompts used %d of 8 replicas", len(used))
	}
}

// A replica whose load is not known must not win because of that, nor lose.
func TestUnknownLoadIsNotZero(t *testing.T) {
	p := fleet(3)
	p.Replicas[0].Load.At, p.Replicas[0].Load.Waiting, p.Replicas[0].Load.Running = t0, 2, 10
	p.Replicas[1].Load.At, p.Replicas[1].Load.Waiting, p.Replicas[1].Load.Running = t0, 0, 4
	r := newCrew(p, 1).workers[0]
	for dice := range uint64(20) {
		_, ticket := send(r, 100, t0, dice)
		if ticket.Slot() != 1 {
			t.Fatalf("slot %d, want the one with the least load that is known", ticket.Slot())
		}
		r.Settle(&ticket, t0, Cancelled)
	}
}

func TestForeignLoadFades(t *testing.T) {
	p := fleet(2)
	for i := range p.Replicas {
		p.Replicas[i].Load.At, p.Replicas[i].Load.Running = t0, int32(20*(1-i))
	}
	cost := func(age int64) float32 {
		r := newCrew(p, 1).workers[0]
		c, _ := send(r, 100, t0+age, 1)
		if c.Order[0] != 1 {
			t.Errorf("after %d ms slot %d", age, c.Order[0])
		}
		return c.RunnerUp
	}
	now, later := cost(0), cost(3*Defaults().HalfLifeMS)
	if math.Abs(float64(now)-0.4) > 0.01 || later > now/6 {
		t.Errorf("20 foreign requests cost %v now and %v later", now, later)
	}
}

// What a replica reports includes our own requests; they count once.
func TestOwnRequestsInReportsCountOnce(t *testing.T) {
	r := newCrew(fleet(1), 1).workers[0]
	var tickets []Ticket
	for range 5 {
		_, ticket := send(r, 1000, t0, 1)
		tickets = append(tickets, ticket)
	}
	rep := NoReport()
	rep.InFlight, rep.Owed = 7, 6500
	r.Note(&tickets[0], t0, &rep)
	c, _ := send(r, 1000, t0, 1)
	want := float32(1500)/10000 + 2*Defaults().PerRequest
	if math.Abs(float64(c.Terms.Foreign-want)) > 1e-4 {
		t.Errorf("foreign term %v, want %v", c.Terms.Foreign, want)
	}
	if c.Load.At != t0 {
		t.Errorf("load snapshot of %d, want %d", c.Load.At, t0)
	}
}

func TestNames(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(NoHealthyWorker.String(), "no_healthy_worker")
	f(NoTree.String(), "no_tree")
	f(LoadBalanceOverride.String(), "load_balance_override")
	f(CacheHit.String(), "cache_hit")
	f(CacheMissMinLoad.String(), "cache_miss_min_load")
	f(Branch(99).String(), "unknown")
	f(RungEnvoy.String(), "envoy")
	f(RungMatch.String(), "match")
	f(Rung(99).String(), "unknown")
	f(FilterAvoid.String(), "avoid")
	f(NumFilters.String(), "none")
}

func TestReplicasWithoutAPlaceAreCounted(t *testing.T) {
	p := fleet(2)
	p.Replicas[1].Slot = MaxSlots
	r := newCrew(p, 1).workers[0]
	if r.Stats().Beyond != 1 || r.Slots() != 1 {
		t.Errorf("beyond %d, slots %d", r.Stats().Beyond, r.Slots())
	}
}
