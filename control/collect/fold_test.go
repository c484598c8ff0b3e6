package collect

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

var t0 = time.UnixMilli(1_796_050_799_000)

func members(addresses ...string) []Member {
	list := []Member{}
	for _, a := range addresses {
		list = append(list, Member{Address: a})
	}
	return list
}

func onePool() *fold {
	return newFold([]Pool{{Name: "default", Sources: []Source{Static(nil)}}})
}

// slotOf returns the slot of an address, -1 if it is not there.
func slotOf(f *fold, address string) int {
	if r := f.pools["default"].replicas[address]; r != nil {
		return int(r.now.Slot)
	}
	return -1
}

func TestSlotsStayWithTheirAddress(t *testing.T) {
	f := onePool()
	now := t0
	want := func(slots map[string]int) {
		t.Helper()
		for address, slot := range slots {
			if got := slotOf(f, address); got != slot {
				t.Errorf("%s has slot %d, want %d", address, got, slot)
			}
		}
	}
	f.members("default", 0, members("a:1", "b:1", "c:1"), now)
	want(map[string]int{"a:1": 0, "b:1": 1, "c:1": 2})
	d := f.members("default", 0, members("c:1", "a:1"), now)
	if !slices.Equal(d.removed, []string{"b:1"}) || d.urgency != changed || d.added != nil {
		t.Errorf("difference %+v", d)
	}
	// A slot that was freed rests.
	f.members("default", 0, members("a:1", "c:1", "d:1"), now.Add(time.Second))
	want(map[string]int{"b:1": -1, "d:1": 3})
	// Its address gets it back.
	f.members("default", 0, members("a:1", "b:1", "c:1", "d:1"), now.Add(time.Minute))
	want(map[string]int{"b:1": 1})
	f.members("default", 0, members("a:1", "c:1", "d:1"), now.Add(2*time.Minute))
	f.members("default", 0, members("a:1", "c:1", "d:1", "e:1"), now.Add(2*time.Minute+slotRest))
	want(map[string]int{"a:1": 0, "e:1": 1, "c:1": 2, "d:1": 3})
}

func TestSlotsAreUniqueOverPools(t *testing.T) {
	f := newFold([]Pool{{Name: "b", Sources: []Source{nil}}, {Name: "a", Sources: []Source{nil}}})
	f.members("b", 0, members("x:1"), t0)
	f.members("a", 0, members("x:1", "y:1"), t0)
	pools := f.snapshot()
	if pools[0].Name != "a" || pools[1].Name != "b" {
		t.Fatalf("order %v", pools)
	}
	seen := map[uint16]bool{}
	for _, p := range pools {
		for _, r := range p.Replicas {
			if seen[r.Slot] {
				t.Errorf("slot %d twice", r.Slot)
			}
			seen[r.Slot] = true
		}
	}
}

func TestSlotsRunOut(t *testing.T) {
	var s slots
	for i := range 65536 {
		if _, ok := s.take(key{"p", strconv.Itoa(i)}); !ok {
			t.Fatalf("slot %d refused", i)
		}
	}
	if _, ok := s.take(key{"p", "more"}); ok {
		t.Error("more slots than numbers")
	}
}

// A pod that comes back at an address with nothing to tell it by but its
// counters is another one.
func TestTrackerOutlivesAnAbsence(t *testing.T) {
	f := onePool()
	f.members("default", 0, members("a:1"), t0)
	tr := f.pools["default"].replicas["a:1"].place.tracker
	tr.observe(sampleAt(0, 9), t0)
	before := tr.incarnation()
	f.members("default", 0, nil, t0)
	f.members("default", 0, members("a:1"), t0.Add(time.Minute))
	tr = f.pools["default"].replicas["a:1"].place.tracker
	tr.observe(sampleAt(0, 1), t0.Add(time.Minute))
	if tr.incarnation() == before {
		t.Error("same incarnation")
	}
}

func TestSeveralSources(t *testing.T) {
	f := newFold([]Pool{{Name: "default", Sources: []Source{nil, nil}}})
	f.members("default", 0, members("a:1", "b:1"), t0)
	if f.complete() {
		t.Error("complete with a source not heard")
	}
	d := f.members("default", 1, []Member{{Address: "b:1", Draining: true}}, t0)
	if d.added != nil || d.removed != nil || d.urgency != changed {
		t.Errorf("difference %+v", d)
	}
	if got := f.snapshot()[0].Replicas[1].Health; got != state.Draining {
		t.Errorf("health %v", got)
	}
	d = f.members("default", 0, nil, t0)
	if !slices.Equal(d.removed, []string{"a:1"}) {
		t.Errorf("difference %+v", d)
	}
}

func TestTooManyReplicas(t *testing.T) {
	f := onePool()
	var list []Member
	for i := range state.MaxReplicas + 5 {
		list = append(list, Member{Address: strconv.Itoa(i)})
	}
	if d := f.members("default", 0, list, t0); d.refused != 5 || len(d.added) != state.MaxReplicas {
		t.Errorf("refused %d, added %d", d.refused, len(d.added))
	}
}

func healthy(load state.Load) *reading {
	return &reading{outcome: OK, health: state.Healthy, load: load, incarnation: 7}
}

func TestWhatIsNews(t *testing.T) {
	load := state.Load{At: 1, Waiting: 1, Running: 1, KV: .5, Hit: nan, RPS: 1, TPS: 1}
	later, busier := load, load
	later.At = 2
	busier.Waiting, busier.At = 2, 3
	restarted := healthy(busier)
	restarted.incarnation = 8
	dead := *restarted
	dead.health = state.Unhealthy
	served := dead
	served.served.models = []string{}

	r := &replica{now: state.Replica{Load: state.NoLoad()}}
	steps := []struct {
		in   *reading
		want urgency
	}{
		{healthy(load), changed}, // the first
		{healthy(load), nothing},
		{healthy(later), fresher},
		{healthy(busier), loaded},
		{restarted, changed},
		{&dead, changed},
		{&served, changed},
		{&served, nothing},
	}
	for i, s := range steps {
		if got := r.read(s.in); got != s.want {
			t.Errorf("step %d: %d, want %d", i, got, s.want)
		}
	}
}

func TestPoolModels(t *testing.T) {
	f := onePool()
	f.members("default", 0, members("a:1", "b:1"), t0)
	p := f.pools["default"]
	if p.models() != nil {
		t.Error("models are known before anyone answered")
	}
	in := healthy(state.NoLoad())
	in.served.models = []string{}
	p.replicas["a:1"].read(in)
	if m := p.models(); m == nil || len(m) != 0 {
		t.Errorf("got %#v", m)
	}
	in.served.models = []string{"m2", "m1"}
	p.replicas["b:1"].read(in)
	if m := p.models(); !slices.Equal(m, []string{"m1", "m2"}) {
		t.Errorf("got %v", m)
	}
	p.config.Models = []string{"said"}
	if m := p.models(); !slices.Equal(m, []string{"said"}) {
		t.Errorf("got %v", m)
	}
}

// A fold of 256 replicas, of which each says something new.
func BenchmarkFold256(b *testing.B) {
	f := onePool()
	var list []Member
	for i := range 256 {
		list = append(list, Member{Address: "10.0.0." + strconv.Itoa(i) + ":8000"})
	}
	f.members("default", 0, list, t0)
	in := healthy(state.Load{At: 1})
	b.ReportAllocs()
	for b.Loop() {
		in.load.Waiting++
		for _, r := range f.pools["default"].replicas {
			r.read(in)
		}
		f.snapshot()
	}
}
