package publish

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// reader is a filter: it follows a hub, and keeps the records it is handed.
type reader struct {
	view    state.View
	pools   []string
	records map[string]string // pool and id -> payload
}

func newReader(pools ...string) *reader {
	r := &reader{pools: pools}
	r.view.Records = r
	return r
}

func (r *reader) Begin() { r.records = map[string]string{} }

func (r *reader) Record(pool string, id uint64, payload []byte) {
	key := pool + " " + strconv.FormatUint(id, 10)
	if payload == nil {
		delete(r.records, key)
		return
	}
	r.records[key] = string(payload)
}

// poll asks once and takes the answer in, unless it is lost. It reports
// whether there was one.
func (r *reader) poll(t *testing.T, h *Hub, lost bool) bool {
	t.Helper()
	q := request(t, r.view.Query(r.pools))
	page, how := h.poll(t.Context(), &q, choose(q.Pools), 0)
	if how != replyPage {
		return false
	}
	if len(page) > h.limits.page {
		t.Fatalf("a page of %d bytes", len(page))
	}
	if !lost {
		if _, err := r.view.Apply(page); err != nil {
			t.Fatalf("%s: %v", r.view.Query(r.pools), err)
		}
	}
	return true
}

// wants is what of all records r has asked for.
func (r *reader) wants(all map[string]string) map[string]string {
	if len(r.pools) == 0 {
		return all
	}
	some := map[string]string{}
	for key, payload := range all {
		if pool, _, _ := strings.Cut(key, " "); slices.Contains(r.pools, pool) {
			some[key] = payload
		}
	}
	return some
}

// world is a hub, what it should know, and some readers.
type world struct {
	*rand.Rand
	t       *testing.T
	hub     *Hub
	names   []string
	waiting int32
	all     map[string]string
	readers []*reader
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 9)), t: t, hub: NewHub(), names: []string{"a", "b", "c"}, all: map[string]string{}}
	w.hub.limits = limits{
		page: 1000 + w.IntN(3000), kept: 2 + w.IntN(30), changes: 1 + w.IntN(2000), index: 1 << 20,
		smallDelta: w.IntN(2000), answers: w.IntN(4), long: w.IntN(20_000), age: w.Uint64N(12),
	}
	w.publish()
	for range 4 {
		w.readers = append(w.readers, newReader(w.choice()...))
	}
	return w
}

func (w *world) choice() []string {
	return [][]string{nil, {"a"}, {"b", "c"}, {"c", "a", "b"}, {"a", "elsewhere"}}[w.IntN(5)]
}

// publish changes some records, and now and then the pools.
func (w *world) publish() {
	if w.IntN(2) == 0 {
		w.waiting++
	}
	var kv []state.Patch
	for _, name := range w.names {
		if w.IntN(2) == 0 {
			kv = append(kv, w.patch(name, w.IntN(1+w.IntN(60))))
		}
	}
	w.hub.Publish(fleet(2, w.waiting, w.names...), kv)
}

func (w *world) patch(pool string, n int) state.Patch {
	p := state.Patch{Pool: pool}
	seen := map[uint64]bool{}
	for range n {
		r := state.Record{ID: w.Uint64N(100) << w.IntN(50)}
		if seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		key := pool + " " + strconv.FormatUint(r.ID, 10)
		delete(w.all, key)
		if w.IntN(3) > 0 {
			r.Payload = bytes.Repeat([]byte{'a' + byte(w.IntN(26))}, 1+w.IntN(200))
			w.all[key] = string(r.Payload)
		}
		p.Records = append(p.Records, r)
	}
	return p
}

// step lets something happen to a reader.
func (w *world) step() {
	i := w.IntN(len(w.readers))
	r := w.readers[i]
	switch w.IntN(16) {
	case 0:
		w.readers[i] = newReader(w.choice()...) // the proxy started anew
	case 1:
		r.pools = w.choice()
		r.view.Restart()
	case 2:
		r.view.Restart()
	case 3, 4:
		r.poll(w.t, w.hub, true)
	default:
		r.poll(w.t, w.hub, false)
	}
}

