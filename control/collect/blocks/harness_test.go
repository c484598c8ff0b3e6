package blocks

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
)

// bench is an index with a twin made of its records, as a filter has it.
type bench struct {
	t testing.TB
	*Index
	anomalies map[kvevents.Anomaly]int
	records   map[uint64][]byte
	told      int // records in the last call
	ts        float64
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t, anomalies: map[kvevents.Anomaly]int{}, records: map[uint64][]byte{}}
	b.Index = New("pool", b)
	return b
}

func (b *bench) Anomaly(a kvevents.Anomaly, n int) { b.anomalies[a] += n }

// pull brings the records up to date and checks what must hold at any time.
func (b *bench) pull() {
	b.t.Helper()
	seen := map[uint64]bool{}
	b.Records(func(id uint64, payload []byte) {
		if seen[id] {
			b.t.Fatalf("record %x told twice", id)
		}
		seen[id] = true
		old, had := b.records[id]
		switch {
		case payload == nil && !had:
			b.t.Fatalf("record %x removed, but never told", id)
		case payload == nil:
			delete(b.records, id)
		case bytes.Equal(old, payload):
			b.t.Fatalf("record %x told, but it has not changed", id)
		default:
			b.records[id] = payload
		}
	})
	b.told = len(seen)
	check(b.t, b.Index)
	if whole := dump(b.Index); !maps.EqualFunc(b.records, whole, bytes.Equal) {
		b.t.Fatalf("%d records told, the tree has %d or others", len(b.records), len(whole))
	}
}

// dump is all records as they are now.
func dump(x *Index) map[uint64][]byte {
	all := map[uint64][]byte{}
	for id, n := range x.tree.heads {
		all[id] = x.appendNode(nil, n)
	}
	for id, i := range x.tree.texts.byID {
		all[id] = x.appendText(nil, &x.tree.texts.all[i])
	}
	return all
}

// node decodes the record of a node.
func (b *bench) node(id uint64) (n kvindex.Node, ok bool) {
	b.t.Helper()
	payload, ok := b.records[id]
	if !ok || kvindex.KindOf(payload) != kvindex.KindNode {
		return n, false
	}
	if err := n.Decode(payload); err != nil {
		b.t.Fatalf("node %x: %v", id, err)
	}
	return n, true
}

// run walks the records as a filter does: how many leading blocks of a prompt a
// replica has on its GPUs, and in any tier.
func (b *bench) run(slot uint16, keys []uint64) (onGPU, inAny int) {
	b.t.Helper()
	gpuEnds, parent := false, uint64(0)
	for at := 0; at < len(keys); {
		n, ok := b.node(keys[at])
		if !ok || n.Parent != parent || int(n.Depth) != at {
			break
		}
		i := slices.IndexFunc(n.Held, func(h kvindex.Held) bool { return h.Slot == slot })
		if i < 0 {
			break
		}
		same := 0
		for same < len(n.Tags) && at+same < len(keys) && n.Tags[same] == uint16(keys[at+same]) {
			same++
		}
		h := n.Held[i]
		if !gpuEnds {
			onGPU += min(same, int(h.Run))
		}
		inAny += min(same, int(h.Any))
		gpuEnds = gpuEnds || int(h.Run) < len(n.Tags)
		if int(h.Any) < len(n.Tags) || same < len(n.Tags) {
			break
		}
		at, parent = at+len(n.Tags), keys[at]
	}
	return onGPU, inAny
}

// text is the path a text key leads to, as the tags of its blocks, and its depth.
func (b *bench) text(id uint64) (tags []uint16, ok bool) {
	b.t.Helper()
	payload, ok := b.records[id]
	if !ok || kvindex.KindOf(payload) != kvindex.KindText {
		return nil, false
	}
	var x kvindex.Text
	if err := x.Decode(payload); err != nil {
		b.t.Fatalf("text %x: %v", id, err)
	}
	n, ok := b.node(x.Leaf)
	if !ok || int(x.Blocks) > len(n.Tags) || n.Depth+uint32(x.Blocks) != x.Depth || n.Size != x.Size {
		b.t.Fatalf("text %x %+v ends in node %+v, %v", id, x, n, ok)
	}
	tags = slices.Clone(n.Tags[:x.Blocks])
	for n.Parent != 0 {
		if n, ok = b.node(n.Parent); !ok {
			b.t.Fatalf("text %x: a node of its path is missing", id)
		}
		tags = slices.Concat(n.Tags, tags)
	}
	return tags, true
}

