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

// quoted returns the length of the string that b begins inside of, if that is
// short, has no escapes and ends well before b does; else -1.
func quoted(b []byte) int {
	for n := 0; n+8 <= len(b) && n < 32; n += 8 {
		if m := special(binary.LittleEndian.Uint64(b[n:])); m != 0 {
			n += bits.TrailingZeros64(m) >> 3
			if b[n] == '"' {
				return n
			}
			return -1
		}
	}
	return -1
}

// copyPlain copies from src to dst up to the first special byte, by eights,
// and returns how many bytes; not the last seven of src or dst.
func copyPlain(dst, src []byte) int {
	n := 0
	for n+8 <= len(dst) && n+8 <= len(src) {
		x := binary.LittleEndian.Uint64(src[n:])
		binary.LittleEndian.PutUint64(dst[n:], x)
		k := bits.TrailingZeros64(special(x)) >> 3
		n += k
		if k < 8 {
			break
		}
	}
	return n
}

// unescape copies the string that src begins inside of to dst, with escapes
// resolved, and returns the bytes written and read. It stops at the closing
// quote, at whatever needs a closer look (surrogates, faults), and near the
// end of dst or src, where it may do nothing.
//
// It is long because both of its loops must be in one function: steps of 32
// bytes, in which the plain bytes before the first special one are counted
// without a branch (a word without special bytes has 64 trailing zeros), and
// steps of 8 where escapes come thick, as in JSON inside of JSON.
func unescape(dst, src []byte) (nd, ns int) {
	for nd+32 <= len(dst) && ns+40 <= len(src) {
		s, d := (*[40]byte)(src[ns:]), (*[32]byte)(dst[nd:])
		x0, x1 := binary.LittleEndian.Uint64(s[0:]), binary.LittleEndian.Uint64(s[8:])
		x2, x3 := binary.LittleEndian.Uint64(s[16:]), binary.LittleEndian.Uint64(s[24:])
		binary.LittleEndian.PutUint64(d[0:], x0)
		binary.LittleEndian.PutUint64(d[8:], x1)
		binary.LittleEndian.PutUint64(d[16:], x2)
		binary.LittleEndian.PutUint64(d[24:], x3)
		k2 := bits.TrailingZeros64(special(x2))
		k2 += k2 >> 6 * bits.TrailingZeros64(special(x3))
		k1 := bits.TrailingZeros64(special(x1))
		k1 += k1 >> 6 * k2
		k := bits.TrailingZeros64(special(x0))
		k = (k + k>>6*k1) >> 3
		nd += k
		ns += k
		if k == 32 {
			continue
		}
		e := escaped[s[k+1]]
		if s[k] != '\\' || e == 0 {
			break
		}
		d[k] = e
		nd++
		ns += 2
		for k < 8 && nd+8 <= len(dst) && ns+10 <= len(src) {
			s, d := (*[10]byte)(src[ns:]), (*[8]byte)(dst[nd:])
			x := binary.LittleEndian.Uint64(s[:])
			binary.LittleEndian.PutUint64(d[:], x)
			k = bits.TrailingZeros64(special(x)) >> 3
			nd += k
			ns += k
			if k == 8 {
				break
			}
			e := escaped[s[k+1]]
			if s[k] != '\\' || e == 0 {
				return nd, ns
			}
			d[k] = e
			nd++
			ns += 2
		}
	}
	return nd, ns
}

// codeUnits resolves a run of \u escapes that src begins with, pairs of
// surrogates included, and returns the bytes written and read. It stops at
// whatever is not so, at surrogates without their pair, and near the end of dst
// or src.
func codeUnits(dst, src []byte) (nd, ns int) {
	for nd+4 <= len(dst) && ns+12 <= len(src) {
		s, d := (*[12]byte)(src[ns:]), (*[4]byte)(dst[nd:])
		u := hexUnit(s[2:6])
		if s[0] != '\\' || s[1] != 'u' || u < 0 {
			break
		}
		if !isSurrogate(u) {
			nd += putUnit(d[:3], u)
			ns += 6
			continue
		}
		v := hexUnit(s[8:12])
		if s[6] != '\\' || s[7] != 'u' || u >= 0xDC00 || v < 0 || !isLow(v) {
			break
		}
		putPair(d, u, v)
		nd += 4
		ns += 12
	}
	return nd, ns
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

func isSurrogate(u int32) bool { return u&^0x7FF == 0xD800 }

func isLow(u int32) bool { return u&^0x3FF == 0xDC00 }

// putPair writes the character of a pair of surrogates as UTF-8.
func putPair(dst *[4]byte, high, low int32) {
	r := 0x10000 + (high-0xD800)<<10 + (low - 0xDC00)
	dst[0] = 0xF0 | byte(r>>18)
	dst[1] = 0x80 | byte(r>>12)&0x3F
	dst[2] = 0x80 | byte(r>>6)&0x3F
	dst[3] = 0x80 | byte(r)&0x3F
}

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
