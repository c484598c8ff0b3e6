package kvevents

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Error says what is wrong with a payload and at which byte.
type Error struct {
	Offset int
	What   string
}

func (e *Error) Error() string { return fmt.Sprintf("kvevents: byte %d: %s", e.Offset, e.What) }

// decoder reads msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md).
// After an error its methods do nothing and return zero values. No length that is
// declared in the data is believed beyond the bytes that are there.
type decoder struct {
	data []byte
	pos  int
	err  *Error
}

func (d *decoder) fail(at int, format string, args ...any) {
	if d.err == nil {
		d.err = &Error{at, fmt.Sprintf(format, args...)}
	}
}

// kind is what a value is, regardless of how long its form is.
type kind uint8

const (
	kindNone kind = iota // no value: an error
	kindNil
	kindBool
	kindUint
	kindInt // below 0
	kindFloat
	kindString
	kindBytes
	kindArray
	kindMap
	kindExt
)

func (k kind) String() string {
	return [...]string{"nothing", "nil", "bool", "unsigned", "negative", "float", "string", "bytes", "array", "map", "extension"}[k]
}

// form is how a value begins: its kind and the bytes of length or number after the first.
type form struct {
	kind  kind
	width uint8
}

// forms of the first bytes 0xc0 to 0xdf; the others hold their length or number.
var forms = [32]form{
	{kindNil, 0}, {}, {kindBool, 0}, {kindBool, 0},
	{kindBytes, 1}, {kindBytes, 2}, {kindBytes, 4},
	{kindExt, 1}, {kindExt, 2}, {kindExt, 4},
	{kindFloat, 4}, {kindFloat, 8},
	{kindUint, 1}, {kindUint, 2}, {kindUint, 4}, {kindUint, 8},
	{kindInt, 1}, {kindInt, 2}, {kindInt, 4}, {kindInt, 8},
	{kindExt, 0}, {kindExt, 0}, {kindExt, 0}, {kindExt, 0}, {kindExt, 0},
	{kindString, 1}, {kindString, 2}, {kindString, 4},
	{kindArray, 2}, {kindArray, 4}, {kindMap, 2}, {kindMap, 4},
}

// peek is the kind of the next value; a signed form counts as kindInt.
func (d *decoder) peek() kind {
	if d.err != nil || d.pos >= len(d.data) {
		return kindNone
	}
	switch c := d.data[d.pos]; {
	case c < 0x80:
		return kindUint
	case c < 0x90:
		return kindMap
	case c < 0xa0:
		return kindArray
	case c < 0xc0:
		return kindString
	case c < 0xe0:
		return forms[c-0xc0].kind
	}
	return kindInt
}

// head reads the first byte of a value and the length or number that follows: a
// number (a negative one in two's complement, a float as the bits of a float64), or
// how many bytes, elements or pairs come next, which is never more than there can be.
func (d *decoder) head() (k kind, v uint64) {
	if d.err != nil {
		return kindNone, 0
	}
	if d.pos >= len(d.data) {
		d.fail(d.pos, "cut off")
		return kindNone, 0
	}
	start, c := d.pos, d.data[d.pos]
	d.pos++
	switch {
	case c < 0x80:
		return kindUint, uint64(c)
	case c < 0x90:
		k, v = kindMap, uint64(c&0x0f)
	case c < 0xa0:
		k, v = kindArray, uint64(c&0x0f)
	case c < 0xc0:
		k, v = kindString, uint64(c&0x1f)
	case c < 0xe0:
		k, v = d.long(c)
	default:
		return kindInt, uint64(int64(int8(c)))
	}
	return d.checked(start, k, v)
}

// long reads what follows a first byte from 0xc0 to 0xdf.
func (d *decoder) long(c byte) (kind, uint64) {
	f := forms[c-0xc0]
	if f.kind == kindNone {
		d.fail(d.pos-1, "no msgpack value begins with 0x%02x", c)
		return kindNone, 0
	}
	v := d.number(int(f.width))
	switch f.kind {
	case kindInt:
		unused := 64 - 8*uint(f.width)
		if signed := int64(v<<unused) >> unused; signed < 0 {
			return kindInt, uint64(signed)
		}
		return kindUint, v
	case kindFloat:
		if f.width == 4 {
			v = math.Float64bits(float64(math.Float32frombits(uint32(v))))
		}
	case kindExt:
		if f.width == 0 {
			v = 1 << (c - 0xd4)
		}
		v++ // the byte of its type
	}
	return f.kind, v
}