// settle lets all readers ask until there is nothing new.
func (w *world) settle() {
	w.t.Helper()
	for i, r := range w.readers {
		for n := 0; r.poll(w.t, w.hub, false); n++ {
			if n > 1000 {
				w.t.Fatal("no end")
			}
		}
		if want := r.wants(w.all); !maps.Equal(r.records, want) {
			w.t.Fatalf("reader %d of %q has\n%v\nwant\n%v", i, r.pools, r.records, want)
		}
		want := choose(r.pools)
		if !state.Equal(r.view.Snapshot(), want.of(w.hub.Latest())) {
			w.t.Fatalf("reader %d of %q has another state", i, r.pools)
		}
	}
}

// Readers that poll at any time, lose answers, start anew and choose other
// pools end with what control knows.
func TestReadersEndWithAllRecords(t *testing.T) {
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		for range 150 {
			if w.IntN(4) == 0 {
				w.publish()
			}
			w.step()
		}
		w.settle()
	}
}

// FuzzReaders is the same with histories that nobody thought of.
func FuzzReaders(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2, 3})
	f.Add(uint64(2), bytes.Repeat([]byte{3, 2, 2}, 20))
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		w := newWorld(t, seed)
		for _, b := range script[:min(len(script), 300)] {
			if b%4 == 0 {
				w.publish()
			} else {
				w.step()
			}
		}
		w.settle()
	})
}

// nodes are n records of an index, of about 8 blocks each.
func nodes(n int) []state.Record {
	r := rand.New(rand.NewPCG(1, 1))
	list := make([]state.Record, n)
	for i := range list {
		list[i] = state.Record{ID: r.Uint64(), Payload: bytes.Repeat([]byte{7}, 48+r.IntN(16))}
	}
	return list
}

