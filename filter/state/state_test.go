package state

import (
	"errors"
	"testing"
)

// apply gives all pages to v and fails unless exactly the last completes.
func apply(t *testing.T, v *View, pages [][]byte) {
	t.Helper()
	for i, page := range pages {
		got, err := v.Apply(page)
		if err != nil {
			t.Fatalf("page %d of %d: %v", i, len(pages), err)
		}
		if (got == Complete) != (i == len(pages)-1) {
			t.Fatalf("page %d of %d: result %d", i, len(pages), got)
		}
	}
}

// Whatever two states there are: the delta between them, cut at any size,
// leads from one to the other.
func TestDeltaLeadsFromOneToTheOther(t *testing.T) {
	for seed := range uint64(400) {
		g := newGen(seed)
		var v View
		a := g.snapshot()
		apply(t, &v, Pages(nil, a, 200))
		for step := range 6 {
			if !Equal(v.Snapshot(), a) {
				t.Fatalf("seed %d step %d: view differs\n got %+v\nwant %+v", seed, step, v.Snapshot(), a)
			}
			b := g.after(a)
			apply(t, &v, Pages(a, b, 150+int(seed)*3))
			a = b
		}
		if !Equal(v.Snapshot(), a) {
			t.Fatalf("seed %d: view differs at the end", seed)
		}
	}
}

func TestSnapshotRoundTripReusesMemory(t *testing.T) {
	var into Snapshot
	for seed := range uint64(300) {
		s := newGen(seed).snapshot()
		if err := DecodeSnapshot(AppendSnapshot(nil, s), &into); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !Equal(s, &into) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, into, s)
		}
	}
}

func TestPagesKeepTheLimit(t *testing.T) {
	s := fleet(256)
	pages := Pages(nil, s, 4096)
	if len(pages) < 2 {
		t.Fatalf("%d pages", len(pages))
	}
	for i, p := range pages {
		if len(p) > 4096 {
			t.Errorf("page %d has %d bytes", i, len(p))
		}
	}
	var v View
	apply(t, &v, pages)
	if !Equal(s, v.Snapshot()) {
		t.Error("view differs")
	}
}

// The largest replica the caps allow still fits into a page.
func TestLargestReplicaFitsAPage(t *testing.T) {
	long := func(i int) string { return string(make([]byte, MaxName-1)) + string(rune('a'+i%26)) }
	r := Replica{Address: long(0), Load: NoLoad(), Models: []string{}, Adapters: []Adapter{}}
	p := Pool{Name: long(1), Models: []string{}}
	for i := range MaxModels {
		r.Models = append(r.Models, long(i))
		p.Models = append(p.Models, long(i))
	}
	for i := range MaxAdapters {
		r.Adapters = append(r.Adapters, Adapter{long(i), AdapterLoaded})
	}
	p.Replicas = []Replica{r}
	s := &Snapshot{Epoch: 1, Generation: 1, Pools: []Pool{p}}
	pages := Pages(nil, s, MaxPage)
	for i := range pages {
		if len(pages[i]) > MaxPage {
			t.Fatalf("page %d has %d bytes", i, len(pages[i]))
		}
	}
	var v View
	apply(t, &v, pages)
	if !Equal(s, v.Snapshot()) {
		t.Error("view differs")
	}
}

// Absent, empty and unchanged stay three things over a delta.
func TestAbsentEmptyUnchanged(t *testing.T) {
	f := func(from, to []string) {
		t.Helper()
		a, b := fleet(1), fleet(1)
		b.Generation++
		a.Pools[0].Replicas[0].Models, b.Pools[0].Replicas[0].Models = from, to
		b.Pools[0].Replicas[0].Load.Waiting = 99
		var v View
		apply(t, &v, Pages(nil, a, MaxPage))
		apply(t, &v, Pages(a, b, MaxPage))
		if !Equal(v.Snapshot(), b) {
			t.Errorf("%#v -> %#v: got %#v", from, to, v.Snapshot().Pools[0].Replicas[0].Models)
		}
	}
	some, empty := []string{"m"}, []string{}
	for _, from := range [][]string{some, empty, nil} {
		for _, to := range [][]string{some, empty, nil} {
			f(from, to)
		}
	}
}

func TestLoadThatIsNotKnownAnyMore(t *testing.T) {
	a, b := fleet(2), fleet(2)
	b.Generation++
	b.Pools[0].Replicas[1].Load = NoLoad()
	var v View
	apply(t, &v, Pages(nil, a, MaxPage))
	apply(t, &v, Pages(a, b, MaxPage))
	l := v.Snapshot().Pools[0].Replicas[1].Load
	if l.Waiting != -1 || l.KV == l.KV || l.At != 0 {
		t.Errorf("load %+v", l)
	}
}

