package blocks

import "github.com/warmlane/warmlane/filter/kvindex"

// blockID, nodeID, holderID and textID are places in the tree's slices; 0 is none.
type (
	blockID  uint32
	nodeID   uint32
	holderID uint32
	textID   uint32
)

const noBlock blockID = 0

// maxNodes is as many as a place can tell apart.
const maxNodes = 1 << 25

// block is one block of tokens. Free ones are linked by next.
type block struct {
	key  uint64
	next blockID // in its node; 0: the last
	at   place
}

// place is a block's node and its offset there.
type place uint32

func placeOf(n nodeID, off uint32) place { return place(uint32(n)<<7 | off) }
func (p place) node() nodeID             { return nodeID(p >> 7) }
func (p place) offset() uint32           { return uint32(p & 127) }

// node is a run of blocks. Free ones are linked by next.
type node struct {
	id         uint64 // key of the first block
	sum        uint64 // of the record last told, 0: none
	first      blockID
	last       blockID
	parent     nodeID
	child      nodeID // the first; the others by next and prev
	next, prev nodeID
	holders    holderID
	texts      textID // those that end here
	depth      uint32 // blocks before this node
	size       uint32 // tokens in a block
	n          uint8  // blocks
	dirty      bool
}

// tree is the radix tree of blocks. Freed memory is used again.
type tree struct {
	blocks  []block
	nodes   []node
	holders []holder
	heads   map[uint64]nodeID // by id

	freeBlock  blockID
	freeNode   nodeID
	freeHolder holderID
	live       int // blocks in nodes

	dirty []nodeID // may be told anew, or may be needed no more
	gone  []uint64 // ids of nodes that were told and are no more
	texts texts
}

func newTree() tree {
	return tree{
		blocks: make([]block, 1), nodes: make([]node, 1), holders: make([]holder, 1),
		heads: map[uint64]nodeID{}, texts: newTexts(),
	}
}

// step finds or makes the block with a key after prev, noBlock for the start of
// a prompt. It returns noBlock if there can be none: the path would be too long,
// or the key is in use elsewhere.
func (t *tree) step(prev blockID, key uint64, size uint32) blockID {
	if prev == noBlock {
		return t.follow(0, key, size)
	}
	at := t.blocks[prev].at
	n := at.node()
	if next := t.blocks[prev].next; next != noBlock {
		if t.blocks[next].key == key {
			return next
		}
		if !t.split(n, at.offset()+1) {
			return noBlock
		}
	}
	return t.follow(n, key, size)
}

// follow finds or makes the block that comes after the last one of n.
func (t *tree) follow(n nodeID, key uint64, size uint32) blockID {
	if m, ok := t.heads[key]; ok {
		if t.nodes[m].parent != n || t.nodes[m].size != size {
			return noBlock
		}
		return t.nodes[m].first
	}
	var depth uint32
	if n != 0 {
		p := &t.nodes[n]
		depth = p.depth + uint32(p.n)
		if depth >= kvindex.MaxDepth {
			return noBlock
		}
		if p.child == 0 && p.n < kvindex.MaxRun {
			return t.extend(n, key)
		}
	}
	return t.begin(n, key, depth, size)
}

// extend appends a block to n, which has no children and is not full.
func (t *tree) extend(n nodeID, key uint64) blockID {
	b := t.newBlock()
	p := &t.nodes[n]
	t.blocks[b] = block{key: key, at: placeOf(n, uint32(p.n))}
	t.blocks[p.last].next = b
	p.last = b
	p.n++
	t.mark(n)
	return b
}

// begin makes a node of one block, a child of parent.
func (t *tree) begin(parent nodeID, key uint64, depth, size uint32) blockID {
	n := t.newNode()
	if n == 0 {
		return noBlock
	}
	b := t.newBlock()
	t.blocks[b] = block{key: key, at: placeOf(n, 0)}
	t.nodes[n] = node{id: key, first: b, last: b, depth: depth, size: size, n: 1}
	t.adopt(parent, n)
	t.name(n)
	t.mark(n)
	return b
}

