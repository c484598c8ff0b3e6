package collect

import (
	"cmp"
	"slices"

	"github.com/warmlane/warmlane/control/collect/blocks"
	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/state"
)

// holder is one replica in front of the shelf, and the sink of its followers.
// What can change of it is guarded by the shelf's lock.
type holder struct {
	shelf *shelf
	owner *replica // whose holder it is; nothing else is done with it here
	slot  uint16

	life     uint32 // the facts' that all of this is about
	capacity int    // blocks; 0 = not known
	asked    bool   // it is known which sources there are
	ranks    []rank
	epoch    uint64   // how often the blocks were begun anew
	told     standing // what was taken off last
}

// rank is one source of a replica.
type rank struct {
	replay  bool  // it can be asked for what was missed
	heard   bool  // something has come
	partial bool  // events are missing
	last    int64 // sequence number, -1 = none yet
}

// standing is what the fold wants to know of a holder.
type standing struct {
	life    uint32
	kv      state.KVState
	tags    bool
	settled bool // to know more takes new events, or a replica that can be asked
}

// standing sums up. A replica of which no source has told anything is as good
// as one without sources.
func (h *holder) standing() standing {
	x := h.shelf.index
	heard, partial, waiting := false, x.Partial(h.slot), false
	for _, r := range h.ranks {
		heard = heard || r.heard
		partial = partial || r.partial
		waiting = waiting || r.partial && r.replay
	}
	s := standing{life: h.life, tags: x.Tagged(h.slot), settled: h.asked && !waiting}
	switch {
	case heard && partial:
		s.kv = state.KVPartial
	case heard:
		s.kv = state.KVComplete
	}
	return s
}

// change runs f under the lock, as all of the following do, and has what it
// did taken off.
func (h *holder) change(f func()) {
	h.shelf.mu.Lock()
	defer h.shelf.mu.Unlock()
	f()
	h.shelf.touch()
}

// drop forgets all blocks.
func (h *holder) drop() {
	h.shelf.index.Drop(h.slot)
	h.shelf.index.SetCapacity(h.slot, h.capacity)
	h.epoch++
}

// begin says that the replica has been started anew.
func (h *holder) begin(life uint32) {
	h.change(func() {
		h.drop()
		h.life, h.asked, h.ranks = life, false, nil
	})
}

// open says which sources there are from now on.
func (h *holder) open(sources []kvevents.Source) {
	h.change(func() {
		h.drop()
		h.asked, h.ranks = true, make([]rank, len(sources))
		for i, s := range sources {
			h.ranks[i] = rank{replay: s.Replay != "", partial: true, last: -1}
		}
	})
}

// keep says that the sources stay as they are.
func (h *holder) keep() {
	h.change(func() { h.asked = true })
}

// resize takes over the size of the cache, in blocks; 0 = not known.
func (h *holder) resize(blocks int) {
	h.change(func() {
		h.capacity = blocks
		h.shelf.index.SetCapacity(h.slot, blocks)
	})
}

// clear says that the cache is empty, though no event tells so.
func (h *holder) clear() {
	h.change(func() {
		for rank := range h.ranks {
			h.shelf.index.Cleared(h.at(rank))
		}
	})
}

func (h *holder) at(rank int) blocks.At { return blocks.At{Slot: h.slot, Rank: rank} }

// leave says that the replica is gone.
func (h *holder) leave() {
	h.change(func() {
		h.shelf.index.Drop(h.slot)
		delete(h.shelf.holders, h)
	})
}

// Batch is part of [kvevents.Sink].
func (h *holder) Batch(src int, seq uint64, b *kvevents.Batch) {
	h.change(func() {
		r := &h.ranks[src]
		r.heard, r.last = true, int64(seq)
		h.shelf.index.Fold(h.at(src), b)
	})
}

// Reset is part of [kvevents.Sink].
func (h *holder) Reset(src int, _ kvevents.Reason) {
	h.change(func() {
		h.shelf.index.Reset(h.at(src))
		h.epoch++
		h.ranks[src].partial, h.ranks[src].last = true, -1
	})
}

// Partial is part of [kvevents.Sink].
func (h *holder) Partial(src int, partial bool) {
	h.change(func() {
		r := &h.ranks[src]
		r.heard, r.partial = r.heard || !partial, partial
	})
}

// KV is what is known of one replica's blocks.
type KV struct {
	Blocks    int    // resident
	BlockSize uint32 // tokens; 0 = not known
	LastSeq   int64  // of the last event batch, the largest of all sources; -1 = none yet
	Partial   bool
	Epoch     uint64 // how often the blocks were begun anew
}

func (h *holder) kv() KV {
	h.shelf.mu.Lock()
	defer h.shelf.mu.Unlock()
	x := h.shelf.index
	kv := KV{
		Blocks: x.Blocks(h.slot), BlockSize: x.BlockSize(h.slot), LastSeq: -1,
		Partial: h.standing().kv != state.KVComplete, Epoch: h.epoch,
	}
	for _, r := range h.ranks {
		kv.LastSeq = max(kv.LastSeq, r.last)
	}
	return kv
}

// Block is a block by its engine's own name.
type Block struct {
	Hash   uint64 `json:"hash"`
	Copies int    `json:"copies"`
}

// blocks lists what is resident, in the order of the names.
func (h *holder) blocks() []Block {
	h.shelf.mu.Lock()
	defer h.shelf.mu.Unlock()
	list := []Block{}
	for hash, copies := range h.shelf.index.Hashes(h.slot) {
		list = append(list, Block{Hash: hash, Copies: copies})
	}
	slices.SortFunc(list, func(a, b Block) int { return cmp.Compare(a.Hash, b.Hash) })
	return list
}
