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

// Pairs walks a header map: a view into the bytes it was made from. The zero
// Pairs is empty. Encoding, all little-endian: u32 count; count times (u32 name
// length, u32 value length); then each name and each value followed by a zero
// byte. An empty map may also be no byte at all or a single zero byte.
type Pairs struct {
	bytes    []byte
	left     uint32 // headers to come
	size, at uint32 // where the next one's lengths and name lie
	broken   bool   // it was not where it should be
}

// ParsePairs checks the whole encoding, so that walking the result cannot fail.
func ParsePairs(b []byte) (Pairs, error) {
	var p Pairs
	if err := p.begin(b); err != nil {
		return Pairs{}, err
	}
	walk := p
	for _, _, ok := walk.Next(); ok; {
		_, _, ok = walk.Next()
	}
	if walk.broken || p.bytes != nil && int(walk.at) != len(b) {
		return Pairs{}, ErrPairsMalformed
	}
	return p, nil
}

// begin makes p walk b. It checks what the walk relies on; whether the lengths
// lead to headers is seen only then.
func (p *Pairs) begin(b []byte) error {
	p.clear()
	if len(b) == 0 || len(b) == 1 && b[0] == 0 {
		return nil
	}
	if len(b) > MaxPairsBytes {
		return ErrPairsTooLarge
	}
	if len(b) < 4 {
		return ErrPairsMalformed
	}
	count := binary.LittleEndian.Uint32(b)
	if count > MaxPairs {
		return ErrPairsTooLarge
	}
	if 4+8*int(count) > len(b) {
		return ErrPairsMalformed
	}
	p.bytes, p.left, p.size, p.at = b, count, 4, 4+8*count
	return nil
}

func (p *Pairs) clear() { p.bytes, p.left, p.broken = nil, 0, false }

// Len is the number of headers to come; a repeated name counts each time.
func (p Pairs) Len() int { return int(p.left) }

// Next takes the first header off p. Name and value point into the bytes p was
// made from; ok is false once p is empty or, without it having been checked
// before, if the next header is not where its lengths say (see Err).
func (p *Pairs) Next() (name, value []byte, ok bool) {
	if p.left == 0 {
		return nil, nil, false
	}
	b, start := p.bytes, uint64(p.at)
	lengths := b[p.size : p.size+8]
	middle := start + uint64(binary.LittleEndian.Uint32(lengths))
	end := middle + 1 + uint64(binary.LittleEndian.Uint32(lengths[4:]))
	if end >= uint64(len(b)) || b[middle] != 0 || b[end] != 0 {
		p.left, p.broken = 0, true
		return nil, nil, false
	}
	p.left, p.size, p.at = p.left-1, p.size+8, uint32(end)+1
	return b[start:middle:middle], b[middle+1 : end : end], true
}

// Err tells, after Next has given false, whether it stopped at a header that
// cannot be read: ErrPairsMalformed. Those before it were good.
func (p *Pairs) Err() error {
	if p.broken {
		return ErrPairsMalformed
	}
	return nil
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
