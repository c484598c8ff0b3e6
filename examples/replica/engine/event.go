package engine

import "slices"

// Kind tells what happened to the cache.
type Kind uint8

// The kinds of events, named as in vLLM.
const (
	BlockStored Kind = iota + 1
	BlockRemoved
	AllBlocksCleared
)

// Event is one change of the cache. Its slices may be kept but not changed.
type Event struct {
	Kind   Kind
	Hashes []Hash // BlockStored: a run of blocks, each the parent of the next; BlockRemoved: one

	// The rest is set for BlockStored only.
	Parent    Hash    // the block before the first one, unless Root
	Root      bool    // the run starts the prompt
	Tokens    []Token // of all blocks, one after the other
	BlockSize int
	Space     Space
	Extra     [][]string // for each block what was hashed beside tokens; nil: nothing
	Session   string
}

// extraKeys is what is hashed with a block beside its tokens.
func (s Space) extraKeys(first bool) []string {
	var keys []string
	if s.Adapter != "" {
		keys = append(keys, s.Adapter)
	}
	if first && s.Salt != "" {
		keys = append(keys, s.Salt)
	}
	return keys
}

// stored makes the event for blocks [from, to) of a request, with their tokens.
func (e *Engine) stored(r *Request, from, to int, tokens []Token) Event {
	ev := Event{
		Kind:      BlockStored,
		Hashes:    slices.Clone(r.hashes[from:to]),
		Root:      from == 0,
		Tokens:    tokens,
		Extra:     make([][]string, 0, to-from),
		BlockSize: e.cfg.BlockSize,
		Space:     r.spec.Space,
		Session:   r.spec.Session,
	}
	if from > 0 {
		ev.Parent = r.hashes[from-1]
	}
	for i := from; i < to; i++ {
		ev.Extra = append(ev.Extra, r.spec.Space.extraKeys(i == 0))
	}
	return ev
}
