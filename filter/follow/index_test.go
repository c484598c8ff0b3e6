package follow

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// whole is what control knows of the KV index.
type whole map[uint64]string

// control is a control service with a memory for all that ever was.
type control struct {
	epoch  uint64
	max    int     // bytes of a page
	states []whole // of generation i+1
	doubts []string
}

// next makes a new generation, in which some records differ.
func (c *control) next(r *rand.Rand, changes int) {
	now := whole{}
	if len(c.states) > 0 {
		now = maps.Clone(c.states[len(c.states)-1])
	}
	for range changes {
		id := 1 + r.Uint64N(60)
		if r.IntN(4) == 0 {
			delete(now, id)
			continue
		}
		now[id] = strconv.FormatUint(c.epoch, 10) + "/" + strconv.Itoa(len(c.states)) + strings.Repeat(".", r.IntN(40))
	}
	c.states = append(c.states, now)
}

func (c *control) at(generation uint64) (*state.Snapshot, whole) {
	s := snapshot(generation, "10.0.0."+strconv.FormatUint(generation, 10)+":8000", "10.1.0."+strconv.FormatUint(c.epoch, 10)+":8000")
	s.Epoch = c.epoch
	return s, c.states[generation-1]
}

func (c *control) latest() uint64 { return uint64(len(c.states)) }

// answer is what control says to a poll.
func (c *control) answer(t *testing.T, path string) (status int, body []byte) {
	t.Helper()
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(q.Get(name), 10, 64)
		return n
	}
	c.doubts = append(c.doubts, q["doubt"]...)
	from, to := number("gen"), number("to")
	if number("epoch") != c.epoch {
		from, to = 0, 0
	}
	if to == 0 {
		to = c.latest()
	}
	if from == to {
		return 204, nil
	}
	pages := c.pages(from, to)
	return 200, pages[min(number("page"), uint64(len(pages)-1))]
}

// changed are the records that some generation after from changed, also those
// that came and went: a leader may have died with a part of that.
func (c *control) changed(from, to uint64) whole {
	ids := whole{}
	for g := from; g < to; g++ {
		before, after := c.states[g-1], c.states[g]
		for id := range before {
			if after[id] != before[id] {
				ids[id] = ""
			}
		}
		for id := range after {
			if after[id] != before[id] {
				ids[id] = ""
			}
		}
	}
	return ids
}

func (c *control) pages(from, to uint64) [][]byte {
	s, now := c.at(to)
	p := state.Patch{Pool: "default"}
	if from == 0 {
		for id, payload := range now {
			p.Records = append(p.Records, state.Record{ID: id, Payload: []byte(payload)})
		}
	}
	var old *state.Snapshot
	if from > 0 {
		old, _ = c.at(from)
		for id := range c.changed(from, to) {
			p.Records = append(p.Records, state.Record{ID: id})
			if payload, ok := now[id]; ok {
				p.Records[len(p.Records)-1].Payload = []byte(payload)
			}
		}
	}
	slices.SortFunc(p.Records, func(a, b state.Record) int { return cmp.Compare(a.ID, b.ID) }) // each page is made anew
	return state.Pages(old, s, c.max, p)
}

// indexed is the index in shared data, and whether it is complete. It reads
// the form that package kvindex describes.
func indexed(t *testing.T, s shared.Store) (w whole, complete bool) {
	t.Helper()
	head, _, err := s.Get([]byte(shared.BlocksKey))
	if errors.Is(err, shared.ErrNotFound) {
		return nil, false
	}
	complete, epoch := head[12] == 1, binary.LittleEndian.Uint32(head[8:])
	w = whole{}
	for n := range uint32(64) { // no id is larger
		bucket, _, err := s.Get(shared.AppendBlocksKey(nil, n))
		if err != nil || binary.LittleEndian.Uint32(bucket[4:]) != epoch {
			continue
		}
		for b := bucket[8:]; len(b) > 0; {
			end := 10 + int(binary.LittleEndian.Uint16(b[8:]))
			w[binary.LittleEndian.Uint64(b)] = string(b[10:end])
			b = b[end:]
		}
	}
	return w, complete
}

// same fails unless shared data holds what control knows, all of it.
func (c *control) same(t *testing.T, s shared.Store, what string) {
	t.Helper()
	want, records := c.at(c.latest())
	if got := stored(t, s); got == nil || !state.Equal(got, want) {
		t.Fatalf("%s: shared data holds state %+v, want %+v", what, got, want)
	}
	got, complete := indexed(t, s)
	if !complete || !maps.Equal(got, records) {
		t.Fatalf("%s: the index, complete %v, holds\n%v\nwant\n%v", what, complete, got, records)
	}
}

