package prefix

import (
	"bytes"
	"testing"
)

// chainOf is the chain of messages, each with a border after it.
func chainOf(messages ...[]byte) *Chain {
	c := new(Chain)
	for _, m := range messages {
		c.Text(m)
		c.Border()
	}
	return c
}

func TestLadder(t *testing.T) {
	f := func(rung, blocks int) {
		t.Helper()
		if got := blocksAt(rung); got != blocks {
			t.Errorf("rung %d stands for %d blocks, want %d", rung, got, blocks)
		}
	}
	f(0, 1)
	f(15, 16)
	f(16, 17)
	f(31, 32)
	f(32, 34)
	f(47, 64)
	f(48, 68)
	f(143, 4096)
	f(144, 4352)
	f(maxRungs-1, maxBlocks)
	for r := 1; r < maxRungs; r++ {
		if got := blocksAt(r) - blocksAt(r-1); got != stepAt(r) {
			t.Errorf("rung %d is %d blocks above the one before it, stepAt says %d", r, got, stepAt(r))
		}
		if step, from := stepAt(r), blocksAt(r-1); from > 16 && step > from/16 {
			t.Errorf("rung %d is a step of %d from %d blocks, more than a sixteenth", r, step, from)
		}
	}
}

func TestChainStoresTheLadder(t *testing.T) {
	data := sequence(300*BlockBytes, 7)
	c := chainOf(data)
	var h uint64
	rung := 0
	for n := 1; n <= 300; n++ {
		h = library(data[(n-1)*BlockBytes:n*BlockBytes], h)
		if blocksAt(rung) == n {
			if c.rung[rung] != h {
				t.Fatalf("rung %d is %x, want the hash of %d blocks, %x", rung, c.rung[rung], n, h)
			}
			rung++
		}
	}
	if c.rungs != rung {
		t.Errorf("%d rungs, want %d", c.rungs, rung)
	}
}

func TestChainDoesNotDependOnCuts(t *testing.T) {
	data := sequence(5*BlockBytes+77, 3)
	want := *chainOf(data)
	for _, size := range []int{1, 3, 255, 256, 257, 700} {
		var c Chain
		for rest := data; len(rest) > 0; {
			n := min(size, len(rest))
			c.Text(rest[:n])
			rest = rest[n:]
		}
		c.Border()
		c.tail, want.tail = [BlockBytes]byte{}, [BlockBytes]byte{}
		if c != want {
			t.Errorf("pieces of %d: another chain", size)
		}
	}
	if got := want.Bytes(); got != int64(len(data)) {
		t.Errorf("Bytes %d, want %d", got, len(data))
	}
	if got := want.Blocks(); got != 5 {
		t.Errorf("Blocks %d, want 5", got)
	}
}

func TestChainIsBounded(t *testing.T) {
	var c Chain
	c.blocks, c.rungs, c.wait = maxBlocks-1, maxRungs-1, 0 // as after 64 MB
	c.Text(make([]byte, 3*BlockBytes))
	if c.rungs != maxRungs || c.Blocks() != maxBlocks+2 {
		t.Errorf("%d rungs after %d blocks, want %d", c.rungs, c.Blocks(), maxRungs)
	}
}

func TestReset(t *testing.T) {
	c := chainOf(sequence(9000, 1), sequence(10, 2))
	c.Reset()
	c.Text([]byte("hi"))
	c.Border()
	fresh := chainOf([]byte("hi"))
	if c.end() != fresh.end() || c.RingHash(1) != fresh.RingHash(1) || c.borders != 1 || c.rungs != 0 {
		t.Error("a chain that was reset differs from a fresh one")
	}
}

func TestBorders(t *testing.T) {
	var messages [][]byte
	const n = keptBorders + 2
	for i := range n {
		messages = append(messages, sequence(100*(i+1), uint64(i)))
	}
	c := chainOf(messages...)
	for back := range keptBorders {
		got, ok := c.lastBorder(back)
		want := chainOf(bytes.Join(messages[:n-back], nil)).end()
		if !ok || got != want {
			t.Errorf("border %d from the end: %+v, want %+v", back, got, want)
		}
	}
	if _, ok := c.lastBorder(keptBorders); ok {
		t.Error("a border that was overwritten is still there")
	}
	if _, ok := chainOf(messages[0]).lastBorder(1); ok {
		t.Error("a chain with one border has two")
	}
}

func TestBorderIsNoRung(t *testing.T) {
	c := chainOf(sequence(BlockBytes, 1))
	if b, _ := c.lastBorder(0); b.hash == c.rung[0] {
		t.Error("a border at the end of a block has the block's hash")
	}
}

func TestRingHash(t *testing.T) {
	system, long := sequence(300, 1), sequence(3000, 2)
	same := func(what string, a, b *Chain, want bool) {
		t.Helper()
		if got := a.RingHash(9) == b.RingHash(9); got != want {
			t.Errorf("%s: same place on the ring %v, want %v", what, got, want)
		}
	}
	same("turns of a conversation", chainOf(system, []byte("a")), chainOf(system, []byte("a"), []byte("b"), long), true)
	same("other users of a system prompt", chainOf(system, []byte("a")), chainOf(system, []byte("b")), true)
	same("other system prompts", chainOf(system, []byte("a")), chainOf(long, []byte("a")), false)
	same("same first kilobyte", chainOf(long), chainOf(long[:1500]), true)
	same("one line of system prompt", chainOf(system[:28], long), chainOf(system[:28], long[1:]), false)
	same("short prompts", chainOf([]byte("a")), chainOf([]byte("b")), false)
	if c := chainOf(system); c.RingHash(1) == c.RingHash(2) {
		t.Error("namespaces share a place on the ring")
	}
}

func TestNamespace(t *testing.T) {
	seen := map[Namespace]string{}
	f := func(what string, ns Namespace) {
		t.Helper()
		if other, ok := seen[ns]; ok {
			t.Errorf("%s and %s are one namespace", what, other)
		}
		seen[ns] = what
	}
	a, b := NamespaceOf([]byte("a")), NamespaceOf([]byte("b"))
	f("a", a)
	f("b", b)
	f("a, absent", a.With(0))
	f("a, 1", a.With(1))
	f("b, 1", b.With(1))
	f("a, 1, 2", a.With(1).With(2))
	f("a, 2, 1", a.With(2).With(1))
	f("a, absent, 1", a.With(0).With(1))
	f("a, 1, absent", a.With(1).With(0))
	if a != NamespaceOf([]byte("a")) {
		t.Error("NamespaceOf is not a function of the name")
	}
}

func TestChainMakesNoGarbage(t *testing.T) {
	data := sequence(100_000, 1)
	var c Chain
	if n := testing.AllocsPerRun(10, func() {
		c.Reset()
		c.Text(data)
		c.Border()
		_ = c.RingHash(NamespaceOf(data[:10]).With(3))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
