package state

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// kept is a sink that keeps what it is handed: pool and id -> payload.
type kept struct {
	records map[string]string
	begun   int
}

func (k *kept) Begin() { k.records = map[string]string{}; k.begun++ }

func (k *kept) Record(pool string, id uint64, payload []byte) {
	key := fmt.Sprint(pool, " ", id)
	if payload == nil {
		delete(k.records, key)
		return
	}
	k.records[key] = string(payload)
}

// patches returns n random records for each pool of s, and takes them over
// into now.
func (g gen) patches(s *Snapshot, n int, now map[string]string) (all []Patch) {
	for i := range s.Pools {
		p := Patch{Pool: s.Pools[i].Name}
		for range n {
			r := Record{ID: g.Uint64N(50)}
			key := fmt.Sprint(p.Pool, " ", r.ID)
			delete(now, key)
			if g.IntN(4) > 0 {
				r.Payload = bytes.Repeat([]byte{byte(g.Uint32())}, g.IntN(300))
				now[key] = string(r.Payload)
			}
			p.Records = append(p.Records, r)
		}
		all = append(all, p)
	}
	return all
}

// Records come through deltas and wholes of any size of page, and change
// nothing of what becomes of the state.
func TestRecordsComeThrough(t *testing.T) {
	for seed := range uint64(200) {
		g := newGen(seed)
		var sink kept
		v := View{Records: &sink}
		want := map[string]string{}
		a := g.snapshot()
		apply(t, &v, Pages(nil, a, 500, g.patches(a, 9, want)...))
		for step := range 4 {
			b := g.after(a)
			b.Pools = a.Pools[:len(a.Pools):len(a.Pools)] // records of pools that go are not told apart
			pages := Pages(a, b, 500+int(seed), g.patches(b, g.IntN(30), want)...)
			for i, page := range pages {
				if len(page) > 500+int(seed) {
					t.Fatalf("page %d has %d bytes", i, len(page))
				}
			}
			apply(t, &v, pages)
			if !Equal(v.Snapshot(), b) || !maps.Equal(sink.records, want) || sink.begun != 1 {
				t.Fatalf("seed %d, step %d: begun %d\n got %v\nwant %v", seed, step, sink.begun, sink.records, want)
			}
			a = b
		}
	}
}

// A change of records alone is a pool record with the name, and the records.
func TestRecordsOfUnchangedPool(t *testing.T) {
	a, b := fleet(8), fleet(8)
	b.Generation++
	record := Record{ID: 1 << 60, Payload: []byte("payload")}
	gone := Record{ID: 5}
	page := Pages(a, b, MaxPage, Patch{"default", []Record{record, gone}}, Patch{"other", []Record{record}})[0]
	want := headerSize + len(appendPool(nil, "default")) + record.Size() + gone.Size()
	if len(page) != want || record.Size() != 20 || gone.Size() != 11 {
		t.Errorf("%d bytes, want %d; records of %d and %d", len(page), want, record.Size(), gone.Size())
	}
}

func TestRecordSize(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 100, 115, 116, 117, 118, 127, 128, 500, MaxPayload} {
		r := Record{ID: 1<<64 - 1}
		if n >= 0 {
			r.Payload = make([]byte, n)
		}
		if got := len(appendRecord(nil, &r)); got != r.Size() {
			t.Errorf("payload of %d bytes: Size %d, takes %d", n, r.Size(), got)
		}
	}
}

// Nothing of a page with an error is handed over, and an answer that begins
// anew begins at the sink as well.
func TestRecordsOfBadPages(t *testing.T) {
	s := fleet(1)
	record := func(id uint64) Patch { return Patch{"default", []Record{{id, []byte("x")}}} }
	var sink kept
	v := View{Records: &sink}
	whole := Pages(nil, s, MaxPage, record(1))[0]
	apply(t, &v, [][]byte{whole})
	later := fleet(1)
	later.Generation++
	delta := Pages(s, later, MaxPage, record(2))[0]
	if _, err := v.Apply(append(delta, 0x80)); !errors.Is(err, ErrCorrupt) || len(sink.records) != 1 {
		t.Errorf("%v, %v", err, sink.records)
	}
	apply(t, &v, [][]byte{Pages(nil, later, MaxPage, record(3))[0]})
	if sink.begun != 2 || len(sink.records) != 1 || sink.records["default 3"] != "x" {
		t.Errorf("begun %d: %v", sink.begun, sink.records)
	}
}

