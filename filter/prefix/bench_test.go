package prefix

import (
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

func benchmarkChain(b *testing.B, size, piece int) {
	data := sequence(size, 1)
	var c Chain
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset()
		for rest := data; len(rest) > 0; {
			n := min(piece, len(rest))
			c.Text(rest[:n])
			rest = rest[n:]
		}
		c.Border()
	}
}

func BenchmarkChain2KB(b *testing.B)        { benchmarkChain(b, 2<<10, 2<<10) }
func BenchmarkChain220KB(b *testing.B)      { benchmarkChain(b, 220<<10, 64<<10) }
func BenchmarkChain220KBLines(b *testing.B) { benchmarkChain(b, 220<<10, 60) }

// benchmarkIndex measures on an index in which the prompt's neighbours fill
// the bucket of their common beginning.
func benchmarkIndex(b *testing.B, size int, write bool) {
	x := New(shared.NewMem().View(), Options{})
	replicas := make([]Replica, 8)
	for i := range replicas {
		replicas[i] = Replica{Key: uint32(i), Capacity: testCapacity}
	}
	system := sequence(size/2, 1)
	chains := make([]*Chain, 200)
	for i := range chains {
		chains[i] = chainOf(system, sequence(size/2, uint64(i)+2))
		if err := x.Record(chains[i], 5, replicas[i%8]); err != nil {
			b.Fatal(err)
		}
	}
	matched := make([]uint32, len(replicas))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c, r := chains[i%len(chains)], &replicas[i%8]
		if err := x.Lookup(c, 5, replicas, matched, 0); err != nil {
			b.Fatal(err)
		}
		if write {
			r.Clock += testCapacity / 8
			if err := x.Record(c, 5, *r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkIndexLookup2KB(b *testing.B)   { benchmarkIndex(b, 2<<10, false) }
func BenchmarkIndexLookup220KB(b *testing.B) { benchmarkIndex(b, 220<<10, false) }
func BenchmarkIndexRecord2KB(b *testing.B)   { benchmarkIndex(b, 2<<10, true) }
func BenchmarkIndexRecord220KB(b *testing.B) { benchmarkIndex(b, 220<<10, true) }
