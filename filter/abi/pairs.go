package abi

import (
	"encoding/binary"
	"errors"
	"iter"
)

// The host refuses larger maps (proxy-wasm-cpp-host, include/proxy-wasm/limits.h);
// we hold ourselves to the same in both directions.
const (
	// MaxPairsBytes bounds the encoding of a header map.
	MaxPairsBytes = 1 << 20
	// MaxPairs bounds the number of headers in a map.
	MaxPairs = 1024
)

var (
	// ErrPairsTooLarge says that a header map exceeds MaxPairsBytes or MaxPairs.
	ErrPairsTooLarge = errors.New("header map: more than 1 MiB or 1024 pairs")
	// ErrPairsMalformed says that a header map is not in the ABI's encoding.
	ErrPairsMalformed = errors.New("header map: lengths do not fit the data")
)

// Pairs is a decoded header map: a view into the bytes it was parsed from. The
// zero Pairs is empty. Encoding, all little-endian: u32 count; count times (u32
// name length, u32 value length); then each name and each value followed by a
// zero byte. An empty map may also be no byte at all or a single zero byte.
type Pairs struct {
	sizes, data []byte
}

// ParsePairs checks the whole encoding, so that walking the result cannot fail.
func ParsePairs(b []byte) (Pairs, error) {
	if len(b) == 0 || len(b) == 1 && b[0] == 0 {
		return Pairs{}, nil
	}
	if len(b) > MaxPairsBytes {
		return Pairs{}, ErrPairsTooLarge
	}
	if len(b) < 4 {
		return Pairs{}, ErrPairsMalformed
	}
	count := binary.LittleEndian.Uint32(b)
	if count > MaxPairs {
		return Pairs{}, ErrPairsTooLarge
	}
	end := 4 + 8*int(count)
	if end > len(b) {
		return Pairs{}, ErrPairsMalformed
	}
	p := Pairs{sizes: b[4:end], data: b[end:]}
	if !p.fits() {
		return Pairs{}, ErrPairsMalformed
	}
	return p, nil
}

// fits reports whether the lengths add up to the data and every terminator is
// in its place.
func (p Pairs) fits() bool {
	at := uint64(0)
	for rest := p.sizes; len(rest) > 0; rest = rest[4:] {
		at += uint64(binary.LittleEndian.Uint32(rest))
		if at >= uint64(len(p.data)) || p.data[at] != 0 {
			return false
		}
		at++
	}
	return at == uint64(len(p.data))
}

// Len is the number of headers; a repeated name counts each time.
func (p Pairs) Len() int { return len(p.sizes) / 8 }

// Next takes the first header off p. Name and value point into the bytes given
// to ParsePairs; ok is false once p is empty.
func (p *Pairs) Next() (name, value []byte, ok bool) {
	if len(p.sizes) < 8 {
		return nil, nil, false
	}
	n, v := binary.LittleEndian.Uint32(p.sizes), binary.LittleEndian.Uint32(p.sizes[4:])
	name, after := p.data[:n:n], p.data[n+1:]
	value = after[:v:v]
	p.sizes, p.data = p.sizes[8:], after[v+1:]
	return name, value, true
}

// All yields what Next would give, leaving p as it is. Where the compiler cannot
// inline it, its closure is garbage.
func (p Pairs) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for name, value, ok := p.Next(); ok && yield(name, value); {
			name, value, ok = p.Next()
		}
	}
}

// Encoder builds a header map for the host. The zero Encoder is an empty map and
// ready for use; after Reset its buffers serve again, so an Encoder that is kept
// costs no garbage. A nil *Encoder stands for an empty map in every call.
type Encoder struct {
	sizes, data, out []byte
	failed           bool
}

// Reset empties the map.
func (e *Encoder) Reset() {
	e.sizes, e.data, e.failed = e.sizes[:0], e.data[:0], false
}

// Add appends a header. Once the map has grown over the limits it stays refused,
// and the host call it is given to fails with ErrPairsTooLarge.
func (e *Encoder) Add(name, value string) {
	if e.grow(len(name), len(value)) {
		e.data = append(e.data, name...)
		e.data = append(e.data, 0)
		e.data = append(e.data, value...)
		e.data = append(e.data, 0)
	}
}

// AddBytes is Add for a value that is not a string.
func (e *Encoder) AddBytes(name string, value []byte) {
	if e.grow(len(name), len(value)) {
		e.data = append(e.data, name...)
		e.data = append(e.data, 0)
		e.data = append(e.data, value...)
		e.data = append(e.data, 0)
	}
}

// grow notes the lengths of one more header if there is room for it.
func (e *Encoder) grow(name, value int) bool {
	size := 4 + len(e.sizes) + 8 + len(e.data) + name + value + 2
	if e.failed || size > MaxPairsBytes || len(e.sizes) >= 8*MaxPairs {
		e.failed = true
		return false
	}
	e.sizes = binary.LittleEndian.AppendUint32(e.sizes, uint32(name))
	e.sizes = binary.LittleEndian.AppendUint32(e.sizes, uint32(value))
	return true
}

// Bytes returns the encoding, valid until the next call on e.
func (e *Encoder) Bytes() ([]byte, error) {
	if e == nil || len(e.sizes) == 0 && !e.failed {
		return nil, nil
	}
	if e.failed {
		return nil, ErrPairsTooLarge
	}
	e.out = binary.LittleEndian.AppendUint32(e.out[:0], uint32(len(e.sizes)/8))
	e.out = append(e.out, e.sizes...)
	e.out = append(e.out, e.data...)
	return e.out, nil
}
