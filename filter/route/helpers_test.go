package route

import (
	"strconv"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

const t0 = int64(1_700_000_000_000)

// fleet is a pool of n healthy replicas of which nothing else is known.
func fleet(n int) *state.Pool {
	p := &state.Pool{Name: "default"}
	for i := range n {
		p.Replicas = append(p.Replicas, state.Replica{
			Slot: uint16(i), Incarnation: 1, Address: "10.0.0." + strconv.Itoa(i+1) + ":8000",
			Health: state.Healthy, Rate: 10000, Load: NoReport().Load,
		})
	}
	return p
}

// crew is the routers of several workers of one proxy.
type crew struct {
	mem     *shared.Mem
	workers []*Router
}

func newCrew(p *state.Pool, workers int) *crew {
	c := &crew{mem: shared.NewMem()}
	for range workers {
		c.hire(p)
	}
	return c
}

func (c *crew) hire(p *state.Pool) *Router {
	r := New(c.mem.View(), "default", Defaults(), uint32(len(c.workers)+1))
	r.Adopt(p, 1)
	c.workers = append(c.workers, r)
	return r
}

// page is the ledger as it lies in the store.
func (c *crew) page(t *testing.T) page {
	t.Helper()
	v, _, err := c.mem.View().Get(shared.LedgerKey("default"))
	if err != nil {
		t.Fatal(err)
	}
	if !page(v).valid() {
		t.Fatalf("the ledger is damaged: %x", v)
	}
	return page(v)
}

// wantIdle fails unless every slot is empty for a fresh worker that looks.
func (c *crew) wantIdle(t *testing.T, p *state.Pool, now int64) {
	t.Helper()
	r := New(c.mem.View(), "default", Defaults(), 999)
	r.Adopt(p, 1)
	r.Tick(now)
	for slot := range r.Slots() {
		if n, owed := r.InFlight(slot), r.Owed(slot, now); n != 0 || owed != 0 {
			t.Errorf("slot %d: %d in flight, %d owed, want none", slot, n, owed)
		}
	}
}

// send places a stream of unknown text.
func send(r *Router, prompt uint32, now int64, dice uint64) (Choice, Ticket) {
	var c Choice
	var t Ticket
	r.Choose(&Query{Prompt: prompt, Tree: true, Stream: true}, now, dice, &c, &t)
	return c, t
}