// run polls until control has nothing new to say.
func run(t *testing.T, f *Follower, c *control, now int64) {
	t.Helper()
	for range 1000 {
		f.Work(now)
		path, ok := f.Next(now)
		if !ok {
			if f.Pending() {
				continue
			}
			now += 1000 // backing off
			continue
		}
		status, body := c.answer(t, path)
		f.Answer(now, status, body)
		if status == 204 {
			return
		}
	}
	t.Fatalf("no end: %v", f.Err())
}

func TestIndexFollowsControl(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := &control{epoch: 7, max: 700}
	m := shared.NewMem()
	f := New(m.View(), dice(1), []string{"default"})
	for step := range 50 {
		c.next(r, r.IntN(60))
		if step == 30 {
			c.epoch = 8 // another instance, with another past
		}
		run(t, f, c, 1000)
		c.same(t, m.View(), "step "+strconv.Itoa(step))
	}
}

// A VM may die between any two calls on shared data: whoever comes after it
// ends with what control knows, be it another instance of control that is
// asked.
func TestCrashes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		instances := [2]*control{{epoch: 7, max: 300 + r.IntN(1500)}, {epoch: 8, max: 300 + r.IntN(1500)}}
		c := instances[0]
		m := shared.NewMem()
		now := int64(1_000_000)
		for range 8 {
			crashed := &interrupted{Store: m.View(), after: r.IntN(200), do: func() { panic(errCrash) }}
			f := New(crashed, dice(r.Uint64()), []string{"default"})
			lives(t, f, c, r, now)
			now += shared.LeaseTerm // until the next VM is let
			c = instances[r.IntN(2)]
			c.next(r, 5)
		}
		run(t, New(m.View(), dice(99), []string{"default"}), c, now+shared.LeaseTerm)
		c.same(t, m.View(), "seed "+strconv.FormatUint(seed, 10))
	}
}

var errCrash = errors.New("crash")

// lives follows some changes at control, unless f's VM dies before.
func lives(t *testing.T, f *Follower, c *control, r *rand.Rand, now int64) {
	defer func() {
		if err := recover(); err != nil && err != errCrash {
			panic(err)
		}
	}()
	for range 4 {
		c.next(r, r.IntN(40))
		run(t, f, c, now)
	}
}

// interrupted is a store in which something happens before a certain call.
type interrupted struct {
	shared.Store
	after int
	do    func()
}

func (s *interrupted) count() {
	if s.after--; s.after == 0 {
		s.do()
	}
}

func (s *interrupted) Get(key []byte) ([]byte, uint32, error) {
	s.count()
	return s.Store.Get(key)
}

func (s *interrupted) Set(key, value []byte, cas uint32) error {
	s.count()
	return s.Store.Set(key, value, cas)
}

// A VM may be halted between any two calls while another takes the lease from
// it and leads, and then go on: it must not put old things over new ones.
func TestHaltedLeader(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := &control{epoch: 7, max: 300 + r.IntN(1500)}
		m := shared.NewMem()
		c.next(r, 40)
		idle := New(m.View(), dice(1), []string{"default"})
		halted := &interrupted{Store: m.View(), after: 1 + r.IntN(150)}
		busy := New(halted, dice(2), []string{"default"})
		busy.Busy()
		halted.do = func() {
			c.next(r, 20)
			run(t, idle, c, 1000)
		}
		for range 3 {
			leads := busy.Leading()
			if path, ok := busy.Next(1000); ok {
				status, body := c.answer(t, path)
				busy.Answer(1000, status, body)
			}
			for busy.Pending() {
				busy.Work(1000)
			}
			if leads && !busy.Leading() {
				break
			}
			c.next(r, 20)
		}
		if halted.after > 0 {
			halted.do()
		}
		run(t, idle, c, 1000)
		c.same(t, m.View(), "seed "+strconv.FormatUint(seed, 10))
	}
}

// No poll goes out while an answer is being brought in, and the state comes
// into force after the records.
func TestSlices(t *testing.T) {
	m := shared.NewMem()
	f := New(m.View(), dice(1), nil)
	p := state.Patch{Pool: "default"}
	for id := range uint64(2 * sliceBuckets) {
		p.Records = append(p.Records, state.Record{ID: id, Payload: []byte("x")})
	}
	f.Next(0)
	if f.Answer(0, 200, state.Pages(nil, snapshot(1, "a:1"), state.MaxPage, p)[0]) || !f.Pending() {
		t.Fatalf("all of it was written at once, or nothing: %v", f.Err())
	}
	if _, ok := f.Next(1); ok || stored(t, m.View()) != nil {
		t.Error("polls, or publishes, before the records are in")
	}
	if _, complete := indexed(t, m.View()); complete {
		t.Error("the index is complete too early")
	}
	if !f.Work(2) || f.Pending() || stored(t, m.View()) == nil {
		t.Errorf("not done after the second slice: %v", f.Err())
	}
	if _, complete := indexed(t, m.View()); !complete {
		t.Error("the index is not complete")
	}
	if path, ok := f.Next(3); !ok || !strings.Contains(path, "gen=1") {
		t.Errorf("%q %v", path, ok)
	}
}

