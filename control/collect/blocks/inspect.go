package blocks

import (
	"slices"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// Blocks is how many blocks a replica has on its GPUs; one that several ranks
// have counts for each.
func (x *Index) Blocks(n uint16) (blocks int) {
	if s := x.bySlot[n]; s != nil {
		for _, r := range s.ranks {
			blocks += r.blocks
		}
	}
	return blocks
}

// BlockSize is how many tokens are in a replica's blocks, 0 if that is not known.
func (x *Index) BlockSize(n uint16) (size uint32) {
	if s := x.bySlot[n]; s != nil {
		for _, r := range s.ranks {
			size = max(size, r.size)
		}
	}
	return size
}

// Keys returns the keys of all blocks a replica has on its GPUs, in ascending
// order.
func (x *Index) Keys(n uint16) (keys []uint64) {
	x.each(n, func(e *entry) {
		if e.block != noBlock {
			keys = append(keys, x.tree.blocks[e.block].key)
		}
	})
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Hashes returns by its engines' own names what a replica has on its GPUs, also
// the blocks whose place is not known, with the number of copies.
func (x *Index) Hashes(n uint16) map[kvevents.Hash]int {
	copies := map[kvevents.Hash]int{}
	x.each(n, func(e *entry) { copies[e.hash] += int(e.gpu) })
	return copies
}

// each calls f with all of a replica's entries that are on a GPU.
func (x *Index) each(n uint16, f func(e *entry)) {
	s := x.bySlot[n]
	if s == nil {
		return
	}
	for _, r := range s.ranks {
		for i := range r.table.slots {
			if e := &r.table.slots[i]; e.gpu > 0 {
				f(e)
			}
		}
	}
}
