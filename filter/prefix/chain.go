package prefix

import (
	"encoding/binary"
	"math/bits"
)

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
		v1, v2, v3, v4 := h+prime1+prime2, h+prime2, h, h-prime1
		v1 = round(v1, binary.LittleEndian.Uint64(s[0:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[8:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[16:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[24:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[32:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[40:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[48:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[56:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[64:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[72:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[80:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[88:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[96:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[104:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[112:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[120:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[128:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[136:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[144:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[152:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[160:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[168:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[176:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[184:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[192:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[200:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[208:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[216:]))
		v1 = round(v1, binary.LittleEndian.Uint64(s[224:]))
		v2 = round(v2, binary.LittleEndian.Uint64(s[232:]))
		v3 = round(v3, binary.LittleEndian.Uint64(s[240:]))
		v4 = round(v4, binary.LittleEndian.Uint64(s[248:]))
		h = bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
		h = avalanche(merge(merge(merge(merge(h, v1), v2), v3), v4) + BlockBytes)
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
