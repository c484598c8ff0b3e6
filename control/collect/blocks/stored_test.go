package blocks

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/kvindex"
)

type noted = map[kvevents.Anomaly]int

func TestStored(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4)
	b.store(0, p, 0, 3)
	b.runs(p, 3, 0)
	if b.told != 1 {
		t.Errorf("%d records for one run", b.told)
	}
	b.store(0, p, 3, 4) // a block that decoding filled
	b.runs(p, 4, 0)
	if n, _ := b.node(p.keys()[0]); len(b.records) != 1 || len(n.Tags) != 4 || n.Size != size {
		t.Errorf("%d records, node %+v", len(b.records), n)
	}
	b.store(1, of(1, 2, 9), 0, 3)
	b.runs(p, 4, 2)
	b.runs(of(1, 2, 9), 2, 3)
	if b.told != 0 || len(b.records) != 3 {
		t.Errorf("%d records, %d told again", len(b.records), b.told)
	}
	b.noted(noted{})
}

// TestLongRun stores more blocks than a node can have, all at once and one by one.
func TestLongRun(t *testing.T) {
	p := of()
	for i := range 2*kvindex.MaxRun + 50 {
		p.blocks = append(p.blocks, 1+i%7)
	}
	for _, step := range []int{len(p.blocks), 1, 100} {
		b := newBench(t)
		for from := 0; from < len(p.blocks); from += step {
			b.store(0, p, from, min(from+step, len(p.blocks)))
			b.pull()
		}
		b.runs(p, len(p.blocks))
		if len(b.records) != 3 {
			t.Errorf("in steps of %d: %d nodes, want 3", step, len(b.records))
		}
		for i := len(p.blocks) - 1; i >= 0; i-- {
			b.remove(0, p, i)
			b.runs(p, i)
		}
		if len(b.records) != 0 {
			t.Errorf("%d records of nothing", len(b.records))
		}
	}
}

// TestNamespaces stores the same tokens for the base model, under adapters and
// under salts: none of them matches another.
func TestNamespaces(t *testing.T) {
	var prompts []prompt
	for _, s := range []space{{}, {lora: "sql"}, {lora: "chat"}, {salt: "sql"}, {salt: "tenant-7"}, {lora: "sql", salt: "tenant-7"}, {lora: "sql", salt: "sql"}} {
		prompts = append(prompts, prompt{s, []int{1, 2, 3}})
	}
	b := newBench(t)
	for i, p := range prompts {
		b.store(uint16(i), p, 0, 2)
		b.store(uint16(i), p, 2, 3)
	}
	b.pull()
	for i, p := range prompts {
		for slot := range prompts {
			want := 0
			if slot == i {
				want = 3
			}
			if got, _ := b.run(uint16(slot), p.keys()); got != want {
				t.Errorf("%+v in slot %d: %d blocks, want %d", p.space, slot, got, want)
			}
		}
	}
	b.noted(noted{})
}

// TestOpaque has more in a block than tokens tell: neither it nor what follows
// matches a prompt of the same tokens.
func TestOpaque(t *testing.T) {
	p := prompt{space{"sql", "tenant-7"}, []int{1, 2, 3, 4}}
	image := kvevents.ExtraKey("\x92\xa3img\x05") // (identifier, offset)
	digest := kvevents.ExtraKey("\xc4\x02\x01\x02")
	for i, extra := range []kvevents.ExtraKey{image, digest} {
		for block := range 4 {
			b := newBench(t)
			e := p.stored(0, 0, 4)
			e.Extra[block] = slices.Insert(e.Extra[block], 1, extra)
			b.Stored(At{}, e, 1)
			b.runs(p, block)
			other := p.stored(1, 0, 4)
			other.Extra[block] = slices.Insert(other.Extra[block], 1, digest)
			b.Stored(At{1, 0}, other, 1)
			b.runs(p, block, block)
			if same := len(b.Keys(0)) == 4 && slices.Equal(b.Keys(0), b.Keys(1)); same != (i == 1) {
				t.Errorf("extra %q and a digest in block %d: same blocks %v", extra, block, same)
			}
		}
	}
	b := newBench(t)
	e := of(1, 2).stored(0, 0, 2)
	e.Extra[0] = []kvevents.ExtraKey{digest} // alone, but no string: not a salt
	b.Stored(At{}, e, 1)
	b.runs(of(1, 2), 0)
	if b.Blocks(0) != 2 {
		t.Errorf("%d blocks", b.Blocks(0))
	}
}

