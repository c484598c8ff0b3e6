package openai

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// A word is a key, or a string or number that counts by its digest, in canonical
// spelling. Its sum is a hash that is the same however the word was cut.

// shortWord is how long a word is at most if its sum is made of folds. Nearly
// all words are so short, and the scanner makes their sums as it looks for
// their ends. The sum of a longer word is XXH64.
const shortWord = 31

// fold takes the next eight bytes of a word into its sum. The last come filled
// up with zeros; there may be none.
func fold(sum, x uint64) uint64 {
	return bits.RotateLeft64((sum^x)*0x9E3779B97F4A7C15, 29)
}

// sumOf is the sum of a word.
func sumOf(b []byte) uint64 {
	if len(b) > shortWord {
		return xxhash.Sum64(b)
	}
	sum, last, n := uint64(0), uint64(0), uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		sum = fold(sum, binary.LittleEndian.Uint64(b))
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i & 63)
	}
	return fold(sum, last) + n
}

// quoted returns the length and the sum of the word that b begins inside of, if
// it is short, has no escapes and ends well before b does; else -1.
func quoted(b []byte) (n int, sum uint64) {
	for ; n+8 <= len(b) && n < shortWord; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		m := special(x)
		if m == 0 {
			sum = fold(sum, x)
			continue
		}
		k := bits.TrailingZeros64(m) &^ 7
		n += k >> 3
		if b[n] != '"' {
			break
		}
		x &= 1<<(k&63) - 1
		return n, fold(sum, x) + uint64(n)
	}
	return -1, 0
}

// gather holds a short word, or feeds a long one to a hash.
type gather struct {
	buf     [maxName + slack]byte
	n       int
	size    int64 // bytes hashed
	spilled bool
	digest  xxhash.Digest
}

func (g *gather) reset() { g.n, g.size, g.spilled = 0, 0, false }

// spill makes room by hashing what is held.
func (g *gather) spill() {
	if !g.spilled {
		g.digest.Reset()
		g.spilled = true
	}
	_, _ = g.digest.Write(g.buf[:g.n]) // never fails
	g.size += int64(g.n)
	g.n = 0
}

// add appends b.
func (g *gather) add(b []byte) {
	if g.n+len(b) <= maxName {
		g.n += copy(g.buf[g.n:], b)
		return
	}
	g.spill()
	_, _ = g.digest.Write(b)
	g.size += int64(len(b))
}

// take returns the word, its length and its sum. A word that is too long to be
// held is returned as nil.
func (g *gather) take() (w []byte, size int64, sum uint64) {
	if !g.spilled {
		w = g.buf[:g.n]
		return w, int64(g.n), sumOf(w)
	}
	g.spill()
	return nil, g.size, g.digest.Sum64()
}
