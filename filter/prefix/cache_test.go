package prefix

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

func lookupAt(t *testing.T, x *Index, c *Chain, now int64) []uint32 {
	t.Helper()
	matched := make([]uint32, len(two))
	if err := x.Lookup(c, 5, two, matched, now); err != nil {
		t.Fatal(err)
	}
	return matched
}

// calls is how many calls of the store f makes.
func calls(mem *shared.Mem, f func()) (gets, sets int) {
	gets, sets = mem.Gets, mem.Sets
	f()
	return mem.Gets - gets, mem.Sets - sets
}

func TestSteadyStateReadsNothing(t *testing.T) {
	for _, size := range []int{500, 2000, 32_000, 2 << 20} {
		mem := shared.NewMem()
		x := New(mem.View(), Options{})
		doc := sequence(size+size/20, 1)
		c, next := chainOf(doc[:size]), chainOf(doc[:size], doc[size:])
		lookupAt(t, x, c, 0)
		record(t, x, c, 5, two[0])
		gets, sets := calls(mem, func() {
			for now := range int64(1000) {
				lookupAt(t, x, c, now)
				record(t, x, c, 5, two[0])
			}
		})
		if gets != 0 || sets != 0 {
			t.Errorf("%d bytes again and again: %d reads, %d writes", size, gets, sets)
		}
		if size < 16<<10 { // a twentieth more is more than the ladder is exact to
			continue
		}
		if gets, sets := calls(mem, func() { lookupAt(t, x, next, 1000) }); gets+sets != 0 {
			t.Errorf("%d bytes continued: %d reads, %d writes", size, gets, sets)
		}
	}
}

// A conversation that one worker has for itself reads each bucket once: the
// numbers of its own writes are guessed.
func TestContinuingReadsOnlyNewBorders(t *testing.T) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{})
	doc := sequence(8000, 1)
	for n := 3000; n < len(doc); n += 500 {
		c := chainOf(doc[:n-500], doc[n-500:n])
		gets, sets := calls(mem, func() {
			lookupAt(t, x, c, 0)
			record(t, x, c, 5, two[0])
		})
		if n > 3000 && (gets > 1 || sets != 2) {
			t.Errorf("turn of %d bytes: %d reads, %d writes", n, gets, sets)
		}
	}
	if n := x.Stats().Conflicts; n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// When another worker's entry is seen: after a second at the latest, after 20
// ms unless the prompt is known to be elsewhere.
func TestStaleness(t *testing.T) {
	mem := shared.NewMem()
	a, b := New(mem.View(), Options{}), New(mem.View(), Options{})
	f := func(what string, now int64, c *Chain, want0, want1 uint32) {
		t.Helper()
		expect(t, what, lookupAt(t, a, c, now), want0, want1)
	}
	for i, size := range []int{500, 6000} {
		doc := sequence(size, uint64(i))
		known, fresh := chainOf(doc), chainOf(doc[:size/2], sequence(size/2, 9))
		half := rung(size / 2)
		if size < 1024 {
			half = 0
		}
		lookupAt(t, a, known, 100)
		record(t, a, known, 5, two[0])
		f("unknown", 100, fresh, half, 0)
		f("known", 100, known, rung(size), 0)
		record(t, b, known, 5, two[1])
		record(t, b, fresh, 5, two[1])
		f("unknown, 20 ms later", 120, fresh, half, 0)
		f("known, 1 s later", 1100, known, rung(size), 0)
		f("known, more than 1 s later", 1101, known, rung(size), rung(size))
		f("unknown, more than 20 ms later", 1122, fresh, half, rung(size))
		if err := b.Withdraw(known, 5, two[1].Key); err != nil {
			t.Fatal(err)
		}
		f("withdrawn, a clock set back", 50, known, rung(size), half)
	}
}

func TestStaleWritesLoseNothing(t *testing.T) {
	for _, size := range []int{500, 6000} {
		mem := shared.NewMem()
		a, b := New(mem.View(), Options{}), New(mem.View(), Options{})
		c := chainOf(sequence(size, 1))
		record(t, a, c, 5, two[0])
		record(t, b, c, 5, two[1])
		three := Replica{Key: 33, Clock: 100, Capacity: testCapacity}
		record(t, a, c, 5, three)
		got := make([]uint32, 3)
		fresh := New(mem.View(), Options{})
		if err := fresh.Lookup(c, 5, append(two[:2:2], three), got, 0); err != nil {
			t.Fatal(err)
		}
		expect(t, "all three", got, rung(size), rung(size), rung(size))
		if a.Stats().Conflicts == 0 {
			t.Error("no write was out of date, so nothing was shown")
		}
	}
}