func TestUnknownParent(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4, 5)
	b.store(0, p, 2, 4)
	b.store(0, p, 4, 5)
	b.runs(p, 0)
	b.noted(noted{kvevents.UnknownParent: 2})
	if b.Blocks(0) != 0 || len(b.Hashes(0)) != 3 || !b.Partial(0) {
		t.Errorf("%d blocks, %v, partial %v", b.Blocks(0), b.Hashes(0), b.Partial(0))
	}
	b.remove(0, p, 4) // of one that has no place: nothing to see
	b.runs(p, 0)

	b.store(0, p, 0, 4) // a report says where they belong
	b.runs(p, 4)
	if b.Partial(0) {
		t.Error("partial, but all blocks have their place")
	}
	b.store(0, p, 4, 5)
	b.runs(p, 5)
	b.remove(0, p, 3) // was stored once
	b.runs(p, 3)
	b.noted(noted{kvevents.UnknownParent: 2})
}

// TestOrphansBounded stores more blocks without a place than are remembered.
func TestOrphansBounded(t *testing.T) {
	b := newBench(t)
	e := &kvevents.Stored{BlockSize: 1, HasParent: true, Parent: 1, Group: -1, Hashes: []kvevents.Hash{0}, Tokens: []uint32{5}}
	for i := range maxOrphans + 100 {
		e.Hashes[0] = uint64(i + 2)
		b.Stored(At{}, e, 1)
	}
	b.pull()
	if n := len(b.Hashes(0)); n != maxOrphans {
		t.Errorf("%d remembered, want %d", n, maxOrphans)
	}
	for i := range maxOrphans + 100 {
		b.Removed(At{}, &kvevents.Removed{Hashes: []kvevents.Hash{uint64(i + 2)}, Group: -1})
	}
	b.pull()
	if b.Partial(0) || len(b.Hashes(0)) != 0 {
		t.Errorf("%d are left", len(b.Hashes(0)))
	}
}

// TestRemovedInTheMiddle hides what comes after a gap until the gap is closed.
func TestRemovedInTheMiddle(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4, 5)
	b.store(0, p, 0, 5)
	b.store(1, p, 0, 5)
	b.remove(0, p, 2)
	b.runs(p, 2, 5)
	if b.Blocks(0) != 4 {
		t.Errorf("%d blocks", b.Blocks(0))
	}
	b.store(0, p, 2, 3)
	b.runs(p, 5, 5)
	b.remove(0, p, 0)
	b.runs(p, 0, 5)
	b.store(0, p, 0, 1)
	b.runs(p, 5, 5)
	b.noted(noted{})
}

func TestRemovedUnknown(t *testing.T) {
	b := newBench(t)
	p := of(1, 2)
	b.remove(0, p, 0)
	b.store(0, p, 0, 1)
	b.remove(0, p, 1)
	b.remove(1, p, 0)
	e := p.removed(0, 0)
	e.Group = 3
	b.Removed(At{}, e) // of a group that is not followed
	b.Removed(At{}, &kvevents.Removed{Hashes: e.Hashes, Medium: kvevents.OtherMedium, Group: -1})
	b.Removed(At{}, &kvevents.Removed{Hashes: e.Hashes, Medium: kvevents.CPU, Group: -1})
	b.runs(p, 1, 0)
	b.noted(noted{})
}

