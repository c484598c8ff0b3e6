package kvindex

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// somePrompt is n tokens that do not repeat soon.
func somePrompt(n int, seed uint64) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(r.IntN(150_000))
	}
	return tokens
}

// naiveKeys are the keys of a prompt as the doc comments say, by another
// library.
func naiveKeys(root uint64, size int, tokens []uint32) []uint64 {
	var keys []uint64
	for key := root; len(tokens) >= size; tokens = tokens[size:] {
		d := xxhash.NewWithSeed(key)
		for _, t := range tokens[:size] {
			_, _ = d.Write(binary.LittleEndian.AppendUint32(nil, t))
		}
		key = d.Sum64()
		keys = append(keys, key)
	}
	return keys
}

func TestChain(t *testing.T) {
	root := Root("default", nil, 0)
	var c Chain
	for _, size := range []int{1, 3, 8, 16, 32, 129, 784} {
		for _, n := range []int{0, 1, size - 1, size, size + 1, 5*size + 2} {
			tokens := somePrompt(n, uint64(size))
			want := naiveKeys(root, size, tokens)
			for _, piece := range []int{1, 2, 7, 100, n + 1} {
				c.Reset(root, size)
				for chunk := range slices.Chunk(tokens, piece) {
					c.Add(chunk)
				}
				if !slices.Equal(c.Keys(), want) || c.Tokens() != n || c.BlockSize() != size {
					t.Errorf("%d tokens in blocks of %d, added by %d: %x, want %x", n, size, piece, c.Keys(), want)
				}
			}
			c.Reset(root, size)
			for i, token := range tokens {
				if i%3 == 0 {
					c.Add(tokens[i : i+1])
				} else {
					c.Token(token)
				}
			}
			if !slices.Equal(c.Keys(), want) || c.Tokens() != n {
				t.Errorf("%d tokens in blocks of %d, one by one: %x, want %x", n, size, c.Keys(), want)
			}
		}
	}
}

func TestChainWithoutBlockSize(t *testing.T) {
	var c Chain
	for _, size := range []int{0, -1, MaxBlockSize + 1} {
		c.Add(somePrompt(100, 1))
		c.Token(7)
		if len(c.Keys()) != 0 || c.BlockSize() != 0 || c.Tokens() != 101 {
			t.Errorf("%d keys of %d tokens", len(c.Keys()), c.Tokens())
		}
		c.Reset(1, size)
	}
	c.Reset(1, MaxBlockSize)
	c.Add(make([]uint32, MaxBlockSize))
	if len(c.Keys()) != 1 {
		t.Error("the largest block has no key")
	}
}

// The keys must stay as they are from release to release: control and filter
// may be of different ones.
func TestKeysStay(t *testing.T) {
	f := func(what string, got, want uint64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %#x, want %#x", what, got, want)
		}
	}
	root := Root("default", nil, 0)
	f("root", root, 0x447e07d8a9432f45)
	f("root of an adapter", Root("default", []byte("lora-a"), 0), 0x9f1dfbe490b828d4)
	f("root under a salt", Root("default", nil, 7), 0xc80f91b7141a1f81)
	f("block", Next(root, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), 0xdd97211251d55ad3)
	f("opaque", Opaque(5, 6), 0x269fb8b82915e003)
}

func TestNamespacesDoNotMeet(t *testing.T) {
	seen := make(map[uint64]string)
	f := func(what string, key uint64) {
		t.Helper()
		if other, taken := seen[key]; taken || key == 0 {
			t.Errorf("%s has the key %#x of %q", what, key, other)
		}
		seen[key] = what
	}
	f("pool a", Root("a", nil, 0))
	f("pool b", Root("b", nil, 0))
	f("no pool", Root("", nil, 0))
	f("adapter a", Root("", []byte("a"), 0))
	f("pool and adapter", Root("a", []byte("b"), 0))
	f("salt 1", Root("a", nil, 1))
	f("salt 2", Root("a", nil, 2))
	key := Next(Root("a", nil, 0), []uint32{1})
	f("block", key)
	f("opaque 0", Opaque(key, 0))
	f("opaque 1", Opaque(key, 1))
	f("opaque of the root", Opaque(Root("a", nil, 0), 1))
	f("after a block", Next(key, []uint32{1}))
	f("after an opaque one", Next(Opaque(key, 1), []uint32{1}))
	if Root("a", []byte{}, 0) != Root("a", nil, 0) {
		t.Error("an adapter of no name is not the base model")
	}
}

func TestNoKeyIsZero(t *testing.T) {
	if named(0) != 1 || named(5) != 5 {
		t.Error("0 is not kept free")
	}
}

func TestChainMakesNoGarbage(t *testing.T) {
	var c Chain
	tokens := somePrompt(32_003, 1)
	n := testing.AllocsPerRun(100, func() {
		c.Reset(Root("default", []byte("lora-a"), 7), 16)
		c.Add(tokens[:1001])
		c.Add(tokens[1001:])
		c.Token(5)
	})
	if n != 0 || len(c.Keys()) != 2000 {
		t.Errorf("%v allocations, %d keys", n, len(c.Keys()))
	}
}
