package prefix

import (
	"encoding/binary"

	"github.com/warmlane/warmlane/filter/xxh64"
)

// BlockBytes is the size of a block.
const BlockBytes = 256

// Chain hashes the canonical bytes of one prompt. It has the methods of the
// request scanner's sink. The zero value is an empty chain.
type Chain struct {
	hash   uint64 // of all whole blocks
	blocks int
	fill   int // bytes of the unfinished block, in tail

	rungs int // rungs stored
	wait  int // blocks to come before the one that is the next rung

	borders int // borders so far; the first and the last of them are stored
	ring    uint64
	ringSet bool

	first  border
	border [keptBorders]border
	rung   [maxRungs]uint64
	tail   [BlockBytes]byte
}

// keptBorders is how many of the last borders a chain remembers.
const keptBorders = 8

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
		c.whole(c.tail[:])
	}
	if len(b) >= BlockBytes {
		b = c.whole(b)
	}
	c.fill = copy(c.tail[:], b)
}

// whole takes the whole blocks of b and returns the rest. The hash of a block
// is XXH64 seeded with the hash of the block before it.
//
// It is long because it is where a long prompt spends its time: in Wasm a call
// or a turn of a loop for each part of a block costs a fifth of it.
func (c *Chain) whole(b []byte) (rest []byte) {
	h, wait := c.hash, c.wait
	c.blocks += len(b) / BlockBytes
	for len(b) >= BlockBytes {
		s := (*[BlockBytes]byte)(b)
		b = b[BlockBytes:]
		v1, v2, v3, v4 := h+xxh64.Prime1+xxh64.Prime2, h+xxh64.Prime2, h, h-xxh64.Prime1
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[0:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[8:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[16:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[24:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[32:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[40:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[48:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[56:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[64:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[72:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[80:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[88:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[96:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[104:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[112:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[120:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[128:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[136:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[144:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[152:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[160:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[168:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[176:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[184:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[192:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[200:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[208:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[216:]))
		v1 = xxh64.Round(v1, binary.LittleEndian.Uint64(s[224:]))
		v2 = xxh64.Round(v2, binary.LittleEndian.Uint64(s[232:]))
		v3 = xxh64.Round(v3, binary.LittleEndian.Uint64(s[240:]))
		v4 = xxh64.Round(v4, binary.LittleEndian.Uint64(s[248:]))
		h = xxh64.Avalanche(xxh64.Converge(v1, v2, v3, v4) + BlockBytes)
		if wait > 0 {
			wait--
			continue
		}
		wait = c.climb(h)
	}
	c.hash, c.wait = h, wait
	return b
}

// climb stores a rung and returns how many blocks come before the next one.
func (c *Chain) climb(h uint64) int {
	if c.rungs == maxRungs {
		return 0
	}
	c.rung[c.rungs] = h
	c.rungs++
	if c.rungs == ringBlock && !c.ringSet {
		c.ring, c.ringSet = h, true
	}
	return stepAt(c.rungs) - 1
}

// Border says that a message ends here.
func (c *Chain) Border() {
	b := c.end()
	if c.borders == 0 {
		c.first = b
	}
	c.border[c.borders%keptBorders] = b
	c.borders++
	if !c.ringSet && b.bytes >= BlockBytes {
		c.ring, c.ringSet = b.hash, true
	}
}

// end is the border that would lie at the end of what was written.
func (c *Chain) end() border {
	return border{
		hash:  xxh64.Sum(c.tail[:c.fill], c.hash^borderSeed),
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

// Mark is a border as others know it: by a key in a namespace.
type Mark struct {
	Key   uint64
	Bytes int64 // of the prompt up to it
}

// Mark returns the border that has back others after it, if it exists and is
// one of the last eight.
func (c *Chain) Mark(ns Namespace, back int) (m Mark, ok bool) {
	b, ok := c.lastBorder(back)
	return Mark{ns.mix(b.hash), b.bytes}, ok
}

// FirstMark returns the first border, the end of the system prompt if there is
// one, and how many others come after it: -1 if there is no border.
func (c *Chain) FirstMark(ns Namespace) (m Mark, after int) {
	return Mark{ns.mix(c.first.hash), c.first.bytes}, c.borders - 1
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