func TestClearedAndDropped(t *testing.T) {
	p, q := of(1, 2, 3), of(1, 2, 9)
	for name, end := range map[string]func(*bench){
		"cleared": func(b *bench) { b.Cleared(At{0, 0}) },
		"reset":   func(b *bench) { b.Reset(At{0, 0}) },
		"dropped": func(b *bench) { b.Drop(0) },
	} {
		b := newBench(t)
		b.store(0, p, 0, 3)
		b.store(0, q, 2, 3)
		b.store(1, p, 0, 3)
		b.runs(p, 3, 3)
		end(b)
		b.runs(p, 0, 3)
		b.runs(q, 0, 2)
		if b.Blocks(0) != 0 || b.Blocks(1) != 3 {
			t.Errorf("%s: %d and %d blocks", name, b.Blocks(0), b.Blocks(1))
		}
		b.store(0, p, 0, 2)
		b.runs(p, 2, 3)
		end(b)
		b.Drop(1)
		b.Drop(7)
		b.runs(p, 0, 0)
		if len(b.records) != 0 {
			t.Errorf("%s: %d records are left", name, len(b.records))
		}
	}
}

// TestRanks has one replica with several engines: what one of them has is there.
func TestRanks(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4)
	b.Stored(At{0, 0}, p.stored(10, 0, 2), 1)
	b.Stored(At{0, 1}, p.stored(20, 0, 4), 1)
	b.Stored(At{1, -1}, p.stored(30, 0, 1), 1)
	b.runs(p, 4, 1)
	if n, _ := b.node(p.keys()[0]); len(n.Held) != 2 {
		t.Errorf("held %+v", n.Held)
	}
	b.Removed(At{0, 1}, p.removed(20, 1)) // rank 0 has it
	b.runs(p, 4)
	b.Cleared(At{0, 1})
	b.runs(p, 2)
	b.Reset(At{0, 0})
	b.runs(p, 0, 1)
	b.Stored(At{0, 1}, p.stored(20, 0, 1), 2)
	b.Drop(0)
	b.runs(p, 0, 1)
	b.noted(noted{})
}

// TestRanksBounded has more engines than there can be.
func TestRanksBounded(t *testing.T) {
	b := newBench(t)
	p := of(1)
	for i := range maxRanks + 5 {
		b.Stored(At{0, i}, p.stored(uint64(i), 0, 1), 1)
	}
	b.runs(p, 1)
	if b.Blocks(0) != maxRanks {
		t.Errorf("%d blocks", b.Blocks(0))
	}
	b.Reset(At{0, 9})
	b.Stored(At{1, 0}, p.stored(1, 0, 1), 1)
	b.runs(p, 1, 1)
	b.Drop(0)
	b.runs(p, 0, 1)
}

