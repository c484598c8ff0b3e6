package kvindex

import (
	"maps"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

func TestLookUpsAgreeWithModel(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, seed, 5, Options{Buckets: 64, BucketBytes: 64 << 10})
		for range 100 {
			for range 4 {
				w.step()
			}
			w.tell()
			applyAll(t, w.writer)
			w.begin(t)
			if len(w.order) > 0 {
				w.checkLookUps(t, 20)
			}
		}
		if s := w.writer.Stats(); s.Dropped+s.Damaged+s.Conflicts+w.reader.Stats().Damaged > 0 {
			t.Errorf("writer %+v, reader %+v", s, w.reader.Stats())
		}
	}
}

// checkLookUps compares look-ups of prompts and of texts with the model.
func (w *world) checkLookUps(t *testing.T, n int) {
	t.Helper()
	got := make([]Run, w.slots)
	for range n {
		keys := w.prompt()
		if err := w.reader.Lookup(keys, got); err != nil {
			t.Fatal(err)
		}
		if want := w.runs(keys); !slices.Equal(got, want) {
			t.Fatalf("%d keys: %v, want %v", len(keys), got, want)
		}
	}
	for _, text := range sortedKeys(w.texts) {
		keys := w.path(w.texts[text])
		most := uint32(w.r.IntN(len(keys) + 20))
		counted := min(len(keys), int(most))
		depth, size, ok := w.reader.LookupText(text, most, got)
		if want := w.runs(keys[:counted]); !ok || int(depth) != counted || size != modelBlockSize || !slices.Equal(got, want) {
			t.Fatalf("text of %d blocks, at most %d: %v (%d, %d, %v), want %v", len(keys), most, got, depth, size, ok, want)
		}
	}
}

func TestSlotsBeyondRunsAreLeftOut(t *testing.T) {
	w := newWorld(t, 1, 5, Options{})
	end := w.grow(w.grow(0, 200), 100)
	for _, key := range w.path(end) {
		for slot := range w.slots {
			w.blocks[key].gpu[slot], w.blocks[key].any[slot] = true, true
		}
	}
	w.texts[77] = end
	w.tell()
	applyAll(t, w.writer)
	w.begin(t)
	for n := range 5 {
		want := slices.Repeat([]Run{{300, 300}}, n)
		if n == 0 {
			want = []Run{}
		}
		runs := make([]Run, n)
		if err := w.reader.Lookup(w.path(end), runs); err != nil || n > 0 && !slices.Equal(runs, want) {
			t.Errorf("%d slots: %v, %v", n, runs, err)
		}
		clear(runs)
		if depth, _, ok := w.reader.LookupText(77, 1000, runs); !ok || depth != 300 || !slices.Equal(runs, want) {
			t.Errorf("%d slots by text: %v, %d, %v", n, runs, depth, ok)
		}
	}
}

// falseClaim reports a run that neither of two states of the truth allows.
func falseClaim(runs []Run, keys []uint64, truths ...*model) bool {
	holds := func(has func(b *block) bool, key uint64) bool {
		return slices.ContainsFunc(truths, func(m *model) bool { b := m.blocks[key]; return b != nil && has(b) })
	}
	for slot, run := range runs {
		for i := range run.Any {
			if !holds(func(b *block) bool { return b.any[slot] }, keys[i]) {
				return true
			}
		}
		for i := range run.GPU {
			if !holds(func(b *block) bool { return b.gpu[slot] }, keys[i]) {
				return true
			}
		}
	}
	return false
}

// copyOf is the model as it is now.
func (m *model) copyOf() *model {
	c := *m
	c.blocks = make(map[uint64]*block, len(m.blocks))
	for key, b := range m.blocks {
		d := *b
		d.gpu, d.any = maps.Clone(b.gpu), maps.Clone(b.any)
		c.blocks[key] = &d
	}
	c.texts = maps.Clone(m.texts)
	return &c
}

// While the writer is at work, nobody is said to have a block that it has
// neither before nor after.
func TestHalfWrittenIndexClaimsNothingFalse(t *testing.T) {
	for seed := range uint64(2) {
		w := newWorld(t, seed, 4, Options{Buckets: 64, BucketBytes: 64 << 10})
		runs := make([]Run, w.slots)
		for range 50 {
			before := w.copyOf()
			for range 5 {
				w.step()
			}
			w.tell()
			for done := false; !done; {
				var err error
				if done, err = w.writer.Apply(1); err != nil {
					t.Fatal(err)
				}
				w.begin(t)
				if len(w.order) == 0 {
					continue
				}
				keys := w.prompt()
				if err := w.reader.Lookup(keys, runs); err != nil || falseClaim(runs, keys, before, w.model) {
					t.Fatalf("%v of %d keys, %v", runs, len(keys), err)
				}
				for _, text := range sortedKeys(w.texts) {
					depth, _, ok := w.reader.LookupText(text, 1<<20, runs)
					if ok && falseClaim(runs, w.path(w.texts[text])[:depth], before, w.model) {
						t.Fatalf("text of %d blocks: %v", depth, runs)
					}
				}
			}
		}
	}
}

