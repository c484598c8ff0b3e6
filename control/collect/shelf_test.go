package collect

import (
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/state"
)

// nobody counts nothing.
type nobody struct{}

func (nobody) Anomaly(kvevents.Anomaly, int) {}
func (nobody) Events(kvevents.Type, int)     {}

// block is a batch that stores the first block of a prompt of its own.
func block(n uint64, session string) *kvevents.Batch {
	return &kvevents.Batch{Events: []kvevents.Event{{Type: kvevents.TypeStored, Stored: kvevents.Stored{
		Hashes: []kvevents.Hash{n}, Tokens: []uint32{uint32(n), 1}, BlockSize: 2, Group: -1, Session: []byte(session),
	}}}}
}

// heldBy returns which slots the nodes of a change name.
func heldBy(t *testing.T, c changes) (slots []uint16) {
	t.Helper()
	for _, r := range c.records {
		var n kvindex.Node
		if kvindex.KindOf(r.Payload) != kvindex.KindNode {
			continue
		}
		if err := n.Decode(r.Payload); err != nil {
			t.Fatal(err)
		}
		for _, h := range n.Held {
			slots = append(slots, h.Slot)
		}
	}
	return slots
}

// What a replica's standing is after each thing that can happen to it, and
// that a slot is empty for whoever has it next.
func TestStandingOfAHolder(t *testing.T) {
	s := newShelf("default", nobody{})
	f := func(owner *replica, what string, kv state.KVState, tags, settled bool, life uint32, held int) {
		t.Helper()
		c := s.take()
		if got := c.standings[owner]; got != (standing{life: life, kv: kv, tags: tags, settled: settled}) {
			t.Errorf("%s: standing %+v", what, got)
		}
		if slots := heldBy(t, c); len(slots) != held || held > 0 && slots[0] != 3 {
			t.Errorf("%s: slots %v hold blocks", what, slots)
		}
	}
	first := &replica{place: &place{slot: 3}}
	h := s.enter(first)
	h.open([]kvevents.Source{{Endpoint: "tcp://a:1", Replay: "tcp://a:2"}, {Endpoint: "tcp://a:3", Rank: 1}})
	f(first, "opened", state.KVNone, false, false, 0, 0)
	h.Batch(0, 0, block(1, ""))
	f(first, "heard", state.KVPartial, false, false, 0, 1)
	h.Partial(0, false)
	f(first, "one of two", state.KVPartial, false, true, 0, 0)
	h.Batch(1, 7, block(2, "wl1-0123456789abcdef"))
	h.Partial(1, false)
	f(first, "both", state.KVComplete, true, true, 0, 1)
	if kv := h.kv(); kv.Blocks != 2 || kv.LastSeq != 7 || kv.BlockSize != 2 || kv.Partial {
		t.Errorf("%+v", kv)
	}
	h.Reset(1, kvevents.Restarted)
	f(first, "reset", state.KVPartial, true, true, 0, 0)
	h.begin(1)
	f(first, "another life", state.KVNone, false, false, 1, 0)
	h.open(nil)
	f(first, "no sources", state.KVNone, false, true, 1, 0)
	h.open([]kvevents.Source{{Endpoint: "tcp://a:1"}})
	h.Batch(0, 0, block(1, ""))
	f(first, "blocks anew", state.KVPartial, false, true, 1, 1)

	h.leave()
	next := &replica{place: &place{slot: 3}}
	h = s.enter(next)
	h.keep()
	f(next, "the slot's next", state.KVNone, false, true, 0, 0)
	if kv := h.kv(); kv.Blocks != 0 || kv.LastSeq != -1 {
		t.Errorf("%+v", kv)
	}
}

// A feed's word counts for the engine it was about, and for no other.
func TestStandingInTheFold(t *testing.T) {
	f := onePool()
	f.members("default", 0, members("a:1"), t0)
	p := f.pools["default"]
	r := p.replicas["a:1"]
	stand := func(what string, s standing, u urgency, kv state.KVState) {
		t.Helper()
		if got := p.stand(map[*replica]standing{r: s}); got != u || r.now.KV != kv {
			t.Errorf("%s: urgency %d, %v", what, got, r.now.KV)
		}
	}
	r.read(&reading{incarnation: 7})
	stand("complete", standing{kv: state.KVComplete, tags: true}, changed, state.KVComplete)
	stand("the same", standing{kv: state.KVComplete, tags: true}, nothing, state.KVComplete)
	r.read(&reading{incarnation: 7})
	if r.now.KV != state.KVComplete || !r.now.Tags {
		t.Errorf("a reading changed %+v", r.now)
	}
	if u := r.read(&reading{incarnation: 8}); u != changed || r.now.KV != state.KVNone || r.now.Tags {
		t.Errorf("restarted: %d, %+v", u, r.now)
	}
	stand("of the one before", standing{kv: state.KVComplete}, nothing, state.KVNone)
	stand("of this one", standing{life: 1, kv: state.KVPartial}, changed, state.KVPartial)
	f.members("default", 0, nil, t0)
	stand("gone", standing{life: 1, kv: state.KVComplete}, nothing, state.KVPartial)
}
