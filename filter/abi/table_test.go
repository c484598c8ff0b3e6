package abi

import (
	"math/rand/v2"
	"testing"
)

type numbered struct {
	BaseStream
	n uint32
}

func TestTableFindsOnlyWhatLives(t *testing.T) {
	var tab table
	if tab.find(1) != nil {
		t.Error("an empty table found something")
	}
	tab.add(0)
	if tab.used != 0 || tab.find(0) != nil {
		t.Error("id 0 was taken in")
	}
	tab.add(7).stream = &numbered{n: 1}
	tab.add(7).broken = true
	if e := tab.find(7); tab.used != 1 || e == nil || e.stream != nil || !e.broken {
		t.Errorf("the second of two streams with one id did not start afresh: %d used, %v", tab.used, e)
	}
}

// TestTableAgainstMap plays the same random life in a table and in a Go map, with
// ids that collide a lot.
func TestTableAgainstMap(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	var tab table
	want := map[uint32]Stream{}
	for range 20_000 {
		id := 1 + dice.Uint32N(40)*dice.Uint32N(64)
		if dice.IntN(2) == 0 {
			s := &numbered{n: id}
			tab.add(id).stream = s
			want[id] = s
		} else if e := tab.find(id); e != nil {
			tab.remove(e)
			delete(want, id)
		}
	}
	if tab.used != len(want) {
		t.Errorf("%d used, want %d", tab.used, len(want))
	}
	for id := range uint32(40 * 64) {
		e := tab.find(id)
		if s, ok := want[id]; ok != (e != nil) || ok && e.stream != s {
			t.Fatalf("id %d: got %v, want %v", id, e, s)
		}
	}
}

func TestTableSteadyStateDoesNotAllocate(t *testing.T) {
	var tab table
	s := &numbered{}
	const alive = 200
	next := uint32(1)
	for ; next <= alive; next++ {
		tab.add(next).stream = s
	}
	n := testing.AllocsPerRun(1000, func() {
		tab.remove(tab.find(next - alive))
		tab.add(next).stream = s
		next++
	})
	if n != 0 || tab.used != alive {
		t.Errorf("%v allocations a stream, %d alive, want 0 and %d", n, tab.used, alive)
	}
}

func BenchmarkTableStream(b *testing.B) {
	var tab table
	s := &numbered{}
	b.ReportAllocs()
	for i := range b.N {
		id := uint32(i + 1)
		tab.add(id).stream = s
		tab.remove(tab.find(id))
	}
}