// An index that is gone or was never completed is asked for anew.
func TestIncompleteIndex(t *testing.T) {
	f := func(name string, spoil func(s shared.Store), want string) {
		t.Helper()
		m := shared.NewMem()
		c := &control{epoch: 7, max: 700}
		c.next(rand.New(rand.NewPCG(1, 1)), 50)
		first := New(m.View(), dice(1), nil)
		run(t, first, c, 0)
		spoil(m.View())
		path, _ := New(m.View(), dice(2), nil).Next(shared.LeaseTerm)
		if !strings.Contains(path, want) {
			t.Errorf("%s: asks %s, want %s", name, path, want)
		}
	}
	head := func(value string) func(shared.Store) {
		return func(s shared.Store) { s.Set([]byte(shared.BlocksKey), []byte(value), 0) }
	}
	f("whole", func(shared.Store) {}, "epoch=7&gen=1")
	f("garbage", head("garbage"), "epoch=0&gen=0")
	f("empty", head(""), "epoch=0&gen=0")
	f("not complete", func(s shared.Store) {
		value, _, _ := s.Get([]byte(shared.BlocksKey))
		value = slices.Clone(value)
		value[12] = 0
		s.Set([]byte(shared.BlocksKey), value, 0)
	}, "epoch=0&gen=0")
	f("state gone", func(s shared.Store) { s.Set([]byte(shared.StateKey), nil, 0) }, "epoch=0&gen=0")
}

// What was fetched for other pools is no start.
func TestOtherPools(t *testing.T) {
	f := func(want string, pools ...string) {
		t.Helper()
		m := shared.NewMem()
		c := &control{epoch: 7, max: 700}
		c.next(rand.New(rand.NewPCG(1, 1)), 50)
		run(t, New(m.View(), dice(1), []string{"default"}), c, 0)
		if path, _ := New(m.View(), dice(2), pools).Next(shared.LeaseTerm); !strings.Contains(path, want) {
			t.Errorf("%v: asks %s, want %s", pools, path, want)
		}
	}
	f("epoch=7&gen=1", "default")
	f("epoch=0&gen=0", "default", "more")
	f("epoch=0&gen=0", "other")
}

// A store that fails for a while costs no more than another whole.
func TestStoreFails(t *testing.T) {
	for fails := 1; fails < 60; fails++ {
		m := shared.NewMem()
		r := rand.New(rand.NewPCG(5, 5))
		c := &control{epoch: 7, max: 700}
		s := &failing{Store: m.View(), after: fails}
		f := New(s, dice(1), nil)
		for range 3 {
			c.next(r, 30)
			run(t, f, c, 0)
			c.same(t, m.View(), "failing at "+strconv.Itoa(fails))
		}
	}
}

// failing refuses three writes in a row.
type failing struct {
	shared.Store
	after int
}

func (s *failing) Set(key, value []byte, cas uint32) error {
	if s.after--; s.after < 0 && s.after >= -3 {
		return errors.New("no room")
	}
	return s.Store.Set(key, value, cas)
}

func TestDoubts(t *testing.T) {
	m := shared.NewMem()
	c := &control{epoch: 7, max: 700}
	c.next(rand.New(rand.NewPCG(1, 1)), 5)
	leader, other := New(m.View(), dice(1), nil), New(m.View(), dice(2), nil)
	run(t, leader, c, 0)
	other.Doubt(3)
	other.Doubt(300)
	leader.Doubt(3)
	asks := func(want string) {
		t.Helper()
		path, ok := leader.Next(20_000)
		if !ok || path != "/v1/state?epoch=7&gen=1"+want {
			t.Errorf("%v asks %s, want %s", ok, path, want)
		}
	}
	asks("&doubt=3&doubt=300")
	leader.Failed(10_000)
	asks("&doubt=3&doubt=300") // until it is answered
	leader.Answer(20_000, 204, nil)
	asks("")
	leader.Answer(20_000, 204, nil)
	for slot := range uint16(2 * state.MaxDoubts) {
		other.Doubt(slot)
	}
	path, _ := leader.Next(20_000)
	if n := strings.Count(path, "doubt="); n != state.MaxDoubts {
		t.Errorf("%d doubts at once, want %d", n, state.MaxDoubts)
	}
	m.View().Set([]byte(shared.DoubtKey), []byte("odd"), 0)
	leader.Answer(20_000, 204, nil)
	leader.Next(20_000)
	other.Doubt(9)
	leader.Answer(20_000, 204, nil)
	asks("&doubt=9")
}