// split makes a node of its own of the blocks of n from offset cut on. It
// refuses if their first key is in use.
func (t *tree) split(n nodeID, cut uint32) bool {
	middle := t.at(n, cut-1)
	first := t.blocks[middle].next
	id := t.blocks[first].key
	if _, taken := t.heads[id]; taken {
		return false
	}
	m := t.newNode()
	if m == 0 {
		return false
	}
	p := &t.nodes[n]
	t.nodes[m] = node{
		id: id, first: first, last: p.last, child: p.child,
		depth: p.depth + cut, size: p.size, n: p.n - uint8(cut),
	}
	p.last, p.n, p.child = middle, uint8(cut), 0
	t.blocks[middle].next = noBlock
	for b, off := first, uint32(0); b != noBlock; b, off = t.blocks[b].next, off+1 {
		t.blocks[b].at = placeOf(m, off)
	}
	for c := t.nodes[m].child; c != 0; c = t.nodes[c].next {
		t.nodes[c].parent = m
		t.mark(c)
	}
	t.adopt(n, m)
	t.name(m)
	t.splitHolders(n, m, cut)
	t.splitTexts(n, m)
	t.mark(n)
	t.mark(m)
	return true
}

// at is the block of n at an offset.
func (t *tree) at(n nodeID, off uint32) blockID {
	b := t.nodes[n].first
	for range off {
		b = t.blocks[b].next
	}
	return b
}

// adopt makes n a child of parent, which may be none.
func (t *tree) adopt(parent, n nodeID) {
	if parent == 0 {
		return
	}
	next := t.nodes[parent].child
	t.nodes[n].parent, t.nodes[n].next = parent, next
	if next != 0 {
		t.nodes[next].prev = n
	}
	t.nodes[parent].child = n
}

// name enters n under its id. A text that has this id is given up.
func (t *tree) name(n nodeID) {
	id := t.nodes[n].id
	t.heads[id] = n
	if x, ok := t.texts.byID[id]; ok {
		t.forget(x)
	}
}

// mark notes that n has changed.
func (t *tree) mark(n nodeID) {
	if p := &t.nodes[n]; !p.dirty {
		p.dirty = true
		t.dirty = append(t.dirty, n)
	}
}

// leads tells whether a lies on the path that ends with b.
func (t *tree) leads(a, b blockID) bool {
	from, to := t.blocks[a].at, t.blocks[b].at
	n, off := to.node(), to.offset()
	for n != from.node() {
		if t.nodes[n].depth <= t.nodes[from.node()].depth {
			return false
		}
		n, off = t.nodes[n].parent, kvindex.MaxRun
	}
	return from.offset() <= off
}

// prune takes out those of the last blocks of n that nobody needs, and if that
// is all of them then n itself, and then looks at its parent.
func (t *tree) prune(n nodeID) {
	for n != 0 {
		needed := t.needed(n)
		if needed > 0 {
			t.trim(n, needed)
			return
		}
		parent := t.nodes[n].parent
		t.drop(n)
		n = parent
	}
}

// needed is how many blocks of n are held, end a text or lead to other nodes.
func (t *tree) needed(n nodeID) uint32 {
	p := &t.nodes[n]
	if p.child != 0 {
		return uint32(p.n)
	}
	return max(t.topHeld(n), t.topText(n))
}

func (t *tree) trim(n nodeID, keep uint32) {
	p := &t.nodes[n]
	if uint32(p.n) == keep {
		return
	}
	last := t.at(n, keep-1)
	t.freeBlocks(t.blocks[last].next, p.last, int(p.n)-int(keep))
	t.blocks[last].next = noBlock
	p.last, p.n = last, uint8(keep)
	t.mark(n)
}

// drop takes out a node without children, holders and texts.
func (t *tree) drop(n nodeID) {
	p := &t.nodes[n]
	t.freeBlocks(p.first, p.last, int(p.n))
	delete(t.heads, p.id)
	if p.sum != 0 {
		t.gone = append(t.gone, p.id)
	}
	if p.prev != 0 {
		t.nodes[p.prev].next = p.next
	} else if p.parent != 0 {
		t.nodes[p.parent].child = p.next
	}
	if p.next != 0 {
		t.nodes[p.next].prev = p.prev
	}
	*p = node{next: t.freeNode}
	t.freeNode = n
}

func (t *tree) newBlock() blockID {
	t.live++
	if b := t.freeBlock; b != noBlock {
		t.freeBlock = t.blocks[b].next
		return b
	}
	t.blocks = append(t.blocks, block{})
	return blockID(len(t.blocks) - 1)
}

// freeBlocks gives back a chain of n blocks.
func (t *tree) freeBlocks(first, last blockID, n int) {
	t.blocks[last].next = t.freeBlock
	t.freeBlock = first
	t.live -= n
}

// newNode returns 0 if there are too many.
func (t *tree) newNode() nodeID {
	if n := t.freeNode; n != 0 {
		t.freeNode = t.nodes[n].next
		return n
	}
	if len(t.nodes) >= maxNodes {
		return 0
	}
	t.nodes = append(t.nodes, node{})
	return nodeID(len(t.nodes) - 1)
}
