package state

import (
	"encoding/binary"
	"math"
)

// A field's key is its number and one of these wire types, which are those of
// Protocol Buffers: number<<3 | type.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

func appendVarint(dst []byte, num, v uint64) []byte {
	dst = binary.AppendUvarint(dst, num<<3|typeVarint)
	return binary.AppendUvarint(dst, v)
}

func appendBool(dst []byte, num uint64, b bool) []byte {
	if b {
		return appendVarint(dst, num, 1)
	}
	return appendVarint(dst, num, 0)
}

func appendFloat(dst []byte, num uint64, f float32) []byte {
	dst = binary.AppendUvarint(dst, num<<3|typeFixed32)
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
}

func appendString(dst []byte, num uint64, s string) []byte {
	dst = binary.AppendUvarint(dst, num<<3|typeBytes)
	return appendRaw(dst, s)
}

// appendRaw is a length and the bytes, without a key.
func appendRaw(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// openRecord starts a field of bytes whose length is not known yet. What is
// appended until closeRecord is its content.
func openRecord(dst []byte, num uint64) (_ []byte, start int) {
	return openLength(binary.AppendUvarint(dst, num<<3|typeBytes))
}

// openLength is openRecord for an item of a list, which has no key.
func openLength(dst []byte) (_ []byte, start int) {
	dst = append(dst, 0)
	return dst, len(dst)
}

// closeRecord writes the length in front of the content. One byte was kept for
// it, which is enough for nearly all records; longer ones are moved up.
func closeRecord(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	var length [binary.MaxVarintLen64]byte
	w := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:w-1]...)
	copy(dst[start-1+w:], dst[start:start+n])
	copy(dst[start-1:], length[:w])
	return dst
}

// reader walks fields. Nested records share the buffer, so that pos is always
// an offset into the page. The first error sticks and ends every loop.
type reader struct {
	b   []byte // ends where the record ends
	pos int
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = &CorruptError{Offset: r.pos, What: what}
		r.pos = len(r.b)
	}
}

// next returns the next field's key, or false at the end of the record.
func (r *reader) next() (key uint64, ok bool) {
	if r.pos >= len(r.b) {
		return 0, false
	}
	key = r.varint()
	if key>>3 == 0 {
		r.fail("field number 0")
	}
	return key, r.err == nil
}

func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.b[r.pos:])
	if n <= 0 {
		r.fail("number cut off or too long")
		return 0
	}
	r.pos += n
	return v
}

// number is a varint that must not be above max.
func (r *reader) number(max uint64, what string) uint64 {
	v := r.varint()
	if v > max {
		r.fail(what)
		return 0
	}
	return v
}

// fixed64 reads 8 bytes, little-endian.
func (r *reader) fixed64() uint64 {
	if len(r.b)-r.pos < 8 {
		r.fail("field cut off")
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b[r.pos:])
	r.pos += 8
	return v
}

// float reads a quantity that is never negative. Anything that is none, an
// infinity included, is not known.
func (r *reader) float() float32 {
	if len(r.b)-r.pos < 4 {
		r.fail("float cut off")
		return 0
	}
	f := math.Float32frombits(binary.LittleEndian.Uint32(r.b[r.pos:]))
	r.pos += 4
	if f >= 0 && f <= math.MaxFloat32 {
		return f
	}
	return unknownRatio
}

// bytes returns the content of a field of bytes; it aliases the page.
func (r *reader) bytes() []byte {
	n := r.varint()
	if n > uint64(len(r.b)-r.pos) {
		r.fail("length beyond the end")
		return nil
	}
	b := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// record returns a reader of the nested record that follows.
func (r *reader) record() reader {
	b := r.bytes()
	return reader{b: r.b[:r.pos], pos: r.pos - len(b), err: r.err}
}

// name reads a string of at most MaxName bytes. It gives old back if that is
// what the bytes say, so that reading an unchanged state makes no garbage.
func (r *reader) name(old string) string {
	b := r.bytes()
	if len(b) > MaxName {
		r.fail("name too long")
		return ""
	}
	if string(b) == old {
		return old
	}
	return string(b)
}

// skip passes over a field this version does not know.
func (r *reader) skip(key uint64) {
	switch key & 7 {
	case typeVarint:
		r.varint()
	case typeFixed64:
		r.advance(8)
	case typeFixed32:
		r.advance(4)
	case typeBytes:
		r.bytes()
	default:
		r.fail("unknown wire type")
	}
}

func (r *reader) advance(n int) {
	if len(r.b)-r.pos < n {
		r.fail("field cut off")
		return
	}
	r.pos += n
}
