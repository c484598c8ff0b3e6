package engine

import (
	"bytes"
	"slices"
)

// Block is one cached block as Blocks lists it. Slices are the engine's own and
// must not be changed.
type Block struct {
	Hash   Hash
	Parent Hash // unless Root
	Root   bool
	Tokens []Token
	Extra  []string
	Copies int // physical blocks that hold it
	Refs   int // requests that use it, over all copies
}

// Blocks lists what is cached now, in the order of the hashes. When Unsent is 0,
// a consumer that applied all published events holds exactly these blocks, each
// as often as Copies says.
func (e *Engine) Blocks() []Block {
	out := make([]Block, 0, len(e.cache.index))
	for _, b := range e.cache.index {
		l := Block{Hash: b.hash, Parent: b.parent, Root: b.root, Tokens: b.tokens, Extra: b.extra}
		for ; b != nil; b = b.twin {
			l.Copies++
			l.Refs += b.refs
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Block) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return out
}

// Unsent is the number of events not yet given to OnBatch: those of the step
// under way, and a clear that waits for the next one.
func (e *Engine) Unsent() int { return len(e.pending) }
