package blocks

import (
	"math"
	"slices"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
)

const (
	maxOrphans = 1 << 16 // hashes of an engine remembered without a place
	maxBegun   = 1 << 10 // runs of one batch that are compared with later ones
)

// Fold takes in all events of a batch.
func (x *Index) Fold(at At, b *kvevents.Batch) {
	for i := range b.Events {
		switch e := &b.Events[i]; e.Type {
		case kvevents.TypeStored:
			x.Stored(at, &e.Stored, b.TS)
		case kvevents.TypeRemoved:
			x.Removed(at, &e.Removed)
		case kvevents.TypeCleared:
			x.Cleared(at)
		}
	}
}

// Stored takes in that an engine has stored a run of blocks; ts is the time of
// the event's batch.
func (x *Index) Stored(at At, e *kvevents.Stored, ts float64) {
	from, ok := sourceOf(e.Medium, e.Remote)
	if !ok || len(e.Hashes) == 0 {
		return
	}
	r := x.rank(at)
	if r == nil || !x.follows(r, e, from) {
		return
	}
	if from != gpu {
		x.lower(r, e, from)
		return
	}
	prev, key, ok := x.begin(r, e)
	if !ok {
		x.counter.Anomaly(kvevents.UnknownParent, 1)
		x.orphan(r, e)
		return
	}
	x.path(r, e, prev, key, r.repeats(e, ts))
	x.bound(r.slot)
}

// follows tells whether the event is about blocks that the index keeps: dense,
// of the one group that is followed, and as large as the engine's others.
func (x *Index) follows(r *rank, e *kvevents.Stored, from source) bool {
	if !dense(e.Spec) || !r.inGroup(e.Group) {
		x.counter.Anomaly(kvevents.SparseGroup, 1)
		return false
	}
	if len(e.Tokens) == 0 && from != gpu {
		return true // known by hash, or not at all
	}
	switch {
	case e.BlockSize < 1 || e.BlockSize > kvindex.MaxBlockSize:
		x.counter.Anomaly(kvevents.BadBlockSize, 1)
		return false
	case len(e.Tokens)%e.BlockSize != 0 || len(e.Tokens)/e.BlockSize != len(e.Hashes):
		x.counter.Anomaly(kvevents.Misaligned, 1)
		return false
	}
	if from == gpu && uint32(e.BlockSize) > r.size {
		// Blocks that are not full come with a smaller size, so that the largest
		// one is the engine's.
		x.clear(r)
		r.size = uint32(e.BlockSize)
	}
	if uint32(e.BlockSize) != r.size {
		x.counter.Anomaly(kvevents.BadBlockSize, 1)
		return false
	}
	if from == gpu && e.Group >= 0 {
		r.group = e.Group
	}
	return true
}

// dense tells whether a group of this kind keeps a block for all tokens. The
// kinds are those of vLLM 0.32 (v1/kv_cache_interface.py); older ones say none.
func dense(kind []byte) bool {
	switch string(kind) {
	case "", "full_attention", "mla_attention", "sink_full_attention":
		return true
	}
	return false
}

func (r *rank) inGroup(group int) bool {
	return group < 0 || r.group < 0 || group == r.group
}

// begin is the block before the event's first one, and its key; without a
// parent noBlock and the root. It is not ok if the parent's place is not known.
func (x *Index) begin(r *rank, e *kvevents.Stored) (prev blockID, key uint64, ok bool) {
	if !e.HasParent {
		return noBlock, x.root(e), true
	}
	p := r.table.find(e.Parent)
	if p == nil || p.block == noBlock {
		return noBlock, 0, false
	}
	return p.block, x.tree.blocks[p.block].key, true
}

