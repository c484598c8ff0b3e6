package blocks

import (
	"slices"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
)

// tell stores blocks for a prompt with a text key.
func (b *bench) tell(slot uint16, key uint64, p prompt, from, to int) {
	b.ts++
	e := p.stored(uint64(slot), from, to)
	e.Session = session(key)
	b.Stored(At{slot, 0}, e, b.ts)
}

// wantText checks that the record of a text key leads along a prompt's blocks;
// without blocks that there is none.
func (b *bench) wantText(key uint64, p prompt) {
	b.t.Helper()
	b.pull()
	b.textIs(key, p)
}

func (b *bench) textIs(key uint64, p prompt) {
	b.t.Helper()
	var want []uint16
	for _, k := range p.keys() {
		want = append(want, uint16(k))
	}
	if got, ok := b.text(key); !slices.Equal(got, want) || ok != (len(want) > 0) {
		b.t.Errorf("text %x leads along %x, want %x", key, got, want)
	}
}

func TestTextKey(t *testing.T) {
	for _, c := range []struct {
		session string
		want    uint64
	}{
		{"wl1-0123456789abcdef", 0x0123456789abcdef},
		{"wl1-ffffffffffffffff", 1<<64 - 1},
		{"wl1-0000000000000000", 0},
		{"wl1-0123456789ABCDEF", 0},
		{"wl2-0123456789abcdef", 0},
		{"wl1-0123456789abcde", 0},
		{"wl1-0123456789abcdef0", 0},
		{"wl1-0123456789abcdeg", 0},
		{"sess-42", 0},
		{"", 0},
	} {
		if got := textKey([]byte(c.session)); got != c.want {
			t.Errorf("%q: %x, want %x", c.session, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4, 5)
	b.store(0, p, 0, 1)
	if b.Tagged(0) {
		t.Error("tagged without a text key")
	}
	b.tell(0, 77, p, 1, 3)
	if !b.Tagged(0) || b.Tagged(1) {
		t.Errorf("tagged %v, %v", b.Tagged(0), b.Tagged(1))
	}
	b.wantText(77, of(1, 2, 3))
	b.tell(0, 77, p, 3, 5) // goes on
	b.wantText(77, p)
	b.tell(1, 77, p, 0, 2) // the same prompt elsewhere, not as far yet
	b.wantText(77, p)
	if b.told != 1 { // the node, which slot 1 holds now
		t.Errorf("%d records", b.told)
	}
	b.tell(1, 77, of(1, 2, 9), 2, 3) // another answer
	b.wantText(77, of(1, 2, 9))
	b.tell(0, 78, of(6), 0, 1)
	b.wantText(78, of(6))
	b.tell(0, 0, of(8), 0, 1)
	b.wantText(0, of())
}

// TestTextOfSplit splits the node a path ends in, before, at and after its end.
func TestTextOfSplit(t *testing.T) {
	p := of(1, 2, 3, 4)
	for at := 1; at < 4; at++ {
		for end := 1; end <= 4; end++ {
			b := newBench(t)
			b.tell(0, 5, p, 0, end)
			b.store(0, p, end, 4)
			b.wantText(5, prompt{blocks: p.blocks[:end]})
			q := prompt{blocks: append(slices.Clone(p.blocks[:at]), 9)}
			b.store(1, q, 0, at+1)
			b.wantText(5, prompt{blocks: p.blocks[:end]})
			if len(b.records) != 4 {
				t.Errorf("%d records", len(b.records))
			}
		}
	}
}

// TestTextKeepsPath has all replicas lose what a remembered prompt had.
func TestTextKeepsPath(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4)
	b.store(0, p, 0, 4)
	b.store(0, of(1, 8), 1, 2)
	b.tell(0, 5, p, 1, 3)
	b.Drop(0)
	b.wantText(5, of(1, 2, 3))
	b.runs(p, 0)
	if len(b.records) != 3 || b.tree.live != 3 {
		t.Errorf("%d records, %d blocks", len(b.records), b.tree.live)
	}
	b.store(1, p, 0, 4)
	b.runs(p, 0, 4)
	b.Drop(1)
	b.runs(p, 0, 0)
	b.tell(1, 5, of(7), 0, 1)
	b.wantText(5, of(7))
	if len(b.records) != 2 {
		t.Errorf("%d records, the path of before is still there", len(b.records))
	}
}

// TestTextsBounded remembers more prompts than are kept.
func TestTextsBounded(t *testing.T) {
	b := newBench(t)
	for i := range maxTexts {
		b.tell(0, uint64(i+1), of(i), 0, 1)
	}
	b.Drop(0)
	b.tell(1, 1, of(0), 0, 1) // told again: no more the oldest
	b.wantText(2, of(1))
	b.tell(1, maxTexts+1, of(maxTexts), 0, 1)
	b.wantText(1, of(0))
	b.wantText(2, of())
	b.wantText(3, of(2))
	b.wantText(maxTexts+1, of(maxTexts))
	if n := len(b.records); n != 2*maxTexts {
		t.Errorf("%d records, want %d", n, 2*maxTexts)
	}
}

// TestIdleBounded remembers prompts that are too long to be kept all.
func TestIdleBounded(t *testing.T) {
	b := newBench(t)
	p := of(make([]int, 1<<10)...)
	prompts := idleBlocks/len(p.blocks) + 3
	for i := range prompts {
		p.blocks[0] = i + 1
		b.tell(0, uint64(i+1), p, 0, len(p.blocks))
	}
	b.pull()
	if len(b.tree.texts.byID) != prompts {
		t.Errorf("%d texts while their blocks are held", len(b.tree.texts.byID))
	}
	b.Drop(0)
	b.pull()
	if b.tree.live > idleBlocks || len(b.tree.texts.byID) == 0 {
		t.Errorf("%d blocks that nobody holds, for %d prompts", b.tree.live, len(b.tree.texts.byID))
	}
}

// TestTextLikeNode has a text key that is the id of a node, which comes first or
// second.
func TestTextLikeNode(t *testing.T) {
	b := newBench(t)
	p, q := of(1, 2), of(3, 4)
	id := p.keys()[0]
	b.tell(0, id, q, 0, 2)
	b.wantText(id, q)
	b.store(0, p, 0, 2)
	b.runs(p, 2)
	if kvindex.KindOf(b.records[id]) != kvindex.KindNode || len(b.records) != 2 {
		t.Errorf("record %x of %d", b.records[id], len(b.records))
	}
	b.tell(0, id, q, 0, 2)
	b.runs(p, 2)
	b.Drop(0)
	b.pull()
	b.tell(0, id, q, 0, 2)
	b.wantText(id, q)
}
