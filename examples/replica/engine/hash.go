package engine

import (
	"crypto/sha256"
	"encoding/binary"
)

// Hash names a block: all tokens from the start of the prompt to the block's end,
// with the adapter and the salt they were computed under.
type Hash [sha256.Size]byte

// Uint64 is the short form of the name, as engines publish it by default: the
// low 64 bits.
func (h Hash) Uint64() uint64 { return binary.BigEndian.Uint64(h[len(h)-8:]) }

// Space is what, beside tokens, tells blocks apart. Adapter and AdapterPath count
// in every block, Salt in the first one (and so, by the chain, in all).
type Space struct {
	Adapter     string // "": the base model
	AdapterPath string
	AdapterID   int // a running number, published but not hashed
	Salt        string
}

// hasher appends the block hashes of one sequence as its tokens become known.
type hasher struct {
	seed  Hash
	space Space
	size  int
	buf   []byte
}

func newHasher(seed Hash, space Space, size int) *hasher {
	return &hasher{seed: seed, space: space, size: size}
}

// extend appends to hashes the names of all full blocks of tokens it lacks.
func (h *hasher) extend(hashes []Hash, tokens []Token) []Hash {
	for i := len(hashes); (i+1)*h.size <= len(tokens); i++ {
		parent := h.seed
		if i > 0 {
			parent = hashes[i-1]
		}
		hashes = append(hashes, h.block(parent, tokens[i*h.size:(i+1)*h.size], i == 0))
	}
	return hashes
}

func (h *hasher) block(parent Hash, tokens []Token, first bool) Hash {
	b := append(h.buf[:0], parent[:]...)
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	if h.space.Adapter != "" {
		b = appendKey(b, 'a', h.space.Adapter)
		b = appendKey(b, 'p', h.space.AdapterPath)
	}
	if first && h.space.Salt != "" {
		b = appendKey(b, 's', h.space.Salt)
	}
	h.buf = b
	return sha256.Sum256(b)
}

// appendKey writes kind, length and text, so that no two lists of keys are the
// same bytes.
func appendKey(b []byte, kind byte, s string) []byte {
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
