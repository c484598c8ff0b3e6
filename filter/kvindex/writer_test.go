package kvindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

// stored reads the payload of id as a new reader does.
func stored(t testing.TB, mem *shared.Mem, o Options, id uint64) []byte {
	t.Helper()
	r := NewReader(mem.View(), o)
	r.Begin(1)
	payload, err := r.payload(id)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func begun(t testing.TB, mem *shared.Mem, o Options) *Writer {
	t.Helper()
	w := NewWriter(mem.View(), o)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestApply(t *testing.T) {
	mem, o := shared.NewMem(), Options{Buckets: 2}
	w := begun(t, mem, o)
	f := func(id uint64, want string) {
		t.Helper()
		if got := stored(t, mem, o, id); string(got) != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
	w.Queue(2, []byte("two"))
	w.Queue(4, []byte("four"))
	w.Queue(6, []byte("six"))
	w.Queue(4, []byte("4"))
	w.Queue(6, []byte("half a dozen"))
	w.Queue(3, []byte("three"))
	f(2, "")
	applyAll(t, w)
	f(2, "two")
	f(4, "4")
	f(6, "half a dozen")
	f(3, "three")
	f(8, "")
	w.Queue(4, nil)
	w.Queue(8, []byte("x"))
	w.Queue(8, nil)
	w.Queue(10, nil)
	w.Queue(10, []byte("ten"))
	w.Queue(6, []byte("6"))
	applyAll(t, w)
	f(2, "two")
	f(4, "")
	f(6, "6")
	f(8, "")
	f(10, "ten")
	f(3, "three")
}

func TestApplyInSlices(t *testing.T) {
	mem, o := shared.NewMem(), Options{Buckets: 16}
	w := begun(t, mem, o)
	for id := range uint64(64) {
		w.Queue(id, []byte{byte(id)})
	}
	gets, sets := mem.Gets, mem.Sets
	for i := range 5 {
		done, err := w.Apply(3)
		if err != nil || done || w.Pending() != 13-3*i {
			t.Errorf("slice %d: %v, %v, %d pending", i, done, err, w.Pending())
		}
	}
	w.Queue(0, []byte("new")) // of a bucket that is written
	w.Queue(15, []byte("newer"))
	if done, err := w.Apply(3); !done || err != nil || w.Pending() != 0 {
		t.Errorf("last slice: %v, %v, %d pending", done, err, w.Pending())
	}
	if gets, sets := mem.Gets-gets, mem.Sets-sets; gets != 17+6 || sets != 17 {
		t.Errorf("17 buckets in 6 slices took %d reads and %d writes", gets, sets)
	}
	for id := range uint64(64) {
		want := []byte{byte(id)}
		switch id {
		case 0:
			want = []byte("new")
		case 15:
			want = []byte("newer")
		}
		if got := stored(t, mem, o, id); !bytes.Equal(got, want) {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
	if done, err := w.Apply(0); !done || err != nil {
		t.Errorf("nothing queued: %v, %v", done, err)
	}
}

func TestWhatIsThereIsNotWritten(t *testing.T) {
	mem := shared.NewMem()
	w := begun(t, mem, Options{})
	for range 2 {
		w.Queue(5, []byte("five"))
		w.Queue(6, nil)
		applyAll(t, w)
	}
	if mem.Sets != 3 { // the head, each bucket once
		t.Errorf("%d writes", mem.Sets)
	}
}

func TestRecordsWithoutRoom(t *testing.T) {
	mem, o := shared.NewMem(), Options{Buckets: 1, BucketBytes: 256}
	w := begun(t, mem, o)
	full := bytes.Repeat([]byte("x"), 256-bucketHead-entryHead)
	f := func(what string, dropped uint64, want ...string) {
		t.Helper()
		applyAll(t, w)
		for i, want := range want {
			if got := stored(t, mem, o, uint64(i)); string(got) != want {
				t.Errorf("%s: record %d is %q, want %q", what, i, got, want)
			}
		}
		if got := w.Stats().Dropped; got != dropped {
			t.Errorf("%s: %d dropped, want %d", what, got, dropped)
		}
	}
	w.Queue(0, full)
	f("fits", 0, string(full))
	w.Queue(1, []byte("y"))
	f("no room", 1, string(full), "")
	w.Queue(0, append(full, 'x'))
	f("grown too large", 2, "", "")
	w.Queue(1, []byte("y"))
	f("room again", 2, "", "y")
	w.Queue(1, nil)
	w.Queue(0, full)
	f("in the place of another", 2, string(full), "")
	w.Queue(0, make([]byte, MaxPayload+1))
	w.Queue(1, []byte("z"))
	f("larger than any may be", 3, "", "z")
}

func TestEpochs(t *testing.T) {
	mem := shared.NewMem()
	old := begun(t, mem, Options{})
	old.Queue(5, []byte("five"))
	applyAll(t, old)
	if got := stored(t, mem, Options{}, 5); string(got) != "five" {
		t.Fatalf("%q", got)
	}
	first, complete, err := old.State()
	if first == 0 || complete || err != nil {
		t.Errorf("state %d, %v, %v", first, complete, err)
	}
	w := begun(t, mem, Options{})
	second, _, _ := w.State()
	if second == first {
		t.Error("the epoch is the same")
	}
	if got := stored(t, mem, Options{}, 5); got != nil {
		t.Errorf("%q is from another epoch", got)
	}
	old.Queue(6, []byte("six"))
	if _, err := old.Apply(1); !errors.Is(err, ErrDeposed) {
		t.Errorf("a writer of another epoch wrote: %v", err)
	}
	if err := old.Complete(); !errors.Is(err, ErrDeposed) {
		t.Errorf("a writer of another epoch completed: %v", err)
	}
	w.Queue(2048+5, []byte("in the same bucket"))
	applyAll(t, w)
	if got := stored(t, mem, Options{}, 5); got != nil {
		t.Errorf("%q came back", got)
	}
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
	if epoch, complete, err := old.State(); epoch != second || !complete || err != nil {
		t.Errorf("state %d, %v, %v", epoch, complete, err)
	}
}

func TestResume(t *testing.T) {
	mem := shared.NewMem()
	a, b := NewWriter(mem.View(), Options{}), NewWriter(mem.View(), Options{})
	if complete, err := a.Resume(); complete || err != nil {
		t.Errorf("nothing there: %v, %v", complete, err)
	}
	fill(t, a, map[uint64][]byte{5: []byte("five")})
	epoch, _, _ := a.State()
	if complete, err := b.Resume(); !complete || err != nil {
		t.Errorf("complete: %v, %v", complete, err)
	}
	a.Queue(5, []byte("old"))
	if _, err := a.Apply(1); !errors.Is(err, ErrDeposed) {
		t.Errorf("the writer that was taken over from wrote: %v", err)
	}
	b.Queue(6, []byte("six"))
	applyAll(t, b)
	for id, want := range map[uint64]string{5: "five", 6: "six"} {
		if got := stored(t, mem, Options{}, id); string(got) != want {
			t.Errorf("%d: %q", id, got)
		}
	}
	if now, complete, _ := b.State(); now != epoch || !complete {
		t.Errorf("epoch %d, %v, want that of before", now, complete)
	}
	if err := b.Begin(); err != nil {
		t.Fatal(err)
	}
	if complete, err := a.Resume(); complete || err != nil {
		t.Errorf("not complete: %v, %v", complete, err)
	}
	if _, err := NewWriter(mem.View(), Options{}).Resume(); err != nil {
		t.Error(err)
	}
	idle := NewWriter(mem.View(), Options{})
	idle.Queue(1, []byte("x"))
	if _, err := idle.Apply(1); !errors.Is(err, ErrDeposed) {
		t.Errorf("a writer that never began wrote: %v", err)
	}
}

func TestTermsWrapAround(t *testing.T) {
	mem := shared.NewMem()
	last := head{term: 1<<32 - 1, epoch: 9}
	mem.View().Set([]byte(shared.BlocksKey), last.append(nil), 0)
	w := begun(t, mem, Options{})
	if epoch, _, err := w.State(); epoch != 1 || err != nil {
		t.Errorf("epoch %d, %v", epoch, err)
	}
	w.Queue(1, []byte("x"))
	applyAll(t, w)
}

// faulty is a store whose calls fail as told.
type faulty struct {
	shared.Store
	get, set error
	before   func() // called before each Set
}

func (s *faulty) Get(key []byte) ([]byte, uint32, error) {
	if s.get != nil {
		return nil, 0, s.get
	}
	return s.Store.Get(key)
}

func (s *faulty) Set(key, value []byte, cas uint32) error {
	if s.before != nil {
		s.before()
	}
	if s.set != nil {
		return s.set
	}
	return s.Store.Set(key, value, cas)
}

var errBroken = errors.New("broken")

func TestErrorsOfTheStore(t *testing.T) {
	mem := shared.NewMem()
	s := &faulty{Store: mem.View()}
	w := NewWriter(s, Options{})
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	state := func() error { _, _, err := w.State(); return err }
	apply := func() error { _, err := w.Apply(10); return err }
	resume := func() error { _, err := w.Resume(); return err }
	s.get = errBroken
	check("begin", w.Begin(), errBroken)
	check("resume", resume(), errBroken)
	check("state", state(), errBroken)
	s.get, s.set = nil, errBroken
	check("begin", w.Begin(), errBroken)
	s.set = shared.ErrCAS
	check("begin", w.Begin(), shared.ErrCAS)
	s.set = nil
	check("begin", w.Begin(), nil)
	w.Queue(5, []byte("five"))
	s.set = errBroken
	check("apply", apply(), errBroken)
	s.set = shared.ErrCAS
	check("apply", apply(), shared.ErrCAS)
	s.set, s.get = nil, errBroken
	check("apply", apply(), errBroken)
	check("complete", w.Complete(), errBroken)
	s.get = nil
	check("apply", apply(), nil)
	check("complete", w.Complete(), nil)
	if got := stored(t, mem, Options{}, 5); string(got) != "five" {
		t.Errorf("after the errors: %q", got)
	}

	r := NewReader(s, Options{})
	if !r.Begin(1) {
		t.Error("no index")
	}
	s.get = errBroken
	runs := []Run{{3, 3}}
	check("look-up", r.Lookup([]uint64{5}, runs), errBroken)
	if _, _, ok := r.LookupText(5, 10, runs); ok || runs[0] != (Run{}) {
		t.Errorf("text known without a store, runs %v", runs)
	}
	if r.Begin(100) {
		t.Error("an index without a store")
	}
	s.get = nil
	if !r.Begin(200) {
		t.Error("no index after the error")
	}
	if s := r.Stats(); s.Damaged != 0 {
		t.Errorf("%+v", s)
	}
}

// Someone else writes a bucket between the writer's read and its write.
func TestLostRaces(t *testing.T) {
	mem, o := shared.NewMem(), Options{Buckets: 1}
	other := mem.View()
	s := &faulty{Store: mem.View()}
	w := NewWriter(s, o)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	key, races := shared.AppendBlocksKey(nil, 0), 2
	s.before = func() {
		if races > 0 {
			races--
			value := appendEntry(appendBucketHead(nil, w.head.epoch), 7, []byte{byte(races)})
			if err := other.Set(key, value, 0); err != nil {
				t.Error(err)
			}
		}
	}
	w.Queue(5, []byte("five"))
	applyAll(t, w)
	if got := stored(t, mem, o, 5); string(got) != "five" {
		t.Errorf("%q", got)
	}
	if got := stored(t, mem, o, 7); !bytes.Equal(got, []byte{0}) {
		t.Errorf("the other's record is %q", got)
	}
	if c := w.Stats().Conflicts; c != 2 {
		t.Errorf("%d conflicts", c)
	}
}

func TestDamagedBuckets(t *testing.T) {
	o := Options{Buckets: 1}
	good := func(epoch uint32) []byte {
		b := appendEntry(appendBucketHead(nil, epoch), 5, []byte("five"))
		return appendEntry(b, 6, []byte("six"))
	}
	f := func(what string, value func(epoch uint32) []byte, five, six string, damaged uint64) {
		t.Helper()
		mem := shared.NewMem()
		w := begun(t, mem, o)
		mem.View().Set(shared.AppendBlocksKey(nil, 0), value(w.head.epoch), 0)
		if got := stored(t, mem, o, 5); string(got) != five {
			t.Errorf("%s: reads %q, want %q", what, got, five)
		}
		w.Queue(7, []byte("seven"))
		applyAll(t, w)
		for id, want := range map[uint64]string{5: five, 6: six, 7: "seven"} {
			if got := stored(t, mem, o, id); string(got) != want {
				t.Errorf("%s: record %d is %q, want %q", what, id, got, want)
			}
		}
		if got := w.Stats().Damaged; got != damaged {
			t.Errorf("%s: %d damaged, want %d", what, got, damaged)
		}
	}
	cut := func(n int) func(uint32) []byte { return func(e uint32) []byte { b := good(e); return b[:len(b)-n] } }
	f("whole", cut(0), "five", "six", 0)
	f("last payload cut", cut(1), "five", "", 1)
	f("last head cut", cut(10), "five", "", 1)
	f("last head gone", cut(13), "five", "", 0)
	f("bucket head only", cut(27), "", "", 0)
	f("bucket head cut", cut(28), "", "", 1)
	f("empty", func(uint32) []byte { return nil }, "", "", 1)
	f("other magic", func(e uint32) []byte { b := good(e); b[0]++; return b }, "", "", 1)
	f("other epoch", func(e uint32) []byte { return good(e + 1) }, "", "", 0)
	f("twice the same", func(e uint32) []byte { return append(good(e), good(e)[bucketHead:]...) }, "five", "six", 0)
	f("size beyond the end", func(e uint32) []byte {
		b := good(e)
		binary.LittleEndian.PutUint16(b[bucketHead+8:], 60000)
		return b
	}, "", "", 1)
}

// FuzzBucket holds that no bytes in the place of a bucket do harm, and that
// what is written over them is read.
func FuzzBucket(f *testing.F) {
	f.Add([]byte(nil), uint64(5))
	f.Add(appendEntry(appendBucketHead(nil, 1), 5, AppendNode(nil, &goldenRoot)), uint64(5))
	f.Add(appendEntry(appendEntry(appendBucketHead(nil, 1), 5, nil), 5, []byte("twice")), uint64(4))
	f.Add(appendEntry(appendEntry(appendBucketHead(nil, 1), 9, []byte("x")), 5, AppendText(nil, &goldenText)), uint64(9))
	f.Fuzz(func(t *testing.T, value []byte, id uint64) {
		mem, o := shared.NewMem(), Options{Buckets: 1, BucketBytes: 64 << 10}
		w := begun(t, mem, o)
		mem.View().Set(shared.AppendBlocksKey(nil, 0), value, 0)
		r := NewReader(mem.View(), o)
		r.Begin(1)
		runs := make([]Run, 3)
		if err := r.Lookup([]uint64{id, id + 1}, runs); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if run.GPU > run.Any || run.Any > 2 {
				t.Errorf("runs %v of 2 blocks", runs)
			}
		}
		depth, _, ok := r.LookupText(id, 100, runs)
		for _, run := range runs {
			if run.GPU > depth || run.Any > depth || !ok && run != (Run{}) {
				t.Errorf("runs %v of %d blocks, known %v", runs, depth, ok)
			}
		}
		w.Queue(id, []byte("here"))
		w.Queue(id+1, nil)
		applyAll(t, w)
		if len(value) < 60<<10 && string(stored(t, mem, o, id)) != "here" {
			t.Errorf("%x: what was written over it is %q", value, stored(t, mem, o, id))
		}
		if got := stored(t, mem, o, id+1); got != nil {
			t.Errorf("%x: what was removed is %q", value, got)
		}
	})
}

// FuzzRecords plays a stream of records and writer's calls and compares the
// index with a map.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("\x01\x05abcde\x02\x03xyz\x01\x00\xf0\x02\x02\xf1\x03\x02zz\xff\xf2"))
	f.Add([]byte("\x01\xc8\x02\xc8\x03\xc8\x04\xc8\x05\xc8\xff\xf3\x01\x01a\xff"))
	f.Add([]byte("\xf2\xf3\xf0\xff\x10\x01a\xf3\xff\x11\x01b\xff"))
	f.Fuzz(func(t *testing.T, script []byte) {
		mem, o := shared.NewMem(), Options{Buckets: 4, BucketBytes: 512}
		w := begun(t, mem, o)
		lost := uint64(0)
		queued, applied := make(map[uint64]string), make(map[uint64]string)
		for len(script) > 0 {
			op := script[0]
			script = script[1:]
			switch {
			case op >= 0xf8: // apply all, compare
				applyAll(t, w)
				maps.Copy(applied, queued)
				clear(queued)
				compareIndex(t, mem, o, applied, lost+w.Stats().Dropped > 0)
			case op >= 0xf4: // some of it
				if _, err := w.Apply(int(op - 0xf3)); err != nil {
					t.Fatal(err)
				}
			case op >= 0xf2: // another takes over once all is applied
				applyAll(t, w)
				maps.Copy(applied, queued)
				clear(queued)
				lost += w.Stats().Dropped
				w = NewWriter(mem.View(), o)
				if _, err := w.Resume(); err != nil {
					t.Fatal(err)
				}
			case op >= 0xf0:
				if err := w.Begin(); err != nil {
					t.Fatal(err)
				}
				clear(queued)
				clear(applied)
			default:
				n := 0
				if len(script) > 0 {
					n = min(int(script[0]), len(script)-1)
					script = script[1:]
				}
				w.Queue(uint64(op%16), script[:n])
				queued[uint64(op%16)] = string(script[:n])
				script = script[n:]
			}
		}
	})
}

func compareIndex(t *testing.T, mem *shared.Mem, o Options, want map[uint64]string, dropped bool) {
	t.Helper()
	r := NewReader(mem.View(), o)
	r.Begin(1)
	for id := range uint64(16) {
		got, err := r.payload(id)
		if err != nil || string(got) != want[id] && !(dropped && len(got) == 0) {
			t.Errorf("record %d is %q, %v, want %q", id, got, err, want[id])
		}
	}
}