// TestTiers puts blocks into lower tiers, by tokens and by name alone.
func TestTiers(t *testing.T) {
	p := prompt{space{salt: "tenant-7"}, []int{1, 2, 3, 4}}
	b := newBench(t)
	any := func(gpu, want int) {
		t.Helper()
		b.pull()
		if g, a := b.run(0, p.keys()); g != gpu || a != want {
			t.Errorf("%d blocks on the GPU, %d in all; want %d, %d", g, a, gpu, want)
		}
	}
	in := func(m kvevents.Medium, from, to int, change func(e *kvevents.Stored)) {
		e := p.stored(0, from, to)
		e.Medium = m
		if change != nil {
			change(e)
		}
		b.Stored(At{}, e, 1)
	}
	out := func(m kvevents.Medium, blocks ...int) {
		e := p.removed(0, blocks...)
		e.Medium = m
		b.Removed(At{}, e)
	}
	b.store(0, p, 0, 3)
	byName := func(e *kvevents.Stored) {
		e.Hashes, e.Tokens, e.BlockSize, e.HasParent, e.Extra, e.Spec = e.Hashes[:1], nil, 0, false, nil, nil
	}
	in(kvevents.CPU, 0, 1, byName)
	in(kvevents.CPU, 1, 2, byName)
	in(kvevents.CPU, 3, 4, byName) // nobody knows what that is
	any(3, 3)
	out(kvevents.GPU, 2, 1)
	any(1, 2)
	in(kvevents.Disk, 1, 4, func(e *kvevents.Stored) { e.Extra = nil })
	any(1, 4)
	out(kvevents.GPU, 0)
	any(0, 4)
	out(kvevents.CPU, 1) // the disk has it
	any(0, 4)
	out(kvevents.Disk, 1)
	any(0, 1)
	in(kvevents.CPU, 0, 4, func(e *kvevents.Stored) { e.Extra = nil }) // the salt is not told again
	any(0, 4)
	in(kvevents.OtherMedium, 0, 4, nil)
	any(0, 4)
	in(kvevents.CPU, 0, 4, func(e *kvevents.Stored) { e.BlockSize = 2 * size; e.Hashes = e.Hashes[:2]; e.Extra = nil })
	in(kvevents.CPU, 3, 4, func(e *kvevents.Stored) { e.Parent = 99; e.Hashes[0] = 98 })
	any(0, 4)
	b.noted(noted{kvevents.BadBlockSize: 1, kvevents.UnknownParent: 1})
	if b.Blocks(0) != 0 || len(b.Keys(0)) != 0 {
		t.Errorf("%d blocks on the GPU", b.Blocks(0))
	}
	b.Cleared(At{})
	any(0, 0)
}

// TestTierOfOrphan gives a place to a block that a lower tier has as well.
func TestTierOfOrphan(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3)
	b.store(0, p, 1, 3)
	cpu := p.stored(0, 2, 3)
	cpu.Medium = kvevents.CPU
	b.Stored(At{}, cpu, 1)
	cpu = p.stored(0, 0, 3)
	cpu.Medium = kvevents.CPU
	b.Stored(At{}, cpu, 2)
	b.pull()
	if g, a := b.run(0, p.keys()); g != 0 || a != 3 {
		t.Errorf("%d blocks on the GPU, %d in all; want 0, 3", g, a)
	}
	if b.Blocks(0) != 2 || b.Partial(0) {
		t.Errorf("%d blocks, partial %v", b.Blocks(0), b.Partial(0))
	}
}

// TestRemote has a store shared over the network beside the engine's own.
func TestRemote(t *testing.T) {
	b := newBench(t)
	p := of(1)
	b.store(0, p, 0, 1)
	gpu := p.stored(0, 0, 1) // on somebody else's
	gpu.Remote = true
	b.Stored(At{}, gpu, 1)
	b.pull()
	if n := b.Hashes(0)[p.hash(0, 0)]; n != 1 {
		t.Errorf("%d copies", n)
	}
	for _, far := range []bool{false, true} {
		e := p.stored(0, 0, 1)
		e.Medium, e.Remote = kvevents.CPU, far
		b.Stored(At{}, e, 1)
	}
	b.remove(0, p, 0)
	e := p.removed(0, 0)
	for i, far := range []bool{true, false} {
		e.Medium, e.Remote = kvevents.CPU, far
		b.Removed(At{}, e)
		b.pull()
		if _, any := b.run(0, p.keys()); any != 1-i {
			t.Errorf("after %d removals %d blocks", i+1, any)
		}
	}
}