func TestUnchangedPoolsAreNotSent(t *testing.T) {
	a, b := fleet(8), fleet(8)
	b.Generation++
	if pages := Pages(a, b, MaxPage); len(pages) != 1 || len(pages[0]) != headerSize {
		t.Errorf("delta of nothing has %d bytes", len(pages[0]))
	}
	b.Pools[0].Replicas[3].Health = Draining
	if page := Pages(a, b, MaxPage)[0]; len(page) > headerSize+24 {
		t.Errorf("delta of one health has %d bytes", len(page))
	}
}

func TestErrorsKeepTheOldState(t *testing.T) {
	a := fleet(8)
	b := fleet(9)
	b.Generation++
	f := func(page []byte, want error) {
		t.Helper()
		var v View
		apply(t, &v, Pages(nil, a, MaxPage))
		if _, err := v.Apply(page); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if !Equal(v.Snapshot(), a) {
			t.Error("state changed")
		}
		if got := v.Query(nil); got != "/v1/state?epoch=0&gen=0" {
			t.Errorf("asks %s", got)
		}
		apply(t, &v, Pages(nil, b, MaxPage))
		if got := v.Query(nil); got != "/v1/state?epoch=5&gen=813" {
			t.Errorf("after recovery asks %s", got)
		}
	}
	delta := Pages(a, b, MaxPage)[0]
	edit := func(at int, value byte) []byte {
		page := append([]byte(nil), delta...)
		page[at] = value
		return page
	}
	f(nil, ErrCorrupt)
	f([]byte("<html>"), ErrCorrupt)
	f(delta[:20], ErrCorrupt)
	f(delta[:len(delta)-1], ErrCorrupt)
	f(edit(3, 2), ErrVersion)
	f(edit(4, 77), ErrGap)     // another epoch
	f(edit(12, 1), ErrGap)     // from a generation that is not held
	f(edit(28, 1), ErrGap)     // a second page without a first
	f(edit(20, 0), ErrCorrupt) // ends before it begins
	f(make([]byte, 2*MaxPage), ErrCorrupt)
	f(append(edit(0, 'W'), make([]byte, MaxPage)...), ErrCorrupt)
}

func TestPagesOutOfTurn(t *testing.T) {
	s := fleet(64)
	pages := Pages(nil, s, 1024)
	other := fleet(64)
	other.Generation++
	foreign := Pages(nil, other, 1024)
	f := func(want error, order ...[]byte) {
		t.Helper()
		var v View
		var err error
		for _, page := range order {
			_, err = v.Apply(page)
		}
		if err != want {
			t.Errorf("error %v, want %v", err, want)
		}
		if v.Snapshot().Generation != 0 {
			t.Error("a state came into force")
		}
	}
	f(nil, pages[0], pages[1])
	f(nil, pages[0], pages[1], foreign[0]) // begins anew
	f(ErrGap, pages[0], pages[2])
	f(ErrGap, pages[0], pages[1], pages[1])
	f(ErrGap, pages[0], foreign[1])
	f(ErrGap, pages[1])
}

func TestQuery(t *testing.T) {
	var v View
	f := func(want string, pools ...string) {
		t.Helper()
		if got := v.Query(pools); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("/v1/state?epoch=0&gen=0")
	f("/v1/state?epoch=0&gen=0&pool=default&pool=a%20b%26%C3%A9", "default", "a b&é")
	s := fleet(64)
	pages := Pages(nil, s, 1024)
	apply(t, &v, pages)
	f("/v1/state?epoch=5&gen=812")
	next := fleet(65)
	next.Generation = 900
	for i := range next.Pools[0].Replicas {
		next.Pools[0].Replicas[i].Load.Waiting++
	}
	if res, err := v.Apply(Pages(s, next, 512)[0]); res != Partial || err != nil {
		t.Fatal(res, err)
	}
	f("/v1/state?epoch=5&gen=812&to=900&page=1")
}

func TestLoad(t *testing.T) {
	var v View
	a := fleet(3)
	blob := AppendSnapshot(nil, a)
	if err := v.Load(blob); err != nil || !Equal(a, v.Snapshot()) {
		t.Fatalf("load: %v", err)
	}
	if err := v.Load(blob[:len(blob)-2]); !errors.Is(err, ErrCorrupt) || !Equal(a, v.Snapshot()) {
		t.Fatalf("cut off: %v", err)
	}
	b := fleet(4)
	b.Generation++
	apply(t, &v, Pages(a, b, MaxPage))
	if err := v.Load(Pages(a, b, MaxPage)[0]); err != ErrGap || !Equal(b, v.Snapshot()) {
		t.Fatalf("delta as blob: %v", err)
	}
}

// A field from a later minor version, of each wire type and in each record,
// changes nothing.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	extra := appendVarint(nil, 900, 1<<40)
	extra = appendFloat(extra, 901, 1)
	extra = appendString(extra, 902, "later")
	extra = append(extra, 0xc1, 0x38, 1, 2, 3, 4, 5, 6, 7, 8) // 904, fixed64
	h := Header{Epoch: 1, To: 1}
	page := append(h.append(nil), extra...)
	record := func(num uint64, fields []byte) {
		page = appendString(page, num, string(append(fields, extra...)))
	}
	record(pagePool, appendString(nil, poolName, "p"))
	replica := appendVarint(nil, replicaSlot, 4)
	replica = appendString(replica, replicaAddress, "a:1")
	replica = appendVarint(replica, replicaHealth, 99)
	replica = appendString(replica, replicaLoad, string(append(appendVarint(nil, loadWaiting, 2), extra...)))
	record(pageReplica, replica)
	var got Snapshot
	if err := DecodeSnapshot(page, &got); err != nil {
		t.Fatal(err)
	}
	want := Replica{Slot: 4, Address: "a:1", Load: NoLoad()}
	want.Load.Waiting = 2
	if len(got.Pools) != 1 || !EqualReplica(&got.Pools[0].Replicas[0], &want) {
		t.Errorf("got %+v", got)
	}
}