func TestCorruptKVRecords(t *testing.T) {
	f := func(what string, fields ...[]byte) {
		t.Helper()
		h := Header{Epoch: 1, To: 1}
		page := append(h.append(nil), bytes.Join(fields, nil)...)
		var sink kept
		v := View{Records: &sink}
		_, err := v.Apply(page)
		var corrupt *CorruptError
		if what == "" && err != nil || what != "" && (!errors.As(err, &corrupt) || corrupt.What != what) {
			t.Errorf("got %v, want %q", err, what)
		}
		if len(sink.records) > 0 {
			t.Errorf("%q: handed over %v", what, sink.records)
		}
	}
	pool := appendString(nil, pagePool, string(appendString(nil, poolName, "a")))
	id := append([]byte{recordID<<3 | typeFixed64}, "12345678"...)
	record := func(fields ...byte) []byte { return appendString(nil, pageRecord, string(fields)) }
	f("KV record outside a pool", record(id...))
	f("field cut off", pool, record(id[:5]...))
	f("length beyond the end", pool, record(append(id, recordPayload<<3|typeBytes, 9)...))
	f("KV payload too long", pool, record(appendString(id, recordPayload, strings.Repeat("x", MaxPayload+1))...))
	f("number cut off or too long", pool, record(0x80))
	f("field number 0", pool, record(append(id, 0)...))
	f("", pool, record())                                    // none of ours
	f("", pool, record(appendString(nil, 3, "x")...))        // nor that
	f("", pool, record(appendVarint(id, 9, 1)...))           // removes what was not there
	f("", record(appendString(nil, 1, "of a later day")...)) // nor that, wherever it is
}

// The caps of an answer are for the state and for the records apart.
func TestTooManyRecords(t *testing.T) {
	h := Header{Epoch: 1, To: 1, More: true}
	list := make([]Record, 120)
	for i := range list {
		list[i] = Record{uint64(i), make([]byte, MaxPayload)}
	}
	w := writer{page: appendPool(h.append(nil), "a"), max: MaxPage}
	w.records(list)
	rest := w.page[headerSize:]
	var v View
	for size := 0; ; h.Page++ {
		page := append(h.append(nil), rest...)
		if h.Page > 0 && size == 0 {
			t.Fatal("nothing was sent")
		}
		_, err := v.Apply(page)
		if size += len(rest) - len(appendPool(nil, "a")); size > MaxRecords {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d bytes of records: %v", size, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%d bytes of records: %v", size, err)
		}
	}
}

func TestQueryWithDoubts(t *testing.T) {
	var v View
	if got := v.Query([]string{"p"}, 0, 65535); got != "/v1/state?epoch=0&gen=0&pool=p&doubt=0&doubt=65535" {
		t.Errorf("asks %s", got)
	}
	if n := strings.Count(v.Query(nil, make([]uint16, 2*MaxDoubts)...), "doubt"); n != MaxDoubts {
		t.Errorf("%d doubts", n)
	}
	apply(t, &v, Pages(nil, fleet(1), MaxPage))
	v.Restart()
	if got := v.Query(nil); got != "/v1/state?epoch=0&gen=0" || v.Snapshot().Generation != 812 {
		t.Errorf("after Restart asks %s, holds generation %d", got, v.Snapshot().Generation)
	}
}

func TestIndexFieldsOfReplicas(t *testing.T) {
	a, b := fleet(2), fleet(2)
	b.Generation++
	b.Pools[0].Replicas[1].KV, b.Pools[0].Replicas[1].Tags = KVPartial, true
	c := fleet(2)
	c.Generation += 2
	c.Pools[0].Replicas[1].KV = KVComplete
	var v View
	for _, step := range [][2]*Snapshot{{nil, a}, {a, b}, {b, c}, {nil, b}} {
		apply(t, &v, Pages(step[0], step[1], MaxPage))
		if !Equal(v.Snapshot(), step[1]) {
			t.Errorf("got %+v", v.Snapshot().Pools[0].Replicas[1])
		}
	}
	if EqualReplica(&a.Pools[0].Replicas[1], &b.Pools[0].Replicas[1]) {
		t.Error("fields do not count")
	}
}

// nodes are n records as the KV index has them, of about 8 blocks each.
func nodes(n int) []Record {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]Record, n)
	for i := range list {
		list[i] = Record{ID: r.Uint64(), Payload: bytes.Repeat([]byte{7}, 48+r.IntN(16))}
	}
	return list
}

type discard struct{ n int }

func (d *discard) Begin()                        {}
func (d *discard) Record(string, uint64, []byte) { d.n++ }

// A delta of 10,000 blocks and a whole of 240,000, in records of 8 blocks.
func BenchmarkRecords(b *testing.B) {
	for _, blocks := range []int{10_000, 240_000} {
		list := nodes(blocks / 8)
		s := fleet(8)
		patch := Patch{"default", list}
		pages := Pages(nil, s, MaxPage, patch)
		bytes := 0
		for _, page := range pages {
			bytes += len(page)
		}
		b.Run(fmt.Sprintf("encode/%d", blocks), func(b *testing.B) {
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				Pages(nil, s, MaxPage, patch)
			}
		})
		b.Run(fmt.Sprintf("apply/%d", blocks), func(b *testing.B) {
			v := View{Records: &discard{}}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				for _, page := range pages {
					if _, err := v.Apply(page); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
