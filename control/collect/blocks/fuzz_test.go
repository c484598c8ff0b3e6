package blocks

import (
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// FuzzIndex makes events of bytes, as sensible or hostile as they come, and tests
// that the index stays whole and that its records say what it is.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 3, 1, 2, 3, 0, 0x10, 3, 1, 2, 3, 0, 1, 2, 9, 9, 9})
	f.Add([]byte{0, 4, 1, 2, 3, 4, 0, 0, 4, 1, 2, 5, 6, 0, 8, 2, 1, 2, 9, 10, 11, 12})
	f.Add([]byte("0000000000000000000000000000111112222233333AAAABBBBCCCC"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBench(t)
		b.SetCapacity(1, 40)
		d := hostile{data: data[:min(len(data), 2000)]}
		for len(d.data) > 0 {
			d.event(b)
			if d.n(4) == 0 {
				b.pull()
			}
		}
		b.pull()
		for slot := range uint16(3) {
			b.Drop(slot)
		}
		b.pull()
		if len(b.records) > 0 && len(b.tree.texts.byID) == 0 {
			t.Fatalf("%d records of nothing", len(b.records))
		}
	})
}

// hostile makes events of bytes.
type hostile struct{ data []byte }

// n is a number below max.
func (d *hostile) n(max int) int {
	if len(d.data) == 0 {
		return 0
	}
	v := int(d.data[0]) % max
	d.data = d.data[1:]
	return v
}

func (d *hostile) event(b *bench) {
	kind := d.n(16)
	at := At{uint16(d.n(3)), d.n(2)}
	switch {
	case kind < 10:
		e := d.stored()
		b.Stored(at, &e, float64(d.n(2)))
	case kind < 14:
		b.Removed(at, &kvevents.Removed{Hashes: d.hashes(d.n(5)), Medium: d.medium(), Remote: d.n(5) == 0, Group: d.n(3) - 1})
	case kind == 14:
		b.Cleared(at)
	default:
		b.Reset(at)
	}
}

func (d *hostile) hashes(n int) (h []kvevents.Hash) {
	for range n {
		h = append(h, uint64(d.n(24)))
	}
	return h
}

func (d *hostile) medium() kvevents.Medium {
	return kvevents.Medium(max(d.n(8)-4, 0))
}

func (d *hostile) stored() kvevents.Stored {
	e := kvevents.Stored{
		Hashes: d.hashes(d.n(6)), HasParent: d.n(2) == 0, Parent: uint64(d.n(24)),
		BlockSize: d.n(10)/4 + 1, Medium: d.medium(), Remote: d.n(5) == 0, Group: d.n(6)/4 - 1,
	}
	for range len(e.Hashes) * e.BlockSize {
		e.Tokens = append(e.Tokens, uint32(d.n(2)))
	}
	switch d.n(16) {
	case 0:
		e.Tokens = e.Tokens[:len(e.Tokens)/2]
	case 1:
		e.BlockSize = -1
	case 2:
		e.Spec = []byte("mamba")
	case 3:
		e.Lora = []byte("a")
	case 4:
		for range e.Hashes {
			e.Extra = append(e.Extra, []kvevents.ExtraKey{word(string(rune('a' + d.n(3))))})
		}
	}
	if d.n(3) == 0 {
		e.Session = session(uint64(d.n(4)))
	}
	return e
}

// FuzzTable compares a table with a map.
func FuzzTable(f *testing.F) {
	f.Add([]byte("abcabcABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var tab table
		want := map[kvevents.Hash]blockID{}
		for i, op := range ops[:min(len(ops), 1000)] {
			// Few homes, so that entries crowd, also around the end.
			h := uint64(op&0x3f)<<58 | uint64(op>>6)
			e := tab.find(h)
			if _, known := want[h]; known != (e != nil) || e != nil && e.block != want[h] {
				t.Fatalf("hash %x: %+v, want %v", h, e, want[h])
			}
			if e != nil && i%3 > 0 {
				e.gpu = 0
				tab.remove(e)
				delete(want, h)
				continue
			}
			e, fresh := tab.put(h)
			if _, known := want[h]; known == fresh {
				t.Fatalf("hash %x: fresh %v", h, fresh)
			}
			e.gpu, e.block = 1, blockID(i)
			want[h] = e.block
		}
		if tab.n != len(want) {
			t.Fatalf("%d entries, want %d", tab.n, len(want))
		}
		for h, b := range want {
			if e := tab.find(h); e == nil || e.block != b {
				t.Fatalf("hash %x: %+v, want %d", h, e, b)
			}
		}
		tab.reset()
		if tab.n != 0 || tab.find(1) != nil {
			t.Fatal("something is left")
		}
	})
}

// FuzzMask compares a mask with a slice of what is in it.
func FuzzMask(f *testing.F) {
	f.Add([]byte{0, 1, 2, 63, 64, 65, 127}, byte(64))
	f.Add([]byte{5, 100}, byte(1))
	f.Fuzz(func(t *testing.T, ops []byte, cut byte) {
		var m mask
		var want [128]bool
		for _, op := range ops {
			i := uint32(op & 127)
			if op&128 == 0 {
				m.set(i)
			} else {
				m.clear(i)
			}
			want[i] = op&128 == 0
		}
		compareMask(t, &m, want[:])
		n := 1 + cut%127
		tail := m.cut(uint32(n))
		compareMask(t, &m, want[:n])
		compareMask(t, &tail, want[n:])
	})
}

func compareMask(t *testing.T, m *mask, want []bool) {
	t.Helper()
	run, top := 0, 0
	for i := range uint32(128) {
		has := int(i) < len(want) && want[i]
		if m.has(i) != has {
			t.Fatalf("offset %d: %v, want %v", i, m.has(i), has)
		}
		if has {
			top = int(i) + 1
		}
		if has && run == int(i) {
			run++
		}
	}
	if int(m.run()) != run || int(m.top()) != top || m.empty() != (top == 0) {
		t.Fatalf("run %d, top %d, empty %v; want %d, %d", m.run(), m.top(), m.empty(), run, top)
	}
}