func TestCorruptRecords(t *testing.T) {
	f := func(what string, fields ...[]byte) {
		t.Helper()
		h := Header{Epoch: 1, To: 1}
		page := h.append(nil)
		for _, field := range fields {
			page = append(page, field...)
		}
		var corrupt *CorruptError
		if err := DecodeSnapshot(page, new(Snapshot)); !errors.As(err, &corrupt) || corrupt.What != what {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	pool := func(name string, more ...byte) []byte {
		return appendString(nil, pagePool, string(appendString(nil, poolName, name))+string(more))
	}
	replica := func(slot uint64, more ...byte) []byte {
		b := appendVarint(nil, replicaSlot, slot)
		b = appendString(b, replicaAddress, "a:1")
		return appendString(nil, pageReplica, string(b)+string(more))
	}
	f("field number 0", []byte{0, 0})
	f("unknown wire type", []byte{0x0b})
	f("number cut off or too long", []byte{0x80})
	f("length beyond the end", []byte{0x0a, 9})
	f("field cut off", []byte{0x39, 1})
	f("pools out of order", pool("b"), pool("a"))
	f("pools out of order", pool("a"), pool("a"))
	f("pool without its name first", []byte{0x0a, 0})
	f("name too long", pool(string(make([]byte, MaxName+1))))
	f("replica outside a pool", replica(1))
	f("replicas out of order", pool("a"), replica(2), replica(2))
	f("slot too large", pool("a"), replica(65536))
	f("replica without its slot first", pool("a"), []byte{0x12, 0})
	f("replica without an address", pool("a"), []byte{0x12, 2, 0x08, 1})
	f("list too long", pool("a"), replica(1, appendString(nil, replicaModels, "\xff\x7f")...))
	f("list too long", pool("a", appendString(nil, poolModels, "\x05\x00")...))
	f("bytes behind a list", pool("a", appendString(nil, poolModels, "\x01\x00")...))
	f("a pool that is not there is dropped", appendString(nil, pageDropped, "x"))
	f("a replica that is not there is removed", pool("a", appendString(nil, poolRemoved, "\x07")...))
	f("number too large", pool("a"), replica(1, appendVarint(nil, replicaBlockSize, 1<<32)...))
	f("count too large", pool("a"), replica(1, appendString(nil, replicaLoad, string(appendVarint(nil, loadWaiting, 1<<31)))...))
}

func TestTooManyReplicas(t *testing.T) {
	f := func(n int, want error) {
		t.Helper()
		s := &Snapshot{Generation: 1, Pools: []Pool{{Name: "p"}}}
		for i := range n {
			s.Pools[0].Replicas = append(s.Pools[0].Replicas, Replica{Slot: uint16(i), Address: "a", Load: NoLoad()})
		}
		if err := DecodeSnapshot(AppendSnapshot(nil, s), new(Snapshot)); !errors.Is(err, want) {
			t.Errorf("%d replicas: %v", n, err)
		}
	}
	f(MaxReplicas, nil)
	f(MaxReplicas+1, ErrCorrupt)
}

// A worker that decodes each new generation makes no garbage, nor does the
// leader that folds deltas.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	a, b := fleet(8), fleet(8)
	b.Generation++
	b.Pools[0].Replicas[2].Load.Waiting = 4
	back := fleet(8)
	back.Generation += 2
	blobs := [2][]byte{AppendSnapshot(nil, a), AppendSnapshot(nil, b)}
	var worker View
	i := 0
	load := func() {
		if err := worker.Load(blobs[i&1]); err != nil {
			t.Fatal(err)
		}
		i++
	}
	load()
	load()
	if n := testing.AllocsPerRun(50, load); n != 0 {
		t.Errorf("Load: %v allocations", n)
	}
	whole, delta := Pages(nil, a, MaxPage)[0], Pages(a, b, MaxPage)[0]
	var leader View
	var blob []byte
	fold := func() {
		apply(t, &leader, [][]byte{whole})
		apply(t, &leader, [][]byte{delta})
		blob = AppendSnapshot(blob[:0], leader.Snapshot())
	}
	fold()
	if n := testing.AllocsPerRun(50, fold); n > 2 {
		t.Errorf("fold: %v allocations beside the two slices of the test", n)
	}
}