const size = 4 // tokens in a block of the tests

// space is what a prompt's blocks are kept apart by.
type space struct{ lora, salt string }

// prompt is a run of blocks, each named by a number from which its tokens come.
type prompt struct {
	space
	blocks []int
}

func of(blocks ...int) prompt { return prompt{blocks: blocks} }

func tokens(block int) []uint32 {
	t := make([]uint32, size)
	for i := range t {
		t[i] = uint32(block*size + i)
	}
	return t
}

// keys are those that a filter computes for the prompt.
func (p prompt) keys() []uint64 {
	var salt uint64
	if p.salt != "" {
		salt = openai.SaltHash(p.salt)
	}
	var c kvindex.Chain
	c.Reset(kvindex.Root("pool", []byte(p.lora), salt), size)
	for _, b := range p.blocks {
		c.Add(tokens(b))
	}
	return c.Keys()
}

// hash is an engine's name for the prompt's block i; seed makes engines differ.
func (p prompt) hash(seed uint64, i int) kvevents.Hash {
	h := seed*0x9e3779b97f4a7c15 + 7
	for _, c := range []byte(p.lora + "/" + p.salt) {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	for _, b := range p.blocks[:i+1] {
		h = (h ^ uint64(b) ^ h>>29) * 0xbf58476d1ce4e5b9
	}
	return h | 1
}

// stored is the event for blocks [from, to) of the prompt.
func (p prompt) stored(seed uint64, from, to int) *kvevents.Stored {
	e := &kvevents.Stored{BlockSize: size, Group: 0, Spec: []byte("full_attention"), Lora: []byte(p.lora)}
	if from > 0 {
		e.HasParent, e.Parent = true, p.hash(seed, from-1)
	}
	for i := from; i < to; i++ {
		e.Hashes = append(e.Hashes, p.hash(seed, i))
		e.Tokens = append(e.Tokens, tokens(p.blocks[i])...)
		e.Extra = append(e.Extra, p.extra(i))
	}
	return e
}

func (p prompt) extra(i int) (keys []kvevents.ExtraKey) {
	if p.lora != "" {
		keys = append(keys, word(p.lora))
	}
	if p.salt != "" && i == 0 {
		keys = append(keys, word(p.salt))
	}
	return keys
}

// word is a string as msgpack has it.
func word(s string) kvevents.ExtraKey { return append(kvevents.ExtraKey{0xa0 | byte(len(s))}, s...) }

func (p prompt) removed(seed uint64, blocks ...int) *kvevents.Removed {
	e := &kvevents.Removed{Group: 0}
	for _, i := range blocks {
		e.Hashes = append(e.Hashes, p.hash(seed, i))
	}
	return e
}

// store and remove are events of an engine's own batch each, on rank 0. The
// engine in a slot has that slot's number for a seed.
func (b *bench) store(slot uint16, p prompt, from, to int) {
	b.ts++
	b.Stored(At{slot, 0}, p.stored(uint64(slot), from, to), b.ts)
}

func (b *bench) remove(slot uint16, p prompt, blocks ...int) {
	b.ts++
	b.Removed(At{slot, 0}, p.removed(uint64(slot), blocks...))
}

// runs checks how much of a prompt each of the slots from 0 on has on its GPUs.
func (b *bench) runs(p prompt, want ...int) {
	b.t.Helper()
	b.pull()
	for slot, n := range want {
		if got, _ := b.run(uint16(slot), p.keys()); got != n {
			b.t.Errorf("slot %d has %d blocks of %v, want %d", slot, got, p, n)
		}
	}
}

// noted checks that there were these anomalies and no others.
func (b *bench) noted(want map[kvevents.Anomaly]int) {
	b.t.Helper()
	if !maps.Equal(b.anomalies, want) {
		b.t.Errorf("anomalies %v, want %v", b.anomalies, want)
	}
}

func session(key uint64) []byte { return fmt.Appendf(nil, "wl1-%016x", key) }
