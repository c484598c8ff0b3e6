package blocks

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/warmlane/warmlane/filter/kvindex"
)

// Paths of remembered prompts stay in the tree when nobody holds them, but not
// more blocks than are held and idleBlocks more: then the oldest prompts are
// forgotten, forgetAtOnce at a time.
const (
	idleBlocks   = 1 << 18
	forgetAtOnce = 1 << 8
)

// Records tells what has changed since the last call: each record once, as it is
// now, with payload nil if there is none any more. The payload is the caller's.
// What nobody needs is taken out of the tree here, so call it regularly.
func (x *Index) Records(emit func(id uint64, payload []byte)) {
	t := &x.tree
	t.pruneAll()
	for t.live > 2*x.held()+idleBlocks && len(t.texts.byID) > 0 {
		for n := forgetAtOnce; n > 0 && t.texts.oldest != 0; n-- {
			t.forget(t.texts.oldest)
		}
		t.pruneAll()
	}
	x.emitNodes(emit)
	x.emitTexts(emit)
}

// held is how many blocks engines hold, shared ones counted for each.
func (x *Index) held() (n int) {
	for _, r := range x.ranks {
		if r != nil {
			n += r.table.n - r.orphans
		}
	}
	return n
}

// pruneAll prunes what is dirty.
func (t *tree) pruneAll() {
	for i := 0; i < len(t.dirty); i++ {
		if n := t.dirty[i]; t.nodes[n].n > 0 {
			t.prune(n)
		}
	}
}

func (x *Index) emitNodes(emit func(uint64, []byte)) {
	t := &x.tree
	for _, n := range t.dirty {
		p := &t.nodes[n]
		if p.n == 0 || !p.dirty {
			continue
		}
		p.dirty = false
		x.record = x.appendNode(x.record[:0], n)
		x.tell(p.id, &p.sum, emit)
	}
	for _, id := range t.gone {
		emit(id, nil)
	}
	t.dirty, t.gone = t.dirty[:0], t.gone[:0]
}

func (x *Index) emitTexts(emit func(uint64, []byte)) {
	t := &x.tree.texts
	for _, i := range t.dirty {
		p := &t.all[i]
		if !p.dirty {
			continue
		}
		p.dirty = false
		if p.id != 0 {
			x.record = x.appendText(x.record[:0], p)
			x.tell(p.id, &p.sum, emit)
		}
	}
	for _, id := range t.gone {
		_, anew := t.byID[id]
		if _, node := x.tree.heads[id]; !anew && !node {
			emit(id, nil)
		}
	}
	t.dirty, t.gone = t.dirty[:0], t.gone[:0]
}

// tell emits the record in the making unless it is the one that was told last,
// as sum says.
func (x *Index) tell(id uint64, sum *uint64, emit func(uint64, []byte)) {
	now := max(xxhash.Sum64(x.record), 1)
	if now == *sum {
		return
	}
	*sum = now
	emit(id, slices.Clone(x.record))
}

func (x *Index) appendNode(dst []byte, n nodeID) []byte {
	t := &x.tree
	p := &t.nodes[n]
	v := &x.node
	v.Parent, v.Depth, v.Size = 0, p.depth, p.size
	if p.parent != 0 {
		v.Parent = t.nodes[p.parent].id
	}
	v.Tags = v.Tags[:0]
	for b := p.first; b != noBlock; b = t.blocks[b].next {
		v.Tags = append(v.Tags, uint16(t.blocks[b].key))
	}
	v.Held = x.appendHeld(v.Held[:0], p.holders)
	return kvindex.AppendNode(dst, v)
}

// appendHeld makes one entry of all ranks of a replica: a block is there if any
// of them has it.
func (x *Index) appendHeld(dst []kvindex.Held, h holderID) []kvindex.Held {
	x.holders = x.holders[:0]
	for ; h != 0; h = x.tree.holders[h].next {
		x.holders = append(x.holders, h)
	}
	slices.SortFunc(x.holders, func(a, b holderID) int { return int(x.slotOf(a)) - int(x.slotOf(b)) })
	for i := 0; i < len(x.holders); {
		slot := x.slotOf(x.holders[i])
		var has, any mask
		for ; i < len(x.holders) && x.slotOf(x.holders[i]) == slot; i++ {
			p := &x.tree.holders[x.holders[i]]
			has.or(&p.tiers[onGPU])
			any.or(&p.tiers[below])
		}
		any.or(&has)
		if any.has(0) {
			dst = append(dst, kvindex.Held{Slot: slot, Run: has.run(), Any: any.run()})
		}
	}
	return dst
}

func (x *Index) slotOf(h holderID) uint16 { return x.ranks[x.tree.holders[h].rank].at.Slot }

func (x *Index) appendText(dst []byte, p *text) []byte {
	at := x.tree.blocks[p.block].at
	n := &x.tree.nodes[at.node()]
	blocks := at.offset() + 1
	return kvindex.AppendText(dst, &kvindex.Text{
		Leaf: n.id, Blocks: uint8(blocks), Depth: n.depth + blocks, Size: n.size,
	})
}
