package blocks

import (
	"slices"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
)

// At is where events come from: the replica's slot and, of its data-parallel
// engines, the rank.
type At struct {
	Slot uint16
	Rank int
}

// Counter is told of what should not be in a stream of events.
type Counter interface {
	Anomaly(a kvevents.Anomaly, n int)
}

// Index is what is known of the blocks of one pool.
type Index struct {
	pool    string
	counter Counter
	tree    tree

	ranks  []*rank // by rankID; nil: free
	byAt   map[At]*rank
	last   *rank // the one looked up last
	bySlot map[uint16]*slot

	// The record in the making.
	record  []byte
	node    kvindex.Node
	holders []holderID
}

// slot is what the ranks of a replica share.
type slot struct {
	ranks    []*rank
	capacity int // blocks that fit on its GPUs; 0: not known
	copies   int // on its GPUs as the events tell
	tagged   bool
}

// rankID is a place in Index.ranks.
type rankID uint16

// maxRanks is how many engines a pool can have.
const maxRanks = 1 << 12

// rank is one engine.
type rank struct {
	at      At
	id      rankID
	slot    *slot
	table   table
	aliases map[blockID]aliases

	size    uint32 // tokens in a block; 0: not known
	group   int    // the KV cache group that is followed, -1: not known
	blocks  int    // blocks of the tree on the GPU
	copies  int    // on the GPU
	orphans int    // entries whose place in the tree is not known
	cut     bool   // it was cleared as it claimed more than can be

	reports bool            // some clients ask for reports
	ts      float64         // of the last batch with a run from a start
	begun   []kvevents.Hash // first blocks of such runs in that batch
}

// aliases is by how many hashes beyond the first an engine names a block in each
// tier. An adapter that was loaded again from another path does that.
type aliases [tiers]uint32

// New makes an index that knows nothing.
func New(pool string, counter Counter) *Index {
	return &Index{
		pool: pool, counter: counter, tree: newTree(),
		byAt: map[At]*rank{}, bySlot: map[uint16]*slot{},
	}
}

// known returns the engine at a place, nil if nothing is known of it.
func (x *Index) known(at At) *rank {
	if x.last == nil || x.last.at != at {
		x.last = x.byAt[at]
	}
	return x.last
}

// rank returns the engine at a place, a new one if need be, nil if there are
// too many.
func (x *Index) rank(at At) *rank {
	if r := x.known(at); r != nil {
		return r
	}
	return x.newRank(at)
}

func (x *Index) newRank(at At) *rank {
	id := slices.Index(x.ranks, nil)
	if id < 0 {
		if id = len(x.ranks); id == maxRanks {
			return nil
		}
		x.ranks = append(x.ranks, nil)
	}
	s := x.slot(at.Slot)
	r := &rank{at: at, id: rankID(id), slot: s, group: -1, aliases: map[blockID]aliases{}}
	s.ranks = append(s.ranks, r)
	x.ranks[id] = r
	x.byAt[at] = r
	x.last = nil
	return r
}

func (x *Index) slot(n uint16) *slot {
	s := x.bySlot[n]
	if s == nil {
		s = &slot{}
		x.bySlot[n] = s
	}
	return s
}

// SetCapacity says how many blocks fit on the GPUs of a replica, all its ranks
// taken together; 0: not known.
func (x *Index) SetCapacity(n uint16, blocks int) { x.slot(n).capacity = blocks }

// Cleared takes in that an engine's cache was emptied, all tiers of it.
func (x *Index) Cleared(at At) {
	if r := x.known(at); r != nil {
		x.clear(r)
		r.cut = false
	}
}

// Reset forgets an engine and all that was learned about it: it began anew, or
// its events cannot be followed.
func (x *Index) Reset(at At) {
	r := x.known(at)
	if r == nil {
		return
	}
	x.clear(r)
	x.ranks[r.id] = nil
	delete(x.byAt, at)
	x.last = nil
	i := slices.Index(r.slot.ranks, r)
	r.slot.ranks = slices.Delete(r.slot.ranks, i, i+1)
}

// Drop forgets a replica.
func (x *Index) Drop(n uint16) {
	s := x.bySlot[n]
	if s == nil {
		return
	}
	for len(s.ranks) > 0 {
		x.Reset(s.ranks[0].at)
	}
	delete(x.bySlot, n)
}

func (x *Index) clear(r *rank) {
	var last nodeID
	for i := range r.table.slots {
		e := &r.table.slots[i]
		if e.free() || e.block == noBlock {
			continue
		}
		if n := x.tree.blocks[e.block].at.node(); n != last {
			x.tree.vacate(n, r.id)
			last = n
		}
	}
	r.table.reset()
	clear(r.aliases)
	r.slot.copies -= r.copies
	r.blocks, r.copies, r.orphans = 0, 0, 0
}

// Partial tells whether a replica is known to have blocks that are not in the
// tree: their beginnings were missed, or its counts did not add up.
func (x *Index) Partial(n uint16) bool {
	if s := x.bySlot[n]; s != nil {
		for _, r := range s.ranks {
			if r.cut || r.orphans > 0 {
				return true
			}
		}
	}
	return false
}

// Tagged tells whether the events of a replica carried text keys of ours.
func (x *Index) Tagged(n uint16) bool {
	s := x.bySlot[n]
	return s != nil && s.tagged
}
