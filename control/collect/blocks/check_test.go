package blocks

import (
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
)

// check tests that an index is whole: the tree is one, and the tables, counts
// and lists say the same as it does.
func check(t testing.TB, x *Index) {
	t.Helper()
	fail := func(format string, args ...any) { t.Helper(); t.Fatalf(format, args...) }
	checkNodes(x, fail)
	checkRanks(x, fail)
	checkTexts(x, fail)
}

type failer func(format string, args ...any)

func checkNodes(x *Index, fail failer) {
	tr := &x.tree
	blocks := 0
	for id, n := range tr.heads {
		p := &tr.nodes[n]
		blocks += int(p.n)
		if p.id != id || p.n == 0 || p.n > kvindex.MaxRun {
			fail("node %d is entered as %x: %+v", n, id, *p)
		}
		checkRun(tr, n, fail)
		if p.parent == 0 {
			if p.depth != 0 {
				fail("node %d has no parent and depth %d", n, p.depth)
			}
			continue
		}
		up := &tr.nodes[p.parent]
		if tr.heads[up.id] != p.parent || p.depth != up.depth+uint32(up.n) || p.size != up.size {
			fail("node %+v does not fit its parent %+v", *p, *up)
		}
	}
	if blocks != tr.live {
		fail("%d blocks in nodes, %d counted", blocks, tr.live)
	}
	for b := tr.freeBlock; b != noBlock; b = tr.blocks[b].next {
		blocks++
	}
	nodes := len(tr.heads)
	for n := tr.freeNode; n != 0; n = tr.nodes[n].next {
		nodes++
	}
	if blocks != len(tr.blocks)-1 || nodes != len(tr.nodes)-1 {
		fail("lost: %d of %d blocks, %d of %d nodes", len(tr.blocks)-1-blocks, len(tr.blocks)-1, len(tr.nodes)-1-nodes, len(tr.nodes)-1)
	}
}

// checkRun checks a node's blocks and children.
func checkRun(tr *tree, n nodeID, fail failer) {
	p := &tr.nodes[n]
	b, off := p.first, uint32(0)
	if tr.blocks[b].key != p.id {
		fail("node %x begins with block %x", p.id, tr.blocks[b].key)
	}
	for ; ; b, off = tr.blocks[b].next, off+1 {
		if at := tr.blocks[b].at; at.node() != n || at.offset() != off {
			fail("block %d of node %d thinks it is %d of %d", off, n, at.offset(), at.node())
		}
		if b == p.last {
			break
		}
	}
	if off+1 != uint32(p.n) || tr.blocks[b].next != noBlock {
		fail("node %d has %d blocks, says %d", n, off+1, p.n)
	}
	for c, prev := p.child, nodeID(0); c != 0; c, prev = tr.nodes[c].next, c {
		if tr.nodes[c].parent != n || tr.nodes[c].prev != prev {
			fail("child %d of %d: %+v", c, n, tr.nodes[c])
		}
	}
}

// bit is one block of a rank in a tier.
type bit struct {
	rank  rankID
	block blockID
	in    tier
}

func checkRanks(x *Index, fail failer) {
	names := map[bit]int{}
	for _, s := range x.bySlot {
		copies := 0
		for _, r := range s.ranks {
			if x.ranks[r.id] != r || x.byAt[r.at] != r {
				fail("rank %+v is not where it should be", r.at)
			}
			checkTable(r, names, fail)
			copies += r.copies
		}
		if copies != s.copies {
			fail("%d copies in the ranks, %d counted", copies, s.copies)
		}
	}
	holders := 0
	for id, n := range x.tree.heads {
		for h := x.tree.nodes[n].holders; h != 0; h = x.tree.holders[h].next {
			holders++
			p := &x.tree.holders[h]
			if x.ranks[p.rank] == nil || p.tiers[onGPU].empty() && p.tiers[below].empty() {
				fail("node %x has holder %+v", id, *p)
			}
			for b := x.tree.nodes[n].first; b != noBlock; b = x.tree.blocks[b].next {
				for in := range tiers {
					checkBit(x, p, bit{p.rank, b, in}, names, fail)
				}
			}
			if x.tree.nodes[n].holders != 0 && x.tree.topHeld(n) > uint32(x.tree.nodes[n].n) {
				fail("node %x has holders of blocks beyond its end", id)
			}
		}
	}
	if len(names) != 0 {
		fail("%d blocks in tables are not held in the tree", len(names))
	}
	for h := x.tree.freeHolder; h != 0; h = x.tree.holders[h].next {
		holders++
	}
	if holders != len(x.tree.holders)-1 {
		fail("%d of %d holders are lost", len(x.tree.holders)-1-holders, len(x.tree.holders)-1)
	}
}

// checkBit compares a holder's bit with the names for it and takes these out.
func checkBit(x *Index, h *holder, k bit, names map[bit]int, fail failer) {
	want := 0
	if h.tiers[k.in].has(x.tree.blocks[k.block].at.offset()) {
		want = 1 + int(x.ranks[k.rank].aliases[k.block][k.in])
	}
	if names[k] != want {
		fail("%+v: tables have %d names, tree and aliases %d", k, names[k], want)
	}
	delete(names, k)
}

// checkTable counts names for blocks by what a table says.
func checkTable(r *rank, names map[bit]int, fail failer) {
	entries, copies, orphans, blocks := 0, 0, 0, map[blockID]bool{}
	for i := range r.table.slots {
		e := &r.table.slots[i]
		if e.free() {
			continue
		}
		entries++
		copies += int(e.gpu)
		if r.table.find(e.hash) != e {
			fail("hash %x is in the table but not found", e.hash)
		}
		if e.block == noBlock {
			orphans++
			continue
		}
		if e.gpu > 0 {
			names[bit{r.id, e.block, onGPU}]++
			blocks[e.block] = true
		}
		if e.low > 0 {
			names[bit{r.id, e.block, below}]++
		}
	}
	if entries != r.table.n || copies != r.copies || orphans != r.orphans || len(blocks) != r.blocks {
		fail("table has %d entries, %d copies, %d orphans, %d blocks; counted %d, %d, %d, %d",
			entries, copies, orphans, len(blocks), r.table.n, r.copies, r.orphans, r.blocks)
	}
}

func checkTexts(x *Index, fail failer) {
	tr := &x.tree
	hung := 0
	for _, n := range tr.heads {
		for i, prev := tr.nodes[n].texts, textID(0); i != 0; i, prev = tr.texts.all[i].next, i {
			hung++
			p := &tr.texts.all[i]
			if tr.texts.byID[p.id] != i || tr.blocks[p.block].at.node() != n || p.prev != prev {
				fail("text %+v hangs at node %d", *p, n)
			}
		}
	}
	aged := 0
	for i, older := tr.texts.oldest, textID(0); i != 0; i, older = tr.texts.all[i].newer, i {
		aged++
		if tr.texts.all[i].older != older {
			fail("text %d has %d before it, says %d", i, older, tr.texts.all[i].older)
		}
	}
	if n := len(tr.texts.byID); hung != n || aged != n || n > maxTexts {
		fail("%d texts, %d hang in the tree, %d have an age", n, hung, aged)
	}
	for id := range tr.texts.byID {
		if _, node := tr.heads[id]; node || id == 0 {
			fail("%x is a text and a node", id)
		}
	}
}
