package openai

import (
	"encoding/binary"
	"math/bits"
)

// The loops in this file look at eight bytes at a time, the word's lowest byte
// being the first. In Wasm each turn of a Go loop costs a dispatch, so they are
// unrolled; they call nothing, so that the compiler keeps all in registers.

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// special marks the bytes of x that are not plain text in a JSON string, each by
// its highest bit: a quote, a backslash or a control character. The lowest mark
// is exact; those above it may be false (a # after a quote, a ] after a
// backslash). x^2 swaps the quote with the space, which makes quote and control
// characters one range.
func special(x uint64) uint64 { return quick(x) & high }

// quick is special with all other bits undefined, for several words at once.
func quick(x uint64) uint64 {
	control := (x ^ 0x02*ones) - 0x21*ones
	backslash := (x ^ '\\'*ones) - ones
	return (control | backslash) &^ x
}

// pack makes a bit of each mark, the first one lowest.
func pack(marks uint64) uint32 { return uint32(marks >> 7 * 0x0102040810204080 >> 56) }

// canonicalRun returns how many bytes of src, which begins inside of a string,
// are canonical as they stand. It stops before the closing quote, before an
// escape that must be spelled otherwise or that src does not have all of, and
// before what is no JSON.
//
// It walks in steps of 32 bytes wherever the escapes lie, so that the next step
// does not have to wait for what is found in this one. It is long because one
// escape in a step is what lines of text have, and a call for each would cost
// more than the step.
func canonicalRun(src []byte) int {
	total := len(src)
	for len(src) > 32 {
		b := (*[33]byte)(src)
		src = src[32:]
		x0, x1 := binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
		x2, x3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
		if (quick(x0)|quick(x1)|quick(x2)|quick(x3))&high == 0 {
			continue
		}
		marks := pack(special(x0)) | pack(special(x1))<<8 | pack(special(x2))<<16 | pack(special(x3))<<24
		k := bits.TrailingZeros32(marks) & 31
		if b[k] != '\\' || escaped[b[k+1]] == 0 {
			return total - len(src) - 32 + k
		}
		marks &^= 3 << k
		for marks != 0 {
			k = bits.TrailingZeros32(marks) & 31
			switch c := b[k]; {
			case c == '\\' && escaped[b[k+1]] != 0:
				marks &^= 3 << k
			case c == '\\', c < ' ', c == '"':
				return total - len(src) - 32 + k
			default: // a false mark
				marks &^= 1 << k
			}
		}
		if k == 31 && b[k] == '\\' {
			src = src[1:]
		}
	}
	return total - len(src) + canonicalTail(src)
}

// canonicalTail is canonicalRun for short strings.
func canonicalTail(src []byte) int {
	n := 0
	for n+8 <= len(src) {
		if special(binary.LittleEndian.Uint64(src[n:])) != 0 {
			break
		}
		n += 8
	}
	for n < len(src) {
		switch c := src[n]; {
		case c == '\\':
			if n+1 == len(src) || escaped[src[n+1]] == 0 {
				return n
			}
			n += 2
		case c < ' ', c == '"':
			return n
		default:
			n++
		}
	}
	return n
}

// tokenIDs reads numbers of up to seven digits, each with its comma and at
// most one space after it, and writes them to dst as 4-byte little-endian
// words. It returns the bytes written and read, and stops before whatever is
// not so.
func tokenIDs(dst, src []byte) (nd, ns int) {
	for nd+4 <= len(dst) && ns+10 <= len(src) {
		s := (*[10]byte)(src[ns:])
		t := binary.LittleEndian.Uint64(s[:]) ^ '0'*ones
		n := bits.TrailingZeros64((t+0x76*ones|t)&high) >> 3
		if n == 0 || n == 8 || s[n] != ',' || n > 1 && s[0] == '0' {
			break
		}
		t <<= (64 - 8*n) & 63
		t = (t*10 + t>>8) & 0x00FF00FF00FF00FF
		t = (t*100 + t>>16) & 0x0000FFFF0000FFFF
		t = t*10000 + t>>32
		binary.LittleEndian.PutUint32(dst[nd:], uint32(t))
		nd += 4
		ns += n + 1
		if s[n+1] == ' ' {
			ns++
		}
	}
	return nd, ns
}
