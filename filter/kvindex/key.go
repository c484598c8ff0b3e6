package kvindex

import (
	"github.com/cespare/xxhash/v2"

	"github.com/warmlane/warmlane/filter/xxh64"
)

// MaxBlockSize is the largest number of tokens in a block.
const MaxBlockSize = 1 << 16

// rootSeed begins every namespace.
const rootSeed = xxh64.Prime3

// Root is what stands before the first block of a prompt: the namespace. Equal
// tokens of other pools, of other adapters or under other salts are other
// blocks. The adapter is a LoRA name, empty for the base model; salt is the
// hash of cache_salt (openai.SaltHash), 0 if there is none.
func Root(pool string, adapter []byte, salt uint64) uint64 {
	h := with(rootSeed, xxhash.Sum64String(pool))
	h = with(h, xxhash.Sum64(adapter))
	return with(h, salt)
}

// Next is the key of the block with these tokens after the one with key
// parent, or after a Root: XXH64 of the tokens as 4-byte little-endian words,
// seeded with parent. So a key stands for everything up to its block. It is
// never 0.
func Next(parent uint64, tokens []uint32) uint64 {
	return named(xxh64.SumWords(tokens, parent))
}

// Opaque is the key of a block that holds more than its tokens tell, such as
// an image; extra is a hash of the rest. No prompt of tokens alone has this
// key, nor those of the blocks after it.
func Opaque(key, extra uint64) uint64 {
	return named(with(key^rootSeed, extra))
}

func with(h, part uint64) uint64 {
	return xxh64.Avalanche(xxh64.Round(h, part))
}

// named keeps 0 free to mean no block.
func named(key uint64) uint64 {
	if key == 0 {
		return 1
	}
	return key
}

// Chain makes the keys of a prompt from its tokens as they come. The zero
// value has no block size and never gets a key: Reset it first. Its memory is
// used again.
type Chain struct {
	last   uint64 // key of the last whole block, or the root
	size   int
	tokens int
	keys   []uint64
	tail   []uint32 // the unfinished block
}

// Reset begins a prompt in the namespace root. With a block size out of 1 to
// MaxBlockSize it will have no keys.
func (c *Chain) Reset(root uint64, blockSize int) {
	if blockSize < 1 || blockSize > MaxBlockSize {
		blockSize = 0
	}
	c.last, c.size, c.tokens = root, blockSize, 0
	c.keys, c.tail = c.keys[:0], c.tail[:0]
}

// Add appends tokens and keeps no reference to them.
func (c *Chain) Add(tokens []uint32) {
	c.tokens += len(tokens)
	if c.size == 0 {
		return
	}
	if len(c.tail) > 0 {
		n := min(c.size-len(c.tail), len(tokens))
		c.tail = append(c.tail, tokens[:n]...)
		tokens = tokens[n:]
		if len(c.tail) < c.size {
			return
		}
		c.block(c.tail)
		c.tail = c.tail[:0]
	}
	for len(tokens) >= c.size {
		c.block(tokens[:c.size])
		tokens = tokens[c.size:]
	}
	c.tail = append(c.tail, tokens...)
}

// Token appends one token.
func (c *Chain) Token(t uint32) {
	c.tokens++
	if c.size == 0 {
		return
	}
	c.tail = append(c.tail, t)
	if len(c.tail) == c.size {
		c.block(c.tail)
		c.tail = c.tail[:0]
	}
}

func (c *Chain) block(tokens []uint32) {
	c.last = Next(c.last, tokens)
	c.keys = append(c.keys, c.last)
}

// Keys returns the keys of all whole blocks. They are valid until the next
// Reset.
func (c *Chain) Keys() []uint64 { return c.keys }

// Tokens is how many tokens were added, those of the unfinished block too.
func (c *Chain) Tokens() int { return c.tokens }

// BlockSize is the number of tokens in a block, 0 if it was out of bounds.
func (c *Chain) BlockSize() int { return c.size }
