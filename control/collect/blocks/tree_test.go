package blocks

import (
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
)

// TestKeyInUse has blocks whose keys are those of others, as a made up prompt
// could have: there is no place for them, and those that are there stay.
func TestKeyInUse(t *testing.T) {
	x := New("pool", silent{})
	step := func(prev blockID, key uint64, size uint32) blockID {
		b := x.tree.step(prev, key, size)
		check(t, x)
		return b
	}
	one := step(noBlock, 1, size)
	two := step(one, 2, size)
	other := step(noBlock, 2, size) // begins a node, so the run 1, 2 cannot be split
	if step(one, 9, size) != noBlock {
		t.Error("a node was split though its second half's name is in use")
	}
	if step(two, 1, size) != noBlock || step(other, 1, size) != noBlock {
		t.Error("a block has two parents")
	}
	if step(noBlock, 1, 2*size) != noBlock {
		t.Error("a block has two sizes")
	}
	if step(noBlock, 1, size) != one || step(one, 2, size) != two || step(noBlock, 2, size) != other {
		t.Error("blocks are not where they were")
	}
}

func TestTooDeep(t *testing.T) {
	x := New("pool", silent{})
	b := x.tree.step(noBlock, 1, size)
	x.tree.nodes[1].depth = kvindex.MaxDepth - 2
	if b = x.tree.step(b, 2, size); b == noBlock {
		t.Fatal("not that deep yet")
	}
	if x.tree.step(b, 3, size) != noBlock {
		t.Error("deeper than a record can say")
	}
}

// FuzzTree makes paths of keys that mean nothing, holds and releases blocks, and
// tests that the tree stays one.
func FuzzTree(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 1, 4, 3, 0, 2, 3})
	f.Add([]byte("abcdefghijklmnop\x00abcdefg\x00aaabbbcccabc"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		b := newBench(t)
		var engines []*rank
		for i := range 3 {
			engines = append(engines, b.rank(At{uint16(i), 0}))
		}
		prev := noBlock
		for i, op := range ops[:min(len(ops), 1000)] {
			key := uint64(op & 0x3f)
			if key == 0 {
				prev = noBlock
				continue
			}
			next := b.tree.step(prev, key, size)
			if next == noBlock {
				continue
			}
			prev = next
			r := engines[op>>6%3]
			if p, fresh := r.table.put(uint64(next)); fresh {
				p.block = next
				b.gain(r, p, gpu)
			} else if b.lose(r, p, gpu); p.free() {
				r.table.remove(p)
			}
			if i%8 == 0 {
				b.pull()
				prev = noBlock // it may be gone
			}
		}
		b.pull()
	})
}
