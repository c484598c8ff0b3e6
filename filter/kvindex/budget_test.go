package kvindex

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/shared"
)

// longPrompt is a model with a prompt of 2,000 blocks that all slots hold, from
// which others part at so many places, and its text key.
func longPrompt(branches, slots int) (m *model, keys []uint64, text uint64) {
	m, text = newModel(1, slots), 77
	end := m.grow(0, 2000)
	m.texts[text] = end
	keys = m.path(end)
	for _, key := range keys {
		for slot := range slots {
			m.blocks[key].gpu[slot], m.blocks[key].any[slot] = true, true
		}
	}
	for i := range branches {
		m.grow(keys[100+350*i], 50)
	}
	return m, keys, text
}

func TestReadsAreBounded(t *testing.T) {
	for _, branches := range []int{0, 5} {
		mem := shared.NewMem()
		m, keys, text := longPrompt(branches, 8)
		fill(t, NewWriter(mem.View(), Options{}), m.records())
		r := NewReader(mem.View(), Options{})
		runs := make([]Run, 8)
		now := int64(0)
		f := func(what string, lookUp func() bool) {
			t.Helper()
			now += keptFor
			before := mem.Gets
			if !r.Begin(now) || !lookUp() || runs[7] != (Run{2000, 2000}) {
				t.Errorf("%s: runs %v", what, runs)
			}
			gets := mem.Gets - before
			t.Logf("%d branches, %s: %d reads", branches, what, gets)
			if gets > 24 {
				t.Errorf("%d branches, %s: %d reads", branches, what, gets)
			}
		}
		f("by keys", func() bool { return r.Lookup(keys, runs) == nil })
		f("by text", func() bool { _, _, ok := r.LookupText(text, 2000, runs); return ok })
	}
}

