package blocks

import "math/bits"

// mask is a set of a node's blocks by offset, 0 to kvindex.MaxRun-1.
type mask [2]uint64

func (m *mask) has(i uint32) bool { return m[i>>6&1]>>(i&63)&1 != 0 }
func (m *mask) set(i uint32)      { m[i>>6&1] |= 1 << (i & 63) }
func (m *mask) clear(i uint32)    { m[i>>6&1] &^= 1 << (i & 63) }
func (m *mask) empty() bool       { return m[0]|m[1] == 0 }

func (m *mask) or(o *mask) {
	m[0] |= o[0]
	m[1] |= o[1]
}

// run is how many offsets from 0 on are in the set.
func (m *mask) run() uint8 {
	if n := bits.TrailingZeros64(^m[0]); n < 64 {
		return uint8(n)
	}
	return uint8(64 + bits.TrailingZeros64(^m[1]))
}

// top is one more than the largest offset in the set, 0 if it is empty.
func (m *mask) top() uint32 {
	if m[1] != 0 {
		return uint32(64 + bits.Len64(m[1]))
	}
	return uint32(bits.Len64(m[0]))
}

// cut takes out the offsets from n on and returns them, counted from n.
func (m *mask) cut(n uint32) (tail mask) {
	if n >= 64 {
		tail[0] = m[1] >> (n - 64)
		m[1] &= 1<<(n-64) - 1
		return tail
	}
	tail[0] = m[0]>>n | m[1]<<(64-n)
	tail[1] = m[1] >> n
	m[0] &= 1<<n - 1
	m[1] = 0
	return tail
}
