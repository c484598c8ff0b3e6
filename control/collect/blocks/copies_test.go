package blocks

import "testing"

// TestCopiesAndReports stores what is there already and then counts how often
// each block has to be removed until it is gone.
func TestCopiesAndReports(t *testing.T) {
	p := of(1, 2, 3)
	for _, c := range []struct {
		name string
		play func(b *bench)
		want [3]int // removals of each block
	}{
		{"once", func(b *bench) {
			b.store(0, p, 0, 3)
		}, [3]int{1, 1, 1}},
		{"the last block of a prompt that was known as a whole is computed again", func(b *bench) {
			b.store(0, p, 0, 3)
			b.store(0, p, 2, 3)
			b.store(0, p, 2, 3)
		}, [3]int{1, 1, 3}},
		{"a report", func(b *bench) {
			b.store(0, p, 0, 3)
			b.store(0, p, 0, 3)
			b.store(0, p, 0, 2)
			b.store(0, p, 0, 3)
		}, [3]int{1, 1, 1}},
		{"a prompt of one block is never found", func(b *bench) {
			b.store(0, p, 0, 1)
			b.store(0, p, 0, 1)
			b.store(0, p, 1, 3)
		}, [3]int{2, 1, 1}},
		{"a report of one block, by an engine that is known to report", func(b *bench) {
			b.store(0, p, 0, 3)
			b.store(0, p, 0, 3)
			b.store(0, p, 0, 1)
		}, [3]int{1, 1, 1}},
		{"two requests that began in one step", func(b *bench) {
			b.Stored(At{}, p.stored(0, 0, 3), 5)
			b.Stored(At{}, p.stored(0, 0, 3), 5)
		}, [3]int{2, 2, 2}},
		{"two reports in one step", func(b *bench) {
			b.store(0, p, 0, 3)
			b.Stored(At{}, p.stored(0, 0, 3), 5)
			b.Stored(At{}, p.stored(0, 0, 3), 5)
		}, [3]int{1, 1, 1}},
		{"speculative decoding finds one block less, here none", func(b *bench) {
			b.store(0, p, 0, 1)
			b.store(0, p, 0, 3)
		}, [3]int{2, 1, 1}},
		{"another engine", func(b *bench) {
			b.store(0, p, 0, 3)
			b.store(1, p, 0, 3)
			b.Stored(At{0, 1}, p.stored(9, 0, 3), 5)
			b.Drop(1)
			b.Reset(At{0, 1})
		}, [3]int{1, 1, 1}},
		{"an engine that began anew is not known to report", func(b *bench) {
			b.store(0, p, 0, 3)
			b.store(0, p, 0, 3)
			b.Reset(At{})
			b.store(0, p, 0, 1)
			b.store(0, p, 0, 1)
			b.store(0, p, 1, 3)
		}, [3]int{2, 1, 1}},
	} {
		b := newBench(t)
		c.play(b)
		b.runs(p, 3)
		for i := 2; i >= 0; i-- {
			for n := 1; n <= c.want[i]; n++ {
				b.runs(p, i+1)
				b.remove(0, p, i)
			}
			b.runs(p, i)
		}
		if t.Failed() {
			t.Fatalf("in %q", c.name)
		}
		b.noted(noted{})
	}
}

// TestManyCopies goes beyond what can be counted.
func TestManyCopies(t *testing.T) {
	b := newBench(t)
	p := of(1)
	e := p.stored(0, 0, 1)
	for range maxCopies + 10 {
		b.Stored(At{}, e, 1)
	}
	b.runs(p, 1)
	for range maxCopies - 1 {
		b.remove(0, p, 0)
	}
	b.runs(p, 1)
	b.remove(0, p, 0)
	b.runs(p, 0)
}