func TestNotFollowed(t *testing.T) {
	p := of(1, 2, 3)
	for _, c := range []struct {
		name   string
		change func(e *kvevents.Stored)
		want   noted
	}{
		{"mla", func(e *kvevents.Stored) { e.Spec = []byte("mla_attention") }, noted{}},
		{"no kind", func(e *kvevents.Stored) { e.Spec = nil }, noted{}},
		{"no group", func(e *kvevents.Stored) { e.Group = -1 }, noted{}},
		{"window", func(e *kvevents.Stored) { e.Spec = []byte("sliding_window") }, noted{kvevents.SparseGroup: 1}},
		{"state", func(e *kvevents.Stored) { e.Spec = []byte("mamba") }, noted{kvevents.SparseGroup: 1}},
		{"another group", func(e *kvevents.Stored) { e.Group = 1 }, noted{kvevents.SparseGroup: 1}},
		{"too few tokens", func(e *kvevents.Stored) { e.Tokens = e.Tokens[:7] }, noted{kvevents.Misaligned: 1}},
		{"no tokens", func(e *kvevents.Stored) { e.Tokens = nil }, noted{kvevents.Misaligned: 1}},
		{"too many tokens", func(e *kvevents.Stored) { e.Hashes = e.Hashes[:1] }, noted{kvevents.Misaligned: 1}},
		{"size 0", func(e *kvevents.Stored) { e.BlockSize = 0 }, noted{kvevents.BadBlockSize: 1}},
		{"negative size", func(e *kvevents.Stored) { e.BlockSize = math.MinInt }, noted{kvevents.BadBlockSize: 1}},
		{"large size", func(e *kvevents.Stored) { e.BlockSize = kvindex.MaxBlockSize + 1 }, noted{kvevents.BadBlockSize: 1}},
		{"huge size", func(e *kvevents.Stored) { e.BlockSize = math.MaxInt }, noted{kvevents.BadBlockSize: 1}},
		{"part of a block", func(e *kvevents.Stored) { e.BlockSize, e.Hashes, e.Tokens = 2, e.Hashes[:1], e.Tokens[:2] }, noted{kvevents.BadBlockSize: 1}},
		{"no hashes", func(e *kvevents.Stored) { e.Hashes, e.Tokens = nil, nil }, noted{}},
		{"medium", func(e *kvevents.Stored) { e.Medium = kvevents.OtherMedium }, noted{}},
	} {
		b := newBench(t)
		b.store(0, p, 0, 1)
		e := p.stored(0, 1, 3)
		c.change(e)
		b.Stored(At{}, e, 9)
		followed := len(c.want) == 0 && len(e.Hashes) > 0 && e.Medium == kvevents.GPU
		want := 1
		if followed {
			want = 3
		}
		b.pull()
		if got, _ := b.run(0, p.keys()); got != want || !maps.Equal(b.anomalies, c.want) {
			t.Errorf("%s: %d blocks, want %d; %v", c.name, got, want, b.anomalies)
		}
	}
}

// TestBlockSizes has replicas of unlike block sizes in a pool, and an engine
// whose first block was not full.
func TestBlockSizes(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4)
	b.store(0, p, 0, 4)
	twice := &kvevents.Stored{BlockSize: 2 * size, Hashes: []kvevents.Hash{1, 2}, Tokens: p.stored(0, 0, 4).Tokens, Group: -1}
	b.Stored(At{1, 0}, twice, 1)
	b.runs(p, 4, 0)
	var c kvindex.Chain
	c.Reset(kvindex.Root("pool", nil, 0), 2*size)
	c.Add(twice.Tokens)
	for slot, want := range []int{0, 2} {
		if got, _ := b.run(uint16(slot), c.Keys()); got != want {
			t.Errorf("slot %d has %d large blocks, want %d", slot, got, want)
		}
	}
	if b.BlockSize(0) != size || b.BlockSize(1) != 2*size || b.BlockSize(2) != 0 {
		t.Errorf("block sizes %d, %d, %d", b.BlockSize(0), b.BlockSize(1), b.BlockSize(2))
	}
	part := &kvevents.Stored{BlockSize: 2, Hashes: []kvevents.Hash{77}, Tokens: tokens(1)[:2], Group: 0}
	b.Stored(At{2, 0}, part, 1)
	b.store(2, p, 0, 2)
	b.runs(p, 4, 0, 2)
	if b.Blocks(2) != 2 {
		t.Errorf("%d blocks", b.Blocks(2))
	}
	b.noted(noted{})
}

