package kvevents

import "github.com/cespare/xxhash/v2"

// Hash is an engine's name for a block, to be compared with others of the same
// engine only: an integer as it was sent (a negative one as its two's complement),
// or XXH64 of a byte string.
type Hash = uint64

// Batch is what an engine told in one message. It belongs to whoever decodes into
// it: all slices in it are valid until the next Decode, and those of bytes only as
// long as the payload is.
type Batch struct {
	TS     float64 // seconds since 1970 by the engine's clock
	Rank   int     // data-parallel rank, -1: not told
	Events []Event // in the order they happened

	Unknown int    // events of a type not known here, left out
	Bad     int    // events that could not be read, left out
	BadSize int    // of these, those with an impossible block size
	First   *Error // what was wrong with the first of Bad, nil: nothing

	memory memory
}

// Lost reports whether something told about blocks is missing in Events.
func (b *Batch) Lost() bool { return b.Bad > 0 }

// memory holds what the slices of a batch point to, from one Decode to the next.
type memory struct {
	hashes []Hash
	tokens []uint32
	keys   []ExtraKey
	blocks [][]ExtraKey
}

// Type is the type of an event.
type Type uint8

// The types of events.
const (
	TypeStored Type = iota
	TypeRemoved
	TypeCleared
	Types // how many there are
)

func (t Type) String() string {
	return [...]string{"stored", "removed", "cleared", "unknown"}[min(t, Types)]
}

// Event is one change of a cache; Type says which of the two fields is set.
type Event struct {
	Type    Type
	Stored  Stored
	Removed Removed
}

// Stored tells of a run of blocks, each the parent of the next.
type Stored struct {
	Hashes    []Hash
	Parent    Hash // block before the first one
	HasParent bool // false: the run starts a prompt, or, without Tokens, nothing is known
	// Tokens of all blocks, one after the other. Empty with BlockSize 0: the engine
	// names blocks in another tier by hash alone.
	Tokens    []uint32
	BlockSize int    // tokens in a block
	Lora      []byte // name of the adapter, empty: base model
	// Extra is nil or has for each block what was hashed beside its tokens: adapter
	// name, multimodal items, in block 0 the salt, digests of embeddings.
	Extra   [][]ExtraKey
	Medium  Medium
	Remote  bool   // in a store that is not the engine's own machine
	Group   int    // KV cache group, -1: not told
	Spec    []byte // kind of the group's cache, such as full_attention; empty: not told
	Session []byte // of the request that stored it
}

// Removed names blocks that are gone from a medium.
type Removed struct {
	Hashes []Hash
	Medium Medium
	Remote bool
	Group  int // -1: not told
}

// ExtraKey is one value hashed beside a block's tokens, as its msgpack bytes.
type ExtraKey []byte

// Text is the value if it is a string.
func (k ExtraKey) Text() (text []byte, ok bool) {
	d := decoder{data: k}
	if d.peek() == kindString {
		text, ok = d.text(), d.err == nil
	}
	return text, ok
}

// Hash is XXH64 of the value.
func (k ExtraKey) Hash() uint64 { return xxhash.Sum64(k) }

// Medium is where a block lies.
type Medium uint8

// The media. An unknown one must not count as GPU.
const (
	GPU Medium = iota // also when the engine does not tell
	CPU
	Disk // also object stores
	OtherMedium
)
