package route

import (
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

func TestQuietest(t *testing.T) {
	p := fleet(5)
	p.Replicas[0].Health = state.Unhealthy
	p.Replicas[1].Models = []string{"other"}
	r := New(shared.NewMem().View(), "default", Defaults(), 1)
	if got := r.Quietest(nil, 1); got != -1 {
		t.Errorf("of nobody r%d is asked", got)
	}
	r.Adopt(p, 1)
	seen := map[int]int{}
	for dice := range uint64(300) {
		seen[r.Quietest([]byte("m"), dice*0x9e3779b97f4a7c15)]++
	}
	for slot := 2; slot < 5; slot++ {
		if seen[slot] < 50 {
			t.Errorf("r%d is asked %d times of 300: %v", slot, seen[slot], seen)
		}
	}
	if len(seen) != 3 {
		t.Errorf("asked %v", seen)
	}
	var c Choice
	var tickets [2]Ticket
	for i := range tickets {
		r.Choose(&Query{Model: []byte("m"), Prompt: 1000, Stream: true}, t0, uint64(i), &c, &tickets[i])
	}
	for dice := range uint64(50) {
		if got := r.Quietest([]byte("m"), dice); r.InFlight(got) != 0 {
			t.Errorf("r%d is asked, which has %d in flight", got, r.InFlight(got))
		}
	}
}

func TestPreciseBranches(t *testing.T) {
	r := New(shared.NewMem().View(), "default", Defaults(), 1)
	r.Adopt(fleet(2), 1)
	f := func(q Query, want Branch) {
		t.Helper()
		var c Choice
		var ticket Ticket
		q.Precise = true
		r.Choose(&q, t0, 1, &c, &ticket)
		r.Settle(&ticket, t0, OK)
		if c.Branch != want {
			t.Errorf("%+v: %v, want %v", q, c.Branch, want)
		}
	}
	f(Query{Prompt: 1000, Matched: []uint32{0, 640}}, KVHit)
	f(Query{Prompt: 1000}, KVMissMinLoad)
	f(Query{Prompt: 1000, Tree: true}, KVMissMinLoad)
	var busy [20]Ticket
	for i := range busy {
		var c Choice
		r.Choose(&Query{Prompt: 5000, Matched: []uint32{0, 5000}, Stream: true, Exclude: Slots{1}}, t0, 1, &c, &busy[i])
	}
	f(Query{Prompt: 1000, Matched: []uint32{0, 640}}, LoadBalanceOverride)
	seen := map[string]bool{}
	for b := range NumBranches {
		if seen[b.String()] || b.String() == "" || b.String() == "unknown" {
			t.Errorf("branch %d is called %q", b, b)
		}
		seen[b.String()] = true
	}
}
