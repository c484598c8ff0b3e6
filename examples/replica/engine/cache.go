package engine

// block is one physical block of the cache. It is in use (refs > 0), or free and
// still holding what its hash names, or free and empty.
type block struct {
	refs   int
	cached bool // hash is valid and the block is in the index
	hash   Hash
	parent Hash
	root   bool // the block is the first of its prompt: parent means nothing
	tokens []Token
	extra  []string
	twin   *block // the next physical copy of the same block

	prev, next *block // in the free list; nil when in use
}

// cache is the pool of blocks with its index by hash. The free list is in order
// of last use: blocks are taken from its front and given back at its end.
type cache struct {
	size   int // tokens in a block
	total  int // blocks that can be used
	free   int
	list   block             // head of the free list, a ring
	index  map[uint64]*block // by Hash.Uint64: the name that is published
	single bool
}

// newCache makes blocks-1 usable blocks: one is kept out, as vLLM's null block is.
func newCache(blocks, size int, single bool) *cache {
	c := &cache{size: size, total: blocks - 1, index: make(map[uint64]*block), single: single}
	c.list.prev, c.list.next = &c.list, &c.list
	all := make([]block, c.total)
	for i := range all {
		c.push(&all[i])
	}
	return c
}

// push puts a block at the end of the free list.
func (c *cache) push(b *block) {
	b.prev, b.next = c.list.prev, &c.list
	b.prev.next, b.next.prev = b, b
	c.free++
}

// unlink takes a block out of the free list.
func (c *cache) unlink(b *block) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	c.free--
}

// used is how many blocks requests hold.
func (c *cache) used() int { return c.total - c.free }

// match is the number of leading hashes that are cached.
func (c *cache) match(hashes []Hash) int {
	for i, h := range hashes {
		if c.index[h.Uint64()] == nil {
			return i
		}
	}
	return len(hashes)
}

// idle counts those of the named blocks that are in the free list: holding them
// uses up free blocks.
func (c *cache) idle(hashes []Hash) (n int) {
	for _, h := range hashes {
		if c.index[h.Uint64()].refs == 0 {
			n++
		}
	}
	return n
}

// hold takes a reference to a cached block.
func (c *cache) hold(h Hash) *block {
	b := c.index[h.Uint64()]
	if b.refs == 0 {
		c.unlink(b)
	}
	b.refs++
	return b
}

// take allocates the block that was used least recently. removed tells whether
// that lost a cached block, whose hash it is. The caller has seen that one is free.
func (c *cache) take() (b *block, lost Hash, removed bool) {
	b = c.list.next
	c.unlink(b)
	if b.cached {
		lost, removed = b.hash, true
		c.forget(b)
	}
	b.refs = 1
	return b, lost, removed
}

// release gives back a sequence's blocks, last first, so that the end of a
// prefix is evicted before its beginning.
func (c *cache) release(blocks []*block) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if b.refs--; b.refs == 0 {
			c.push(b)
		}
	}
}

// publish enters a block whose tokens are computed into the index. It reports
// whether the block is now cached there: false in single-copy mode if another
// one is.
func (c *cache) publish(b *block) bool {
	first := c.index[b.hash.Uint64()]
	if first != nil && c.single {
		return false
	}
	b.cached = true
	if first == nil {
		c.index[b.hash.Uint64()] = b
		return true
	}
	b.twin, first.twin = first.twin, b
	return true
}

// forget takes a block out of the index; another copy takes its place.
func (c *cache) forget(b *block) {
	first := c.index[b.hash.Uint64()]
	switch {
	case first != b:
		for first.twin != b {
			first = first.twin
		}
		first.twin = b.twin
	case b.twin != nil:
		c.index[b.hash.Uint64()] = b.twin
	default:
		delete(c.index, b.hash.Uint64())
	}
	b.cached, b.twin, b.tokens, b.extra = false, nil, nil, nil
}

// reset forgets all cached blocks. It refuses while any is in use.
func (c *cache) reset() bool {
	if c.used() > 0 {
		return false
	}
	for b := c.list.next; b != &c.list; b = b.next {
		b.cached, b.twin, b.tokens, b.extra = false, nil, nil, nil
	}
	clear(c.index)
	return true
}
