package lab

// blockTokens is the engines' block size. Only whole blocks are cached.
const blockTokens = 16

// cache holds chunks of blocks under a limit, the least recently used going
// first. Chunks that running requests use are pinned. Memory that a request
// has reserved but not filled counts as used.
type cache struct {
	limit, used int // blocks
	chunks      map[uint64]*chunk
	tick        int64
}

type chunk struct {
	blocks, pins int
	last         int64 // tick of the last use
}

func newCache(limit int) *cache {
	return &cache{limit: limit, chunks: map[uint64]*chunk{}}
}

func (c *cache) clone() *cache {
	d := *c
	d.chunks = make(map[uint64]*chunk, len(c.chunks))
	all := make([]chunk, 0, len(c.chunks))
	for id, k := range c.chunks {
		all = append(all, *k)
		d.chunks[id] = &all[len(all)-1]
	}
	return &d
}

// match is how many of the request's leading chunks are resident.
func (c *cache) match(r *Request) int {
	n := 0
	for n < len(r.Chunks) && c.chunks[r.Chunks[n]] != nil {
		n++
	}
	return n
}

// reserve takes blocks for a request, evicting as needed; false if pinned
// chunks and other reservations leave no room.
func (c *cache) reserve(blocks int) bool {
	over := c.used + blocks - c.limit
	if over > 0 && !c.evict(over) {
		return false
	}
	c.used += blocks
	return true
}

// evict frees at least so many blocks, or none.
func (c *cache) evict(blocks int) bool {
	free := 0
	for _, k := range c.chunks {
		if k.pins == 0 {
			free += k.blocks
		}
	}
	if free < blocks {
		return false
	}
	for blocks > 0 {
		blocks -= c.evictOldest()
	}
	return true
}

func (c *cache) evictOldest() int {
	var oldest *chunk
	var name uint64
	for id, k := range c.chunks {
		if k.pins == 0 && (oldest == nil || k.last < oldest.last) {
			oldest, name = k, id
		}
	}
	delete(c.chunks, name)
	c.used -= oldest.blocks
	return oldest.blocks
}

// fill turns reserved blocks into a resident, pinned chunk. If another request
// was first, its copy is pinned and the reservation given back.
func (c *cache) fill(name uint64, blocks int) {
	k := c.chunks[name]
	if k == nil {
		k = &chunk{blocks: blocks}
		c.chunks[name] = k
	} else {
		c.used -= blocks
	}
	k.pins++
}

// unpin lets go of the request's first n chunks, the last one being the first
// to be evicted.
func (c *cache) unpin(r *Request, n int) {
	for i := n - 1; i >= 0; i-- {
		k := c.chunks[r.Chunks[i]]
		k.pins--
		c.tick++
		k.last = c.tick
	}
}
