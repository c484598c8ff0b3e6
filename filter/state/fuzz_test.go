package state

import (
	"bytes"
	"maps"
	"testing"
)

func seeds(f *testing.F) {
	for seed := range uint64(6) {
		g := newGen(seed)
		a := g.snapshot()
		b := g.after(a)
		f.Add(AppendSnapshot(nil, a), Pages(a, b, MaxPage)[0])
		pages := Pages(nil, a, 200)
		f.Add(pages[0], pages[len(pages)-1])
		now := map[string]string{}
		f.Add(Pages(nil, a, MaxPage, g.patches(a, 3, now)...)[0], Pages(a, b, MaxPage, g.patches(b, 3, now)...)[0])
	}
	f.Add([]byte("WLS\x01"), []byte("<html>"))
}

// Whatever bytes come: no panic, the old state and all records are kept on an
// error, and what was understood is written and read back the same.
func FuzzView(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var sink kept
		v := View{Records: &sink}
		for _, page := range [][]byte{first, second} {
			before, records := AppendSnapshot(nil, v.Snapshot()), maps.Clone(sink.records)
			res, err := v.Apply(page)
			if err != nil && !maps.Equal(records, sink.records) {
				t.Fatal("records of a bad page were handed over")
			}
			if err != nil || res == Partial {
				if !bytes.Equal(before, AppendSnapshot(nil, v.Snapshot())) {
					t.Fatal("state changed without Complete")
				}
				continue
			}
			again(t, v.Snapshot())
		}
	})
}

func again(t *testing.T, s *Snapshot) {
	var copy Snapshot
	if err := DecodeSnapshot(AppendSnapshot(nil, s), &copy); err != nil {
		t.Fatalf("own bytes: %v", err)
	}
	if !Equal(s, &copy) {
		t.Fatalf("read back\n%+v\nwant\n%+v", copy, s)
	}
}

// The other way round: any two states, made from random numbers, any size of
// page.
func FuzzDelta(f *testing.F) {
	f.Add(uint64(1), uint16(150))
	f.Add(uint64(77), uint16(4096))
	f.Fuzz(func(t *testing.T, seed uint64, max uint16) {
		g := newGen(seed)
		a := g.snapshot()
		b := g.after(a)
		var sink kept
		v := View{Records: &sink}
		want := map[string]string{}
		apply(t, &v, Pages(nil, a, 150+int(max), g.patches(a, 5, want)...))
		apply(t, &v, Pages(a, b, 150+int(max), g.patches(b, 5, want)...))
		if !Equal(v.Snapshot(), b) || !maps.Equal(sink.records, want) {
			t.Fatalf("got\n%+v\n%v\nwant\n%+v\n%v", v.Snapshot(), sink.records, b, want)
		}
	})
}