// repeats tells whether a run is a report of what the engine had already. See
// the package comment.
func (r *rank) repeats(e *kvevents.Stored, ts float64) bool {
	if e.HasParent {
		return false
	}
	if ts != r.ts {
		r.ts, r.begun = ts, r.begun[:0]
	}
	again := slices.Contains(r.begun, e.Hashes[0])
	if !again && len(r.begun) < maxBegun {
		r.begun = append(r.begun, e.Hashes[0])
	}
	all := true
	for _, h := range e.Hashes {
		p := r.table.find(h)
		if p != nil && p.block == noBlock {
			return true
		}
		all = all && p != nil && p.gpu > 0
	}
	if !all {
		return false
	}
	if len(e.Hashes) > 1 && !again {
		r.reports = true
	}
	return r.reports
}

// path enters the run that begins after prev into the tree and the table.
func (x *Index) path(r *rank, e *kvevents.Stored, prev blockID, key uint64, report bool) {
	start := prev
	for i, h := range e.Hashes {
		key = x.key(e, i, key)
		b := x.tree.step(prev, key, r.size)
		if b == noBlock {
			break
		}
		if p := x.enter(r, h, b); p.gpu == 0 || !report {
			x.gain(r, p, gpu)
		}
		prev = b
	}
	if prev != start {
		x.tag(r.slot, e.Session, prev)
	}
}

// orphan remembers the names of blocks whose place is not known.
func (x *Index) orphan(r *rank, e *kvevents.Stored) {
	for _, h := range e.Hashes {
		p := r.table.find(h)
		if p == nil {
			if r.orphans >= maxOrphans {
				return
			}
			p, _ = r.table.put(h)
			r.orphans++
		}
		x.gain(r, p, gpu)
	}
	x.bound(r.slot)
}

// lower enters blocks in a lower tier. One that is known by its hash is not
// looked at further: some engines tell no more (vLLM's offloading connector has
// placeholders without tokens) or leave the salt out.
func (x *Index) lower(r *rank, e *kvevents.Stored, from source) {
	prev, key, placed := noBlock, uint64(0), false
	if len(e.Tokens) > 0 {
		if prev, key, placed = x.begin(r, e); !placed {
			x.counter.Anomaly(kvevents.UnknownParent, 1)
		}
	}
	for i, h := range e.Hashes {
		p := r.table.find(h)
		switch {
		case p != nil && p.block != noBlock:
			prev, key, placed = p.block, x.tree.blocks[p.block].key, len(e.Tokens) > 0
		case placed:
			key = x.key(e, i, key)
			if prev = x.tree.step(prev, key, r.size); prev == noBlock {
				return
			}
			p = x.enter(r, h, prev)
		case p == nil:
			continue
		}
		x.gain(r, p, from)
	}
}

// enter returns the entry of h, which now stands for b. The caller has it gain
// a copy.
func (x *Index) enter(r *rank, h kvevents.Hash, b blockID) *entry {
	p, fresh := r.table.put(h)
	switch {
	case fresh:
		p.block = b
	case p.block != b:
		x.rename(r, p, b)
	}
	return p
}

// bound forgets what a replica is said to have if that is more than fits: its
// events were misread.
func (x *Index) bound(s *slot) {
	if s.capacity <= 0 || s.capacity > math.MaxInt/2 || s.copies <= s.capacity+s.capacity/4 {
		return
	}
	x.counter.Anomaly(kvevents.OverCapacity, 1)
	for _, r := range s.ranks {
		x.clear(r)
		r.cut = true
	}
}

// Removed takes in that blocks are gone from a medium.
func (x *Index) Removed(at At, e *kvevents.Removed) {
	from, ok := sourceOf(e.Medium, e.Remote)
	r := x.known(at)
	if !ok || r == nil || !r.inGroup(e.Group) {
		return
	}
	for _, h := range e.Hashes {
		p := r.table.find(h)
		if p == nil {
			continue
		}
		x.lose(r, p, from)
		if p.free() {
			if p.block == noBlock {
				r.orphans--
			}
			r.table.remove(p)
		}
	}
}