func TestLookUpsMakeNoGarbage(t *testing.T) {
	mem := shared.NewMem()
	m, keys, text := longPrompt(5, 8)
	fill(t, NewWriter(mem.View(), Options{}), m.records())
	r := NewReader(mem.View(), Options{})
	runs := make([]Run, 8)
	now := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		now += keptFor / 2 // every other time from the store
		if !r.Begin(now) || r.Lookup(keys, runs) != nil {
			t.Error("failed")
		}
		if _, _, ok := r.LookupText(text, 1999, runs); !ok {
			t.Error("failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// traffic is the state of some replicas that serve conversations: each has one
// of a few system prompts and goes on for some turns, mostly at one replica. A
// replica holds so many blocks and forgets the conversation longest unused.
type traffic struct {
	*model
	r       *rand.Rand
	systems []uint64
	talks   []talk
	holds   []int      // by slot, blocks
	recent  [][]uint64 // by slot, ends of what was served, oldest first
	turns   int
}

type talk struct {
	end   uint64
	slot  int
	turns int // left
}

func newTraffic(seed uint64, slots int) *traffic {
	f := &traffic{
		model: newModel(seed, slots), r: rand.New(rand.NewPCG(seed, 3)),
		holds: make([]int, slots), recent: make([][]uint64, slots),
	}
	for range 20 {
		f.systems = append(f.systems, f.grow(0, 20+f.r.IntN(300)))
	}
	return f
}

// turn serves one request.
func (f *traffic) turn(capacity int) {
	f.turns++
	i := f.r.IntN(200)
	if i >= len(f.talks) {
		i = len(f.talks)
		f.talks = append(f.talks, talk{})
	}
	c := &f.talks[i]
	if c.turns == 0 {
		*c = talk{end: f.systems[f.r.IntN(1+f.r.IntN(len(f.systems)))], slot: f.r.IntN(f.slots), turns: 1 + f.r.IntN(20)}
	}
	if f.r.IntN(10) == 0 {
		c.slot = f.r.IntN(f.slots)
	}
	c.turns--
	c.end = f.grow(c.end, 1+f.r.IntN(40))
	f.texts[f.r.Uint64()] = c.end
	f.serve(c.slot, c.end, capacity)
}

func (f *traffic) serve(slot int, end uint64, capacity int) {
	for _, key := range f.path(end) {
		b := f.blocks[key]
		if !b.gpu[slot] {
			b.gpu[slot], b.any[slot] = true, true
			f.holds[slot]++
		}
	}
	f.recent[slot] = append(f.recent[slot], end)
	for f.holds[slot] > capacity {
		f.forget(slot, f.recent[slot][0])
		f.recent[slot] = f.recent[slot][1:]
	}
}

// forget drops the end of a path, up to where the replica has something after
// it.
func (f *traffic) forget(slot int, key uint64) {
	for key != 0 {
		b := f.blocks[key]
		for _, child := range b.children {
			if f.blocks[child].gpu[slot] {
				return
			}
		}
		if b.gpu[slot] {
			delete(b.gpu, slot)
			delete(b.any, slot)
			f.holds[slot]--
		}
		key = b.parent
	}
}

func (f *traffic) held() (blocks int) {
	for _, n := range f.holds {
		blocks += n
	}
	return blocks
}

// size is how many bytes of buckets and keys the store holds.
func size(t testing.TB, mem *shared.Mem, buckets int) (bytes int) {
	t.Helper()
	s := mem.View()
	for n := range uint32(buckets) {
		key := shared.AppendBlocksKey(nil, n)
		value, _, err := s.Get(key)
		if err != nil && !errors.Is(err, shared.ErrNotFound) {
			t.Fatal(err)
		}
		bytes += len(key) + len(value)
	}
	return bytes
}

// 8 replicas with 30,000 blocks each, of all of whose prompts the texts are
// known.
func TestSize(t *testing.T) {
	f := newTraffic(1, 8)
	for f.held() < 239_000 {
		f.turn(30_000)
	}
	mem := shared.NewMem()
	w := NewWriter(mem.View(), Options{})
	records := f.records()
	fill(t, w, records)
	n := size(t, mem, 2048)
	t.Logf("%d blocks, %d of them different, in %d records (%d texts): %d bytes, %.1f a block",
		f.held(), len(f.order), len(records), len(f.texts), n, float64(n)/float64(f.held()))
	if w.Stats().Dropped > 0 || n > 16<<20 {
		t.Errorf("%d bytes, %d records dropped", n, w.Stats().Dropped)
	}
}

// deltas are what changes with turns of conversations that bring so many blocks.
func deltas(f *traffic, blocks int) (first, second map[uint64][]byte) {
	first = f.records()
	before := len(f.order)
	for len(f.order) < before+blocks {
		f.turn(30_000)
	}
	return first, f.records()
}

func TestApplyMakesNoGarbage(t *testing.T) {
	f := newTraffic(2, 8)
	for f.turns < 500 {
		f.turn(30_000)
	}
	first, second := deltas(f, 10_000)
	w := NewWriter(shared.NewMem().View(), Options{})
	fill(t, w, first)
	there, back := listChanges(first, second), listChanges(second, first)
	apply := func(changes []change) {
		for _, c := range changes {
			w.Queue(c.id, c.payload)
		}
		for done := false; !done; {
			var err error
			if done, err = w.Apply(64); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(there)
	apply(back)
	start := time.Now()
	apply(there)
	t.Logf("10,000 blocks, %d records: %v", len(there), time.Since(start))
	apply(back)
	if n := testing.AllocsPerRun(5, func() { apply(there); apply(back) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type change struct {
	id      uint64
	payload []byte
}

func listChanges(old, now map[uint64][]byte) (list []change) {
	for _, id := range sortedKeys(old) {
		if now[id] == nil {
			list = append(list, change{id, nil})
		}
	}
	for _, id := range sortedKeys(now) {
		if string(old[id]) != string(now[id]) {
			list = append(list, change{id, now[id]})
		}
	}
	return list
}