func TestCapacity(t *testing.T) {
	b := newBench(t)
	p := of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	b.SetCapacity(0, 8)
	b.store(0, p, 0, 10)
	b.runs(p, 10)
	b.noted(noted{})
	b.store(0, p, 10, 11)
	b.runs(p, 0)
	b.noted(noted{kvevents.OverCapacity: 1})
	if !b.Partial(0) || b.Blocks(0) != 0 {
		t.Errorf("partial %v, %d blocks", b.Partial(0), b.Blocks(0))
	}
	b.store(0, p, 0, 4)
	b.runs(p, 4)
	if !b.Partial(0) {
		t.Error("complete, but what it had before is not known")
	}
	b.Cleared(At{})
	if b.Partial(0) {
		t.Error("partial, but its cache was emptied")
	}
	b.SetCapacity(0, 0)
	b.store(0, p, 0, 11)
	b.SetCapacity(0, math.MaxInt)
	b.store(0, p, 10, 11)
	b.runs(p, 11)
	b.SetCapacity(1, 2)
	b.store(1, p, 5, 10) // orphans take room too
	b.noted(noted{kvevents.OverCapacity: 2, kvevents.UnknownParent: 1})
}

// TestHashOfOthers has an engine use a hash for other tokens than before.
func TestHashOfOthers(t *testing.T) {
	b := newBench(t)
	p, q := of(1, 2, 3), of(7, 8)
	b.store(0, p, 0, 3)
	e := q.stored(0, 0, 2)
	e.Hashes[1] = p.hash(0, 1)
	b.Stored(At{}, e, 9)
	b.runs(q, 2)
	b.runs(p, 1)
	b.Removed(At{}, &kvevents.Removed{Hashes: e.Hashes[1:], Group: 0})
	b.runs(q, 1)
	b.runs(p, 1)
}

// TestAliases has an engine name a block by two hashes, as one does for an
// adapter that was loaded from another path.
func TestAliases(t *testing.T) {
	b := newBench(t)
	p := prompt{space{lora: "sql"}, []int{1, 2}}
	b.Stored(At{}, p.stored(0, 0, 2), 1)
	b.Stored(At{}, p.stored(5, 0, 2), 2)
	b.runs(p, 2)
	if b.Blocks(0) != 2 || len(b.Hashes(0)) != 4 {
		t.Errorf("%d blocks, %d hashes", b.Blocks(0), len(b.Hashes(0)))
	}
	b.Removed(At{}, p.removed(0, 0, 1))
	b.runs(p, 2)
	b.Removed(At{}, p.removed(5, 1))
	b.runs(p, 1)
	b.Removed(At{}, p.removed(5, 0))
	b.runs(p, 0)
	if b.Blocks(0) != 0 {
		t.Errorf("%d blocks", b.Blocks(0))
	}
}

// TestKeys compares what can be listed of a replica.
func TestKeys(t *testing.T) {
	b := newBench(t)
	p, q := of(1, 2, 3), of(4)
	b.store(2, p, 0, 3)
	b.store(2, q, 0, 1)
	b.store(2, q, 0, 1)
	b.Stored(At{2, 1}, p.stored(8, 0, 1), 1)
	want := slices.Concat(p.keys(), q.keys())
	slices.Sort(want)
	if !slices.Equal(b.Keys(2), want) || b.Blocks(2) != 5 {
		t.Errorf("keys %x, want %x; %d blocks", b.Keys(2), want, b.Blocks(2))
	}
	hashes := map[kvevents.Hash]int{p.hash(2, 0): 1, p.hash(2, 1): 1, p.hash(2, 2): 1, q.hash(2, 0): 2, p.hash(8, 0): 1}
	if !maps.Equal(b.Hashes(2), hashes) {
		t.Errorf("hashes %v, want %v", b.Hashes(2), hashes)
	}
	if len(b.Keys(0)) != 0 || b.Blocks(0) != 0 || b.Partial(0) || b.Tagged(0) {
		t.Error("something is known of a slot without events")
	}
}
