package kvindex

import (
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

func benchmarkChain(b *testing.B, blockSize, piece int) {
	tokens := somePrompt(32_000, 1)
	var c Chain
	b.SetBytes(int64(4 * len(tokens)))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(1, blockSize)
		for rest := tokens; len(rest) > 0; {
			n := min(piece, len(rest))
			c.Add(rest[:n])
			rest = rest[n:]
		}
	}
}

func BenchmarkChain16(b *testing.B)       { benchmarkChain(b, 16, 32_000) }
func BenchmarkChain32(b *testing.B)       { benchmarkChain(b, 32, 32_000) }
func BenchmarkChain16Pieces(b *testing.B) { benchmarkChain(b, 16, 100) }

func BenchmarkChainToken(b *testing.B) {
	tokens := somePrompt(32_000, 1)
	var c Chain
	b.SetBytes(int64(4 * len(tokens)))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(1, 16)
		for _, t := range tokens {
			c.Token(t)
		}
	}
}

// BenchmarkApply10000Blocks applies what the conversations of 8 replicas bring with 10,000
// new blocks, there and back.
func BenchmarkApply10000Blocks(b *testing.B) {
	f := newTraffic(2, 8)
	for f.held() < 239_000 {
		f.turn(30_000)
	}
	first, second := deltas(f, 10_000)
	there, back := listChanges(first, second), listChanges(second, first)
	w := NewWriter(shared.NewMem().View(), Options{})
	fill(b, w, first)
	b.ReportMetric(float64(len(there)), "records")
	b.ReportAllocs()
	for b.Loop() {
		for _, changes := range [][]change{there, back} {
			for _, c := range changes {
				w.Queue(c.id, c.payload)
			}
			applyAll(b, w)
		}
	}
}

// benchmarkLookUp looks up 2,000 blocks in an index that is otherwise full of
// conversations.
func benchmarkLookUp(b *testing.B, step int64, lookUp func(r *Reader, keys []uint64, text uint64, runs []Run) bool) {
	f := newTraffic(3, 8)
	for f.held() < 100_000 {
		f.turn(30_000)
	}
	records := f.records()
	m, keys, text := longPrompt(5, 8)
	for id, payload := range m.records() {
		records[id] = payload
	}
	mem := shared.NewMem()
	fill(b, NewWriter(mem.View(), Options{}), records)
	r := NewReader(mem.View(), Options{})
	runs := make([]Run, 8)
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += step
		if !r.Begin(now) || !lookUp(r, keys, text, runs) || runs[7].GPU != 2000 {
			b.Fatalf("runs %v", runs)
		}
	}
}

func byKeys(r *Reader, keys []uint64, _ uint64, runs []Run) bool { return r.Lookup(keys, runs) == nil }

func byText(r *Reader, _ []uint64, text uint64, runs []Run) bool {
	_, _, ok := r.LookupText(text, 2000, runs)
	return ok
}

func BenchmarkLookup2000(b *testing.B)         { benchmarkLookUp(b, keptFor, byKeys) }
func BenchmarkLookup2000Kept(b *testing.B)     { benchmarkLookUp(b, 0, byKeys) }
func BenchmarkLookupText2000(b *testing.B)     { benchmarkLookUp(b, keptFor, byText) }
func BenchmarkLookupText2000Kept(b *testing.B) { benchmarkLookUp(b, 0, byText) }

func BenchmarkBorder(b *testing.B) {
	l := NewLearned(shared.NewMem().View(), Options{})
	for i := range uint64(40) {
		note(b, l, 5+4096*i, Border{Text: i})
	}
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		l.Border(5 + 4096*(i%40))
		note(b, l, 5+4096*(i%40), Border{Text: i})
	}
}
