package openai

import (
	"encoding/binary"
	"math/bits"
)

// escaped gives what the character after a backslash stands for if that is the
// canonical spelling, else 0. letter is the other way round.
var (
	escaped = [256]byte{'"': '"', '\\': '\\', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
	letter  = [128]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
)

// respell copies text from src, which begins with an escape, to dst in canonical
// spelling, and returns the bytes written and read. It stops at the closing
// quote, at whatever needs a closer look (surrogates without their pair,
// faults), when no escape has changed for a while, and near the end of dst or
// src. It is long because a call for each escape costs more than the escape.
func respell(dst, src []byte) (nd, ns int) {
	last := 0 // end of the last escape that changed
	for nd+8 <= len(dst) && ns+12 <= len(src) {
		s, d := (*[12]byte)(src[ns:]), (*[8]byte)(dst[nd:])
		if s[0] == '\\' && s[1] == 'u' {
			u := hexUnit(s[2:6])
			if u < 0 {
				break
			}
			if !isSurrogate(u) {
				if u >= 0x80 {
					nd += putWide((*[3]byte)(d[:]), u)
				} else {
					nd += putASCII((*[3]byte)(d[:]), u)
				}
				ns += 6
				last = ns
				continue
			}
			v := hexUnit(s[8:12])
			if s[6] != '\\' || s[7] != 'u' || u >= 0xDC00 || v < 0 || !isLow(v) {
				break
			}
			putPair((*[4]byte)(d[:]), u, v)
			nd += 4
			ns += 12
			last = ns
			continue
		}
		x := binary.LittleEndian.Uint64(s[:])
		binary.LittleEndian.PutUint64(d[:], x)
		k := bits.TrailingZeros64(special(x)) >> 3
		nd += k
		ns += k
		if k > 0 {
			if ns-last >= 64 {
				break
			}
			continue
		}
		switch c := s[1]; {
		case s[0] != '\\':
			return nd, ns
		case escaped[c] != 0:
			nd += 2
		case c == '/':
			d[0] = '/'
			nd++
		default:
			return nd, ns
		}
		ns += 2
	}
	return nd, ns
}

// unescape turns w from its canonical spelling into what it stands for, in
// place.
func unescape(w []byte) []byte {
	n := 0
	for i := 0; i < len(w); i++ {
		c := w[i]
		if c == '\\' {
			i++
			c = escaped[w[i]]
		}
		w[n] = c
		n++
	}
	return w[:n]
}

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

// putUnit writes a code unit that is no surrogate in canonical spelling and
// returns how many bytes of dst it took.
func putUnit(dst *[3]byte, u int32) int {
	if u < 0x80 {
		return putASCII(dst, u)
	}
	return putWide(dst, u)
}

func putASCII(dst *[3]byte, u int32) int {
	if e := letter[u&0x7F]; e != 0 {
		dst[0], dst[1] = '\\', e
		return 2
	}
	dst[0] = byte(u)
	return 1
}

func putWide(dst *[3]byte, u int32) int {
	if u < 0x800 {
		dst[0] = 0xC0 | byte(u>>6)
		dst[1] = 0x80 | byte(u)&0x3F
		return 2
	}
	dst[0] = 0xE0 | byte(u>>12)
	dst[1] = 0x80 | byte(u>>6)&0x3F
	dst[2] = 0x80 | byte(u)&0x3F
	return 3
}
