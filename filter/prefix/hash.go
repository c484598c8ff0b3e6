package prefix

import (
	"encoding/binary"
	"math/bits"
)

// XXH64 as at https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
// cespare/xxhash has no one-shot hash with a seed, and its streaming one takes
// half as long again for a block in Wasm; the tests hold both to the same
// results.
const (
	prime1 uint64 = 11400714785074694791
	prime2 uint64 = 14029467366897019727
	prime3 uint64 = 1609587929392839161
	prime4 uint64 = 9650029242287828579
	prime5 uint64 = 2870177450012600261
)

// BlockBytes is the size of a block.
const BlockBytes = 256

func round(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

func merge(acc, v uint64) uint64 {
	return (acc^round(0, v))*prime1 + prime4
}

func converge(v1, v2, v3, v4 uint64) uint64 {
	h := bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
	return merge(merge(merge(merge(h, v1), v2), v3), v4)
}

func avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// hashBytes is XXH64 of b.
func hashBytes(b []byte, seed uint64) uint64 {
	h := seed + prime5
	size := uint64(len(b))
	if len(b) >= 32 {
		v1, v2, v3, v4 := seed+prime1+prime2, seed+prime2, seed, seed-prime1
		for len(b) >= 32 {
			s := (*[32]byte)(b)
			v1 = round(v1, binary.LittleEndian.Uint64(s[0:]))
			v2 = round(v2, binary.LittleEndian.Uint64(s[8:]))
			v3 = round(v3, binary.LittleEndian.Uint64(s[16:]))
			v4 = round(v4, binary.LittleEndian.Uint64(s[24:]))
			b = b[32:]
		}
		h = converge(v1, v2, v3, v4)
	}
	h += size
	for len(b) >= 8 {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*prime1 + prime4
		b = b[8:]
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*prime1, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*prime5, 11) * prime1
	}
	return avalanche(h)
}