// Records that find no room are missing, never wrong.
func TestOverflowClaimsLess(t *testing.T) {
	for seed := range uint64(3) {
		w := newWorld(t, seed, 4, Options{Buckets: 8, BucketBytes: 1 << 10})
		runs := make([]Run, w.slots)
		known, unknown := 0, 0
		for range 120 {
			for range 4 {
				w.step()
			}
			w.tell()
			applyAll(t, w.writer)
			w.begin(t)
			if len(w.order) == 0 {
				continue
			}
			for range 10 {
				keys := w.prompt()
				if err := w.reader.Lookup(keys, runs); err != nil || falseClaim(runs, keys, w.model) {
					t.Fatalf("%v of %d keys, %v", runs, len(keys), err)
				}
			}
			for _, text := range sortedKeys(w.texts) {
				keys := w.path(w.texts[text])
				if _, _, ok := w.reader.LookupText(text, 1<<20, runs); !ok {
					unknown++
					if slices.ContainsFunc(runs, func(r Run) bool { return r != Run{} }) {
						t.Fatalf("not known, but %v", runs)
					}
					continue
				}
				known++
				if want := w.runs(keys); !slices.Equal(runs, want) {
					t.Fatalf("text of %d blocks: %v, want %v", len(keys), runs, want)
				}
			}
		}
		if w.writer.Stats().Dropped == 0 || known == 0 || unknown == 0 {
			t.Errorf("%d dropped, %d texts known, %d not: the test shows nothing", w.writer.Stats().Dropped, known, unknown)
		}
	}
}

func TestTextThatDoesNotFitItsPath(t *testing.T) {
	f := func(what string, change func(r map[uint64][]byte, ids []uint64)) {
		t.Helper()
		mem := shared.NewMem()
		w, r := NewWriter(mem.View(), Options{}), NewReader(mem.View(), Options{Path: 4})
		m := newModel(1, 2)
		end := m.grow(0, 300)
		keys := m.path(end)
		for _, key := range keys {
			m.blocks[key].gpu[1], m.blocks[key].any[1] = true, true
		}
		m.texts[77] = end
		records := m.records()
		change(records, []uint64{keys[0], keys[128], keys[256]})
		fill(t, w, records)
		if !r.Begin(1) {
			t.Fatal("no index")
		}
		runs := []Run{{9, 9}, {9, 9}}
		depth, size, ok := r.LookupText(77, 1000, runs)
		if what == "" {
			if !ok || depth != 300 || size != modelBlockSize || !slices.Equal(runs, []Run{{}, {300, 300}}) {
				t.Errorf("as it should be: %v, %d, %d, %v", runs, depth, size, ok)
			}
			return
		}
		if ok || depth != 0 || size != 0 || !slices.Equal(runs, []Run{{}, {}}) {
			t.Errorf("%s: %v, %d, %d, %v", what, runs, depth, size, ok)
		}
	}
	edit := func(i int, change func(n *Node)) func(map[uint64][]byte, []uint64) {
		return func(r map[uint64][]byte, ids []uint64) {
			var n Node
			if err := n.Decode(r[ids[i]]); err != nil {
				t.Fatal(err)
			}
			change(&n)
			r[ids[i]] = AppendNode(nil, &n)
		}
	}
	f("", func(map[uint64][]byte, []uint64) {})
	f("no text", func(r map[uint64][]byte, _ []uint64) { delete(r, 77) })
	f("not a text", func(r map[uint64][]byte, ids []uint64) { r[77] = r[ids[0]] })
	f("damaged text", func(r map[uint64][]byte, _ []uint64) { r[77][1] = 0 })
	f("no leaf", func(r map[uint64][]byte, ids []uint64) { delete(r, ids[2]) })
	f("no node on the way", func(r map[uint64][]byte, ids []uint64) { delete(r, ids[1]) })
	f("no root", func(r map[uint64][]byte, ids []uint64) { delete(r, ids[0]) })
	f("a text on the way", func(r map[uint64][]byte, ids []uint64) { r[ids[1]] = r[77] })
	f("split leaf", edit(2, func(n *Node) { n.Tags = n.Tags[:40]; n.Held[0] = Held{1, 40, 40} }))
	f("split parent", edit(1, func(n *Node) { n.Tags = n.Tags[:40]; n.Held[0] = Held{1, 40, 40} }))
	f("other depth", edit(1, func(n *Node) { n.Depth++ }))
	f("other block size", edit(1, func(n *Node) { n.Size++ }))
	f("a circle", edit(1, func(n *Node) { n.Parent = 77 }))
	f("root too early", edit(1, func(n *Node) { n.Parent, n.Depth = 0, 0 }))
}