// number reads a big-endian number of 0, 1, 2, 4 or 8 bytes.
func (d *decoder) number(width int) (v uint64) {
	if len(d.data)-d.pos < width {
		d.fail(d.pos, "cut off")
		return 0
	}
	b := d.data[d.pos:]
	d.pos += width
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// checked refuses lengths beyond the end; each element takes a byte at least.
func (d *decoder) checked(start int, k kind, v uint64) (kind, uint64) {
	least := v
	switch k {
	case kindMap:
		least = 2 * v
	case kindString, kindBytes, kindExt, kindArray:
	default:
		return k, v
	}
	if left := len(d.data) - d.pos; least > uint64(left) {
		d.fail(start, "%s of %d with %d bytes left", k, v, left)
	}
	if d.err != nil {
		return kindNone, 0
	}
	return k, v
}

// skip passes over one value, however deep it is.
func (d *decoder) skip() {
	for open := 1; open > 0 && d.err == nil; open-- {
		start := d.pos
		switch k, v := d.head(); k {
		case kindArray:
			open += int(v)
		case kindMap:
			open += 2 * int(v)
		case kindString, kindBytes, kindExt:
			d.pos += int(v)
		}
		if left := len(d.data) - d.pos; open-1 > left {
			d.fail(start, "%d more values with %d bytes left", open-1, left)
		}
	}
}

// nothing passes over a nil, and tells whether there was one.
func (d *decoder) nothing() bool {
	if d.peek() != kindNil {
		return false
	}
	d.pos++
	return true
}

// raw is one value as it is written.
func (d *decoder) raw() []byte {
	start := d.pos
	d.skip()
	if d.err != nil {
		return nil
	}
	return d.data[start:d.pos:d.pos]
}

// text reads a string or bytes. It points into the data.
func (d *decoder) text() []byte {
	start := d.pos
	if rest := d.data[start:]; len(rest) > 0 && rest[0]&0xe0 == 0xa0 && int(rest[0]&0x1f) < len(rest) && d.err == nil {
		d.pos++
		return d.take(uint64(rest[0] & 0x1f)) // most names are short
	}
	k, n := d.head()
	if k != kindString && k != kindBytes {
		d.fail(start, "%s, want a string", k)
		return nil
	}
	return d.take(n)
}

func (d *decoder) take(n uint64) []byte {
	b := d.data[d.pos : d.pos+int(n) : d.pos+int(n)]
	d.pos += int(n)
	return b
}

// uint reads a whole number from 0 to most.
func (d *decoder) uint(most uint64) uint64 {
	start := d.pos
	k, v := d.head()
	switch {
	case k == kindUint && v <= most:
		return v
	case k == kindUint:
		d.fail(start, "%d is above %d", v, most)
	case k == kindInt:
		d.fail(start, "%d is below 0", int64(v))
	default:
		d.fail(start, "%s, want a number", k)
	}
	return 0
}

// float reads any number.
func (d *decoder) float() float64 {
	start := d.pos
	switch k, v := d.head(); k {
	case kindFloat:
		return math.Float64frombits(v)
	case kindUint:
		return float64(v)
	case kindInt:
		return float64(int64(v))
	default:
		d.fail(start, "%s, want a number", k)
		return 0
	}
}

// array reads the head of an array.
func (d *decoder) array() int {
	start := d.pos
	k, n := d.head()
	if k != kindArray {
		d.fail(start, "%s, want an array", k)
		return 0
	}
	return int(n)
}

// hash reads a block's name.
func (d *decoder) hash() Hash {
	start := d.pos
	if rest := d.data[start:]; len(rest) > 8 && rest[0] == 0xcf && d.err == nil {
		d.pos += 9
		return binary.BigEndian.Uint64(rest[1:])
	}
	switch k, v := d.head(); k {
	case kindUint, kindInt:
		return v
	case kindBytes, kindString:
		return xxhash.Sum64(d.take(v))
	default:
		d.fail(start, "%s, want a hash", k)
		return 0
	}
}

// tokens reads an array of numbers of 32 bits and appends them. Numbers in the form
// that an encoder takes for them are read on the spot: they are most of all bytes.
func (d *decoder) tokens(dst []uint32) []uint32 {
	n := d.array()
	dst = slices.Grow(dst, n)
	rest := d.data[d.pos:]
	for range n {
		switch {
		case len(rest) > 0 && rest[0] < 0x80:
			dst = append(dst, uint32(rest[0]))
			rest = rest[1:]
		case len(rest) > 2 && rest[0] == 0xcd:
			dst = append(dst, uint32(binary.BigEndian.Uint16(rest[1:])))
			rest = rest[3:]
		case len(rest) > 4 && rest[0] == 0xce:
			dst = append(dst, binary.BigEndian.Uint32(rest[1:]))
			rest = rest[5:]
		default:
			d.pos = len(d.data) - len(rest)
			dst = append(dst, uint32(d.uint(math.MaxUint32)))
			if d.err != nil {
				return dst
			}
			rest = d.data[d.pos:]
		}
	}
	d.pos = len(d.data) - len(rest)
	return dst
}
