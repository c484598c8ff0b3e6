package prefix

// Chain hashes the canonical bytes of one prompt. It has the methods of the
// request scanner's sink. The zero value is an empty chain.
type Chain struct {
	hash   uint64 // of all whole blocks
	blocks int
	fill   int // bytes of the unfinished block, in tail

	rungs int // rungs stored
	wait  int // blocks to come before the one that is the next rung

	borders int // borders so far; the last of them are stored
	ring    uint64
	ringSet bool

	border [keptBorders]border
	rung   [maxRungs]uint64
	tail   [BlockBytes]byte
}

// keptBorders is how many of the last borders a chain remembers.
const keptBorders = 4

// border is the end of a message: the hash and number of all bytes before it.
type border struct {
	hash  uint64
	bytes int64
}

const (
	// borderSeed keeps the hash of a whole block at a border apart from the
	// hash of the same block on the ladder.
	borderSeed = 0x9E3779B97F4A7C15
	// ringBlock is the block whose hash places a prompt on the ring if no
	// border comes before it.
	ringBlock = 4
)

// Reset makes c empty.
func (c *Chain) Reset() {
	c.hash, c.blocks, c.fill = 0, 0, 0
	c.rungs, c.wait = 0, 0
	c.borders, c.ring, c.ringSet = 0, 0, false
}

// Text appends b. It keeps no reference to it.
func (c *Chain) Text(b []byte) {
	if c.fill > 0 {
		n := copy(c.tail[c.fill:], b)
		c.fill += n
		b = b[n:]
		if c.fill < BlockBytes {
			return
		}
		c.block(&c.tail)
	}
	for len(b) >= BlockBytes {
		c.block((*[BlockBytes]byte)(b))
		b = b[BlockBytes:]
	}
	c.fill = copy(c.tail[:], b)
}

func (c *Chain) block(b *[BlockBytes]byte) {
	c.hash = hashBlock(b, c.hash)
	c.blocks++
	if c.wait > 0 {
		c.wait--
		return
	}
	c.climb()
}

// climb stores a rung.
func (c *Chain) climb() {
	if c.rungs == maxRungs {
		return
	}
	c.rung[c.rungs] = c.hash
	c.rungs++
	c.wait = stepAt(c.rungs) - 1
	if c.blocks == ringBlock && !c.ringSet {
		c.ring, c.ringSet = c.hash, true
	}
}

// Border says that a message ends here.
func (c *Chain) Border() {
	b := c.end()
	c.border[c.borders%keptBorders] = b
	c.borders++
	if !c.ringSet && b.bytes >= BlockBytes {
		c.ring, c.ringSet = b.hash, true
	}
}

// end is the border that would lie at the end of what was written.
func (c *Chain) end() border {
	return border{
		hash:  hashBytes(c.tail[:c.fill], c.hash^borderSeed),
		bytes: c.Bytes(),
	}
}

// lastBorder returns the border that has back others after it, if it exists
// and is still stored.
func (c *Chain) lastBorder(back int) (border, bool) {
	if back >= c.borders || back >= keptBorders {
		return border{}, false
	}
	return c.border[(c.borders-1-back)%keptBorders], true
}

// Bytes is how many bytes were written.
func (c *Chain) Bytes() int64 {
	return int64(c.blocks)*BlockBytes + int64(c.fill)
}

// Blocks is how many whole blocks were written.
func (c *Chain) Blocks() int { return c.blocks }

// RingHash places the prompt on a consistent ring, for proxies that know
// nothing of it: prompts with the same beginning in the same namespace have
// the same hash, in every proxy. The beginning ends at the first border at or
// past block 1, or at block 4, whichever comes first: late enough that one
// line of system prompt does not gather everybody, early enough that all turns
// of a conversation agree. Shorter prompts count as a whole.
func (c *Chain) RingHash(ns Namespace) uint64 {
	if c.ringSet {
		return ns.mix(c.ring)
	}
	return ns.mix(c.end().hash)
}