func TestPathIsBounded(t *testing.T) {
	mem := shared.NewMem()
	w := NewWriter(mem.View(), Options{})
	m := newModel(1, 1)
	end := m.grow(0, 10*MaxRun)
	keys := m.path(end)
	for _, key := range keys {
		m.blocks[key].any[0] = true
	}
	m.texts[77] = end
	fill(t, w, m.records())
	for path := 1; path < 12; path++ {
		r := NewReader(mem.View(), Options{Path: path})
		r.Begin(1)
		runs := make([]Run, 1)
		if err := r.Lookup(keys, runs); err != nil || runs[0].Any != uint32(min(path, 10)*MaxRun) {
			t.Errorf("%d nodes: %v, %v", path, runs, err)
		}
		if _, _, ok := r.LookupText(77, 1<<20, runs); ok != (path >= 10) {
			t.Errorf("%d nodes: text known %v", path, ok)
		}
	}
}

func TestReadersSeeOnlyACompleteIndex(t *testing.T) {
	mem := shared.NewMem()
	w, r := NewWriter(mem.View(), Options{}), NewReader(mem.View(), Options{})
	m := newModel(1, 1)
	key := m.grow(0, 1)
	m.blocks[key].any[0] = true
	now := int64(0)
	f := func(what string, want bool, blocks uint32) {
		t.Helper()
		now += keptFor
		if got := r.Begin(now); got != want {
			t.Errorf("%s: %v", what, got)
		}
		runs := []Run{{7, 7}}
		if err := r.Lookup([]uint64{key}, runs); err != nil || runs[0].Any != blocks {
			t.Errorf("%s: %v, %v, want %d blocks", what, runs, err, blocks)
		}
	}
	f("nothing there", false, 0)
	fill(t, w, m.records())
	f("complete", true, 1)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	f("begun anew", false, 0)
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	f("complete and empty", true, 0)
	mem.View().Set([]byte(shared.BlocksKey), []byte("something else"), 0)
	f("damaged head", false, 0)
	if s := r.Stats(); s.Damaged != 1 || s.Reads == 0 {
		t.Errorf("%+v", s)
	}
}

// What was read serves for 20 ms, but not over the begin of another epoch.
func TestRecordsAreKept(t *testing.T) {
	mem := shared.NewMem()
	w, r := NewWriter(mem.View(), Options{}), NewReader(mem.View(), Options{})
	m := newModel(1, 1)
	keys := m.path(m.grow(0, 300))
	for _, key := range keys {
		m.blocks[key].any[0] = true
	}
	fill(t, w, m.records())
	f := func(what string, now int64, gets int, blocks uint32) {
		t.Helper()
		before := mem.Gets
		r.Begin(now)
		runs := make([]Run, 1)
		if err := r.Lookup(keys, runs); err != nil || runs[0].Any != blocks || mem.Gets-before != gets {
			t.Errorf("%s: %v, %v after %d reads, want %d after %d", what, runs, err, mem.Gets-before, blocks, gets)
		}
	}
	f("first", 100, 4, 300)
	f("again", 119, 0, 300)
	w.Queue(keys[128], nil)
	applyAll(t, w)
	f("not yet seen", 119, 0, 300)
	f("seen", 120, 3, 128)
	f("what is not there is kept too", 139, 0, 128)
	f("clock set back", 100, 3, 128)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	f("other epoch", 120, 2, 0)
}

// A payload that is too long to be kept is read each time.
func TestLongRecordsAreRead(t *testing.T) {
	mem := shared.NewMem()
	w, r := NewWriter(mem.View(), Options{}), NewReader(mem.View(), Options{})
	m := newModel(1, 300)
	keys := m.path(m.grow(0, 10))
	for slot := range m.slots {
		m.blocks[keys[0]].any[slot] = true
	}
	fill(t, w, m.records())
	r.Begin(1)
	runs := make([]Run, 300)
	for i := range 3 {
		before := mem.Gets
		if err := r.Lookup(keys, runs); err != nil || runs[299].Any != 1 || mem.Gets-before != 1 {
			t.Errorf("%d: %v, %v, %d reads", i, runs[299], err, mem.Gets-before)
		}
	}
}
