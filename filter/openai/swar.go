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

// special marks the bytes of x that end a plain run of a JSON string: a quote,
// a backslash or a control character. The lowest mark is exact; those above
// it may be false. x^2 swaps the quote with the space, which makes quote and
// control characters one range.
func special(x uint64) uint64 {
	control := (x ^ 0x02*ones) - 0x21*ones
	backslash := (x ^ '\\'*ones) - ones
	return (control | backslash) &^ x & high
}

// plain returns how many bytes of src lie before the first special one.
func plain(src []byte) int {
	n := 0
	for len(src) >= 32 {
		b := src[:32]
		m0 := special(binary.LittleEndian.Uint64(b[0:]))
		m1 := special(binary.LittleEndian.Uint64(b[8:]))
		m2 := special(binary.LittleEndian.Uint64(b[16:]))
		m3 := special(binary.LittleEndian.Uint64(b[24:]))
		if m0|m1|m2|m3 != 0 {
			switch {
			case m0 != 0:
				return n + bits.TrailingZeros64(m0)>>3
			case m1 != 0:
				return n + 8 + bits.TrailingZeros64(m1)>>3
			case m2 != 0:
				return n + 16 + bits.TrailingZeros64(m2)>>3
			}
			return n + 24 + bits.TrailingZeros64(m3)>>3
		}
		n += 32
		src = src[32:]
	}
	for len(src) >= 8 {
		if m := special(binary.LittleEndian.Uint64(src)); m != 0 {
			return n + bits.TrailingZeros64(m)>>3
		}
		n += 8
		src = src[8:]
	}
	for i, c := range src {
		if c < ' ' || c == '"' || c == '\\' {
			return n + i
		}
	}
	return n + len(src)
}

// unescape copies the string that src begins inside of to dst, with escapes
// resolved, and returns the bytes written and read. It stops at the closing
// quote, at whatever needs a closer look (surrogates, faults, an escape cut by
// the end of src), and near the end of dst or src, where it may do nothing.
func unescape(dst, src []byte) (nd, ns int) {
	for nd+8 <= len(dst) && ns+8 <= len(src) {
		x := binary.LittleEndian.Uint64(src[ns:])
		binary.LittleEndian.PutUint64(dst[nd:], x)
		m := special(x)
		if m == 0 {
			nd += 8
			ns += 8
			if nd+8 > len(dst) || ns+8 > len(src) {
				break
			}
			x = binary.LittleEndian.Uint64(src[ns:])
			binary.LittleEndian.PutUint64(dst[nd:], x)
			m = special(x)
			if m == 0 {
				nd += 8
				ns += 8
				continue
			}
		}
		k := bits.TrailingZeros64(m) >> 3
		nd += k
		ns += k
		if src[ns] != '\\' {
			break
		}
		for ns+6 <= len(src) && nd+3 <= len(dst) && src[ns] == '\\' {
			c := src[ns+1]
			if e := escaped[c]; e != 0 {
				dst[nd] = e
				nd++
				ns += 2
				continue
			}
			u := hexUnit(src[ns+2 : ns+6])
			if c != 'u' || u < 0 || isSurrogate(u) {
				return nd, ns
			}
			ns += 6
			nd += putUnit(dst[nd:nd+3], u)
		}
	}
	return nd, ns
}

// escaped gives what the character after a backslash stands for, 0 for none.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hexValue gives the value of a hexadecimal digit, 0x100 for other bytes.
var hexValue = func() (t [256]uint16) {
	for c := range t {
		switch {
		case '0' <= c && c <= '9':
			t[c] = uint16(c - '0')
		case 'a' <= c && c <= 'f':
			t[c] = uint16(c - 'a' + 10)
		case 'A' <= c && c <= 'F':
			t[c] = uint16(c - 'A' + 10)
		default:
			t[c] = 0x100
		}
	}
	return t
}()

// hexUnit reads four hexadecimal digits, -1 if one is none.
func hexUnit(b []byte) int32 {
	_ = b[3]
	v0, v1, v2, v3 := hexValue[b[0]], hexValue[b[1]], hexValue[b[2]], hexValue[b[3]]
	if (v0|v1|v2|v3)&0x100 != 0 {
		return -1
	}
	return int32(v0)<<12 | int32(v1)<<8 | int32(v2)<<4 | int32(v3)
}

func isSurrogate(u int32) bool { return u&^0x7ff == 0xd800 }

// putUnit writes a code unit that is no surrogate as UTF-8 and returns how
// many of the three bytes of dst it took.
func putUnit(dst []byte, u int32) int {
	_ = dst[2]
	switch {
	case u < 0x80:
		dst[0] = byte(u)
		return 1
	case u < 0x800:
		dst[0] = 0xc0 | byte(u>>6)
		dst[1] = 0x80 | byte(u)&0x3f
		return 2
	}
	dst[0] = 0xe0 | byte(u>>12)
	dst[1] = 0x80 | byte(u>>6)&0x3f
	dst[2] = 0x80 | byte(u)&0x3f
	return 3
}
