// Package xxh64 is XXH64 with a seed, in one call and in its parts.
//
// It follows https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
// cespare/xxhash has no one-shot hash with a seed, and its streaming one takes
// half as long again for a block in Wasm; the tests hold both to the same
// results. Where there is no seed, cespare/xxhash is as good.
package xxh64

import (
	"encoding/binary"
	"math/bits"
)

// The primes of the specification.
const (
	Prime1 uint64 = 11400714785074694791
	Prime2 uint64 = 14029467366897019727
	Prime3 uint64 = 1609587929392839161
	Prime4 uint64 = 9650029242287828579
	Prime5 uint64 = 2870177450012600261
)

// Round takes eight bytes into one of the four accumulators.
func Round(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*Prime2, 31) * Prime1
}

func merge(acc, v uint64) uint64 {
	return (acc^Round(0, v))*Prime1 + Prime4
}

// Converge makes one hash of the four accumulators.
func Converge(v1, v2, v3, v4 uint64) uint64 {
	h := bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
	return merge(merge(merge(merge(h, v1), v2), v3), v4)
}

// Avalanche lets every bit of h count in all of the result. It is one to one.
func Avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * Prime2
	h = (h ^ h>>29) * Prime3
	return h ^ h>>32
}

// Sum is XXH64 of b.
func Sum(b []byte, seed uint64) uint64 {
	h := seed + Prime5
	size := uint64(len(b))
	if len(b) >= 32 {
		v1, v2, v3, v4 := seed+Prime1+Prime2, seed+Prime2, seed, seed-Prime1
		for len(b) >= 32 {
			s := (*[32]byte)(b)
			v1 = Round(v1, binary.LittleEndian.Uint64(s[0:]))
			v2 = Round(v2, binary.LittleEndian.Uint64(s[8:]))
			v3 = Round(v3, binary.LittleEndian.Uint64(s[16:]))
			v4 = Round(v4, binary.LittleEndian.Uint64(s[24:]))
			b = b[32:]
		}
		h = Converge(v1, v2, v3, v4)
	}
	h += size
	for len(b) >= 8 {
		h = eight(h, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) >= 4 {
		h = four(h, binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*Prime5, 11) * Prime1
	}
	return Avalanche(h)
}

// SumWords is XXH64 of w as little-endian bytes.
func SumWords(w []uint32, seed uint64) uint64 {
	h := seed + Prime5
	size := 4 * uint64(len(w))
	if len(w) >= 8 {
		v1, v2, v3, v4 := seed+Prime1+Prime2, seed+Prime2, seed, seed-Prime1
		for len(w) >= 8 {
			s := (*[8]uint32)(w)
			v1 = Round(v1, uint64(s[0])|uint64(s[1])<<32)
			v2 = Round(v2, uint64(s[2])|uint64(s[3])<<32)
			v3 = Round(v3, uint64(s[4])|uint64(s[5])<<32)
			v4 = Round(v4, uint64(s[6])|uint64(s[7])<<32)
			w = w[8:]
		}
		h = Converge(v1, v2, v3, v4)
	}
	h += size
	for len(w) >= 2 {
		h = eight(h, uint64(w[0])|uint64(w[1])<<32)
		w = w[2:]
	}
	if len(w) == 1 {
		h = four(h, w[0])
	}
	return Avalanche(h)
}

func eight(h, x uint64) uint64 {
	return bits.RotateLeft64(h^Round(0, x), 27)*Prime1 + Prime4
}

func four(h uint64, x uint32) uint64 {
	return bits.RotateLeft64(h^uint64(x)*Prime1, 23)*Prime2 + Prime3
}
