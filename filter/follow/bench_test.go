package follow

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// A delta of 10,000 blocks and a whole of 240,000, in records of about 8, from
// the answer of control to shared data.
func BenchmarkIntake(b *testing.B) {
	for _, blocks := range []int{10_000, 240_000} {
		pages := pagesOf(blocks / 8)
		b.Run(fmt.Sprint(blocks), func(b *testing.B) {
			m := shared.NewMem()
			f := New(m.View(), dice(1), nil)
			slices := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, page := range pages {
					f.Next(0)
					f.Answer(0, 200, page)
					for slices++; f.Pending(); slices++ {
						f.Work(0)
					}
				}
				if f.Err() != nil || f.Generation() != 1 {
					b.Fatal(f.Err())
				}
			}
			b.ReportMetric(float64(slices)/float64(b.N), "slices/op")
			b.ReportMetric(float64(m.Gets)/float64(b.N), "gets/op")
			b.ReportMetric(float64(m.Sets)/float64(b.N), "sets/op")
		})
	}
}

// pagesOf is a whole of n records in the order in which control sends them.
func pagesOf(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]state.Record, n)
	for i := range list {
		list[i] = state.Record{ID: r.Uint64(), Payload: bytes.Repeat([]byte{7}, 48+r.IntN(16))}
	}
	slices.SortFunc(list, func(a, b state.Record) int { return cmp.Compare(bits.Reverse64(a.ID), bits.Reverse64(b.ID)) })
	return state.Pages(nil, snapshot(1, "10.0.0.1:8000"), state.MaxPage, state.Patch{Pool: "default", Records: list})
}
