package state

import "testing"

func BenchmarkAppendSnapshot8(b *testing.B) {
	s := fleet(8)
	buf := AppendSnapshot(nil, s)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendSnapshot(buf[:0], s)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{8, 256} {
		blob := AppendSnapshot(nil, fleet(n))
		b.Run(map[int]string{8: "8", 256: "256"}[n], func(b *testing.B) {
			var v View
			b.SetBytes(int64(len(blob)))
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Load(blob); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A delta in which each of 8 replicas has a new load.
func BenchmarkApplyDelta8(b *testing.B) {
	a, next := fleet(8), fleet(8)
	next.Generation++
	for i := range next.Pools[0].Replicas {
		next.Pools[0].Replicas[i].Load.Waiting++
	}
	blob, page := AppendSnapshot(nil, a), Pages(a, next, MaxPage)[0]
	var v View
	if err := v.Load(blob); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		v.held[v.now].Generation = a.Generation
		if _, err := v.Apply(page); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPages256(b *testing.B) {
	a, next := fleet(256), fleet(256)
	next.Generation++
	for i := range next.Pools[0].Replicas {
		next.Pools[0].Replicas[i].Load.Waiting++
	}
	b.ReportAllocs()
	for b.Loop() {
		Pages(a, next, MaxPage)
	}
}