// Whatever the order in which workers write one bucket, from old images and
// under guessed numbers, nothing that was recorded is lost.
func TestWorkersLoseNothing(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		mem := shared.NewMem()
		o := Options{Groups: 1, GroupBytes: 64 << 10, Borders: 1, BorderBytes: 64 << 10}
		workers := []*Index{New(mem.View(), o), New(mem.View(), o), New(mem.View(), o)}
		chains := make([]*Chain, 20)
		for i := range chains {
			chains[i] = chainOf(sequence(500+i*100, uint64(i)))
		}
		used := dice.IntN(len(workers)) + 1
		for i := range chains {
			for _, r := range two {
				x := workers[dice.IntN(used)]
				lookupAt(t, x, chains[dice.IntN(len(chains))], int64(i))
				record(t, x, chains[i], 5, r)
			}
		}
		fresh := New(mem.View(), o)
		for i, c := range chains {
			expect(t, "prompt", lookupAt(t, fresh, c, 0), rung(500+i*100), rung(500+i*100))
		}
	}
}

// One wrong guess and no more, until a read shows that one would be right.
func TestGuessingStopsAmongOthers(t *testing.T) {
	mem := shared.NewMem()
	a, other := New(mem.View(), Options{}), mem.View()
	c, r := chainOf(sequence(500, 1)), two[0]
	again := func(disturbed bool) (conflicts uint64) {
		before := a.Stats().Conflicts
		r.Clock += testCapacity / 8
		record(t, a, c, 5, r)
		if disturbed {
			if err := other.Set([]byte("x"), nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		return a.Stats().Conflicts - before
	}
	f := func(disturbed bool, want uint64) {
		t.Helper()
		if got := again(disturbed); got != want {
			t.Errorf("%d conflicts, want %d", got, want)
		}
	}
	f(false, 0)
	f(true, 0) // the number it was given is still what was guessed
	f(true, 0)
	f(true, 1)
	f(true, 0)
	f(false, 0)
	f(false, 0)
}

func TestCacheGivesWayToTheNewest(t *testing.T) {
	c := newCache(groupMagic, cacheBudget/minImages)
	for bucket := range uint32(minImages) {
		c.claim(bucket)
	}
	c.find(0) // used again
	c.claim(minImages)
	for bucket, want := range []bool{true, false, true, true, true} {
		if got := c.find(uint32(bucket)) != nil; got != want {
			t.Errorf("bucket %d: kept %v, want %v", bucket, got, want)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	f := func(o Options, limit int) {
		t.Helper()
		x := New(shared.NewMem().View(), o)
		for i := range uint32(5000) {
			x.groups.claim(i)
			x.borders.claim(i)
		}
		total := 0
		for _, c := range []*cache{&x.groups, &x.borders} {
			for i := range c.images {
				total += len(c.images[i].buf)
			}
		}
		if total > limit {
			t.Errorf("%+v: %d bytes", o, total)
		}
		if n := testing.AllocsPerRun(100, func() { x.groups.claim(uint32(x.groups.uses)) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
	f(Options{}, 512<<10)
	f(Options{GroupBytes: 64 << 10, BorderBytes: 64 << 10}, 768<<10)
}

// failing is a store that no longer answers.
type failing struct {
	shared.Store
	failed bool
}

func (f *failing) Get(key []byte) ([]byte, uint32, error) {
	if f.failed {
		return nil, 0, errBroken
	}
	return f.Store.Get(key)
}

func TestErrorsOfASecondLook(t *testing.T) {
	for _, size := range []int{500, 5000} {
		doc := sequence(size, 1)
		store := &failing{Store: shared.NewMem().View()}
		x := New(store, Options{Groups: 1, Borders: 1})
		record(t, x, chainOf(doc), 5, two[0])
		store.failed = true
		other := chainOf(sequence(size, 2))
		if err := x.Lookup(other, 5, two, make([]uint32, 2), 20); err != nil {
			t.Errorf("%d bytes, from an image: %v", size, err)
		}
		if err := x.Lookup(other, 5, two, make([]uint32, 2), 21); !errors.Is(err, errBroken) {
			t.Errorf("%d bytes, from an old image: %v", size, err)
		}
		x.numbers.off = true // so that a change needs a read
		if err := x.Record(other, 5, two[0]); !errors.Is(err, errBroken) {
			t.Errorf("%d bytes to record: %v", size, err)
		}
		store.failed = false
		record(t, x, other, 5, two[0])
		expect(t, "after errors", lookupAt(t, x, other, 22), rung(size), 0)
		expect(t, "recorded before", lookupAt(t, x, chainOf(doc), 22), rung(size), 0)
	}
}