func header(t *testing.T, page []byte) state.Header {
	t.Helper()
	h, err := state.ParseHeader(page)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRecordsAloneAreNews(t *testing.T) {
	h := NewHub()
	pools := fleet(2, 0, "a", "b")
	h.Publish(pools, nil)
	f := func(generation uint64, kv ...state.Patch) {
		t.Helper()
		h.Publish(pools, kv)
		if g := h.Latest().Generation; g != generation {
			t.Errorf("generation %d, want %d", g, generation)
		}
	}
	x := func(payload string) state.Patch {
		return state.Patch{Pool: "a", Records: []state.Record{{ID: 1, Payload: []byte(payload)}}}
	}
	f(2, x("one"))
	f(2, x("one")) // as it was
	f(3, x("two"))
	f(3, state.Patch{Pool: "a", Records: []state.Record{{ID: 9}}}) // was not there
	f(3, state.Patch{Pool: "a"})
	f(3, state.Patch{Pool: "elsewhere", Records: []state.Record{{ID: 1, Payload: []byte("x")}}})
	f(4, x("")) // the same as removed
	if r := newReader(); !r.poll(t, h, false) || len(r.records) != 0 {
		t.Errorf("left: %v", r.records)
	}
	for pool, want := range map[string]reply{"a": replyPage, "b": replyNothing} {
		if _, how, _ := h.try(&state.Request{Epoch: h.epoch, Gen: 1}, choose([]string{pool}), false); how != want {
			t.Errorf("who waits for pool %s: reply %d, want %d", pool, how, want)
		}
	}
}

// What changes more than all there is, is sent as the whole, but not if that
// is little.
func TestWholeInPlaceOfLargeDelta(t *testing.T) {
	f := func(n int, whole bool) {
		t.Helper()
		h := NewHub()
		pools := fleet(2, 0, "a")
		list := nodes(n)
		h.Publish(pools, []state.Patch{{Pool: "a", Records: list}})
		r := newReader()
		for r.poll(t, h, false) {
		}
		gone := slices.Clone(list)
		for i := range gone {
			gone[i].Payload = nil
		}
		h.Publish(pools, []state.Patch{{Pool: "a", Records: gone[:n-1]}})
		q := request(t, r.view.Query(nil))
		page, _ := h.poll(t.Context(), &q, choose(nil), 0)
		if head := header(t, page); head.Whole() != whole {
			t.Errorf("%d of %d records removed: %+v, want a whole %v", n-1, n, head, whole)
		}
		for r.poll(t, h, false) {
		}
		if len(r.records) != 1 {
			t.Errorf("%d records are left", len(r.records))
		}
	}
	f(10, false)
	f(20_000, true)
}

// What changed often is sent once, as it is now.
func TestDeltaHasEachRecordOnce(t *testing.T) {
	h := NewHub()
	pools := fleet(1, 0, "a")
	for i := range byte(10) {
		h.Publish(pools, []state.Patch{{Pool: "a", Records: []state.Record{{ID: 1, Payload: []byte{i}}, {ID: 2, Payload: []byte{i}}}}})
	}
	page, _ := h.poll(t.Context(), &state.Request{Epoch: h.epoch, Gen: 1}, choose(nil), 0)
	record := state.Record{ID: 1, Payload: []byte{9}}
	if empty := state.Pages(h.at(9).Snapshot, h.Latest(), state.MaxPage, state.Patch{Pool: "a", Records: []state.Record{record}}); len(page) != len(empty[0])+record.Size() {
		t.Errorf("a delta of two records has %d bytes", len(page))
	}
}

// Many that ask for a large whole while news come in are given one that was
// encoded once, until it is too old; nobody is led back to what was before.
func TestLargeWholeIsSharedOverGenerations(t *testing.T) {
	h := NewHub()
	list := nodes(60_000)
	publish := func(waiting int) { h.Publish(fleet(2, int32(waiting), "a"), nil) }
	h.Publish(fleet(2, 0, "a"), []state.Patch{{Pool: "a", Records: list}})
	first, _ := h.poll(t.Context(), &state.Request{}, choose(nil), 0)
	if !header(t, first).More {
		t.Fatalf("one page of %d bytes", len(first))
	}
	for i := range int(h.limits.age) {
		publish(i + 1)
		page, _ := h.poll(t.Context(), &state.Request{}, choose(nil), 0)
		if (&page[0] == &first[0]) != (i < int(h.limits.age)-1) {
			t.Fatalf("%d states later: the same %v", i+1, &page[0] == &first[0])
		}
	}
	if page, _ := h.poll(t.Context(), &state.Request{Epoch: h.epoch, Page: 1, To: 1}, choose(nil), 0); header(t, page).Page != 1 {
		t.Error("the second page of the first whole is gone")
	}
	if page, _ := h.poll(t.Context(), &state.Request{Epoch: h.epoch + 1, Page: 1, To: 1}, choose(nil), 0); header(t, page).Page != 0 {
		t.Error("a page of another instance was asked for, and one of this was given")
	}
	// All records change twice over: the delta is more than the whole.
	for n := range 2 {
		for i := range list {
			list[i].Payload = append([]byte{byte(n)}, list[i].Payload...)
		}
		h.Publish(fleet(2, 99, "a"), []state.Patch{{Pool: "a", Records: list[:len(list)/2]}, {Pool: "a", Records: list[len(list)/2:]}})
	}
	held := h.Latest().Generation - 2
	page, _ := h.poll(t.Context(), &state.Request{Epoch: h.epoch, Gen: held}, choose(nil), 0)
	if head := header(t, page); head.To <= held {
		t.Errorf("led back from %d to %d", held, head.To)
	}
}

func TestBounds(t *testing.T) {
	h := NewHub()
	h.limits.index, h.limits.changes, h.limits.long = 10_000, 500, 25_000
	h.limits.page = 2000
	pools := fleet(1, 0, "a")
	list := nodes(1000)
	h.Publish(pools, []state.Patch{{Pool: "a", Records: list}})
	if h.index.bytes > 10_000 || h.Dropped() == 0 {
		t.Errorf("%d bytes, %d dropped", h.index.bytes, h.Dropped())
	}
	dropped, r := h.Dropped(), newReader()
	for r.poll(t, h, false) {
	}
	before := len(r.records)
	h.Publish(pools, []state.Patch{{Pool: "a", Records: []state.Record{{ID: list[0].ID, Payload: make([]byte, state.MaxPayload+1)}}}})
	if h.Dropped() != dropped+1 || h.index.pools["a"].payload[list[0].ID] != nil {
		t.Error("a payload too long was kept, or what it should replace")
	}
	if r.poll(t, h, false); len(r.records) != before-1 {
		t.Errorf("a reader has %d records, want one less than %d", len(r.records), before)
	}
	for i := range 100 {
		for j := range list[:60] {
			list[j].Payload = []byte{byte(i), byte(j)}
		}
		h.Publish(pools, []state.Patch{{Pool: "a", Records: slices.Clone(list[:60])}})
		h.poll(t.Context(), &state.Request{}, choose(nil), 0)
		if h.changes > 500 || h.answers.bytes > 25_000 {
			t.Fatalf("%d changes, %d bytes of answers are kept", h.changes, h.answers.bytes)
		}
	}
	for id, of := range h.index.pools["a"].payload {
		h.Publish(pools, []state.Patch{{Pool: "a", Records: []state.Record{{ID: id}}}})
		if of == nil {
			t.Fatal("an empty payload is kept")
		}
	}
	if h.index.bytes != 0 || h.index.pools["a"].bytes != 0 {
		t.Errorf("an empty index has %d bytes", h.index.bytes)
	}
}

// 10,000 changed blocks on top of 240,000, in records of 8: how long from
// Publish to the pages, and what is allocated.
func BenchmarkPublishDelta(b *testing.B) {
	h := NewHub()
	pools := fleet(8, 0, "a")
	all := nodes(30_000)
	h.Publish(pools, []state.Patch{{Pool: "a", Records: all}})
	some := all[:1250]
	b.ReportAllocs()
	for n := byte(0); b.Loop(); n++ {
		for i := range some {
			some[i].Payload = bytes.Clone(some[i].Payload)
			some[i].Payload[0] = n
		}
		q := state.Request{Epoch: h.epoch, Gen: h.Latest().Generation}
		h.Publish(pools, []state.Patch{{Pool: "a", Records: some}})
		if page, _ := h.poll(b.Context(), &q, choose(nil), 0); len(page) < 60_000 {
			b.Fatal(len(page))
		}
	}
}

// The whole of 240,000 and of 1,000,000 blocks, encoded once.
func BenchmarkWhole(b *testing.B) {
	for _, blocks := range []int{240_000, 1_000_000} {
		b.Run(fmt.Sprint(blocks), func(b *testing.B) {
			h := NewHub()
			h.Publish(fleet(8, 0, "a"), []state.Patch{{Pool: "a", Records: nodes(blocks / 8)}})
			b.SetBytes(int64(h.index.bytes))
			b.ReportAllocs()
			for b.Loop() {
				h.answers = answers{}
				h.poll(b.Context(), &state.Request{}, choose(nil), 0)
			}
		})
	}
}

// 1,000 filters that each ask for the whole of 1,000,000 blocks, while a new
// state comes each millisecond.
func BenchmarkThousandWholes(b *testing.B) {
	h := NewHub()
	h.Publish(fleet(8, 0, "a"), []state.Patch{{Pool: "a", Records: nodes(125_000)}})
	done := make(chan struct{})
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for i := int32(1); ; i++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				h.Publish(fleet(8, i, "a"), nil)
			}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		var askers sync.WaitGroup
		for range 1000 {
			askers.Go(func() {
				q := state.Request{}
				for more := true; more; {
					page, _ := h.poll(b.Context(), &q, choose(nil), 0)
					head, _ := state.ParseHeader(page)
					q.Epoch, q.To, q.Page, more = head.Epoch, head.To, head.Page+1, head.More
				}
			})
		}
		askers.Wait()
	}
	close(done)
	publisher.Wait()
}
