package follow

import (
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// dice returns numbers that differ from one follower to the next.
func dice(seed uint64) func() uint64 {
	return func() uint64 { seed += 0x9e3779b97f4a7c15; return seed }
}

func snapshot(generation uint64, addresses ...string) *state.Snapshot {
	p := state.Pool{Name: "default", Models: []string{"m"}}
	for i, a := range addresses {
		p.Replicas = append(p.Replicas, state.Replica{Slot: uint16(i), Incarnation: 1, Address: a, Health: state.Healthy, Load: state.NoLoad()})
	}
	return &state.Snapshot{Epoch: 7, Generation: generation, Pools: []state.Pool{p}}
}

// stored is the snapshot in shared data, or nil.
func stored(t *testing.T, s shared.Store) *state.Snapshot {
	t.Helper()
	_, blob, err := shared.LoadPublished(s, []byte(shared.StateKey))
	if err != nil {
		return nil
	}
	var snap state.Snapshot
	if err := state.DecodeSnapshot(blob, &snap); err != nil {
		t.Fatal(err)
	}
	return &snap
}

func TestFollowsControl(t *testing.T) {
	m := shared.NewMem()
	f := New(m.View(), dice(1), nil)
	path, ok := f.Next(1000)
	if !ok || !strings.HasPrefix(path, state.Path) || !strings.Contains(path, "gen=0") {
		t.Fatalf("first call %q %v, want the whole", path, ok)
	}
	if _, again := f.Next(1001); again {
		t.Fatal("a second poll beside the open one")
	}
	one := snapshot(1, "10.0.0.1:8000")
	if !f.Answer(1100, 200, state.Pages(nil, one, state.MaxPage)[0]) {
		t.Fatalf("nothing changed: %v", f.Err())
	}
	if got := stored(t, m.View()); got == nil || !state.Equal(got, one) {
		t.Fatalf("shared data holds %+v", got)
	}
	path, ok = f.Next(1100)
	if !ok || !strings.Contains(path, "gen=1") {
		t.Fatalf("next call %q %v, want a delta from 1 at once", path, ok)
	}
	if f.Answer(1200, 204, nil) || f.Age(1300) != 100 {
		t.Errorf("204: age %d, want 100 since it was confirmed", f.Age(1300))
	}
	two := snapshot(2, "10.0.0.1:8000", "10.0.0.2:8000")
	f.Next(1200)
	if !f.Answer(1300, 200, state.Pages(one, two, state.MaxPage)[0]) || !state.Equal(stored(t, m.View()), two) {
		t.Errorf("delta: %v, holds %+v", f.Err(), stored(t, m.View()))
	}
	if f.Generation() != 2 {
		t.Errorf("generation %d, want 2", f.Generation())
	}
}

func TestKeepsLastGoodState(t *testing.T) {
	one := snapshot(1, "10.0.0.1:8000")
	bad := func(name string, status int, body string) {
		m := shared.NewMem()
		f := New(m.View(), dice(1), nil)
		f.Next(0)
		f.Answer(0, 200, state.Pages(nil, one, state.MaxPage)[0])
		f.Next(10)
		if f.Answer(20, status, []byte(body)) || f.Err() == nil {
			t.Errorf("%s: taken as a change, error %v", name, f.Err())
		}
		if !state.Equal(stored(t, m.View()), one) {
			t.Errorf("%s: the last good state is gone", name)
		}
		if _, ok := f.Next(20 + firstBackoff/2 - 1); ok {
			t.Errorf("%s: asked again without waiting", name)
		}
		if _, ok := f.Next(20 + firstBackoff); !ok {
			t.Errorf("%s: never asked again", name)
		}
	}
	bad("html", 200, "<html>")
	bad("empty", 200, "")
	bad("unauthorised", 401, "{}")
	bad("unavailable", 503, "")
	bad("gap", 200, string(state.Pages(snapshot(8, "a:1"), snapshot(9, "a:1", "b:1"), state.MaxPage)[0]))
}

func TestBacksOff(t *testing.T) {
	f := New(shared.NewMem().View(), dice(3), nil)
	now, waits := int64(0), []int64{}
	for range 12 {
		for {
			if _, ok := f.Next(now); ok {
				break
			}
			now += 10
		}
		failed := now
		f.Failed(now)
		for f.dueAt > now {
			now += 10
		}
		waits = append(waits, now-failed)
	}
	for i, w := range waits {
		if w < firstBackoff/2 || w > lastBackoff+10 {
			t.Errorf("wait %d is %d ms", i, w)
		}
	}
	if waits[11] < lastBackoff/2 {
		t.Errorf("the last wait is %d ms, want it grown to at least %d", waits[11], lastBackoff/2)
	}
}

func TestOneLeader(t *testing.T) {
	m := shared.NewMem()
	a, b := New(m.View(), dice(1), nil), New(m.View(), dice(2), nil)
	if _, ok := a.Next(0); !ok || !a.Leading() {
		t.Fatal("the first to come does not lead")
	}
	if _, ok := b.Next(10); ok || b.Leading() {
		t.Fatal("two leaders")
	}
	for now := int64(0); now < 20_000; now += 250 {
		a.Next(now)
		if _, ok := b.Next(now); ok {
			t.Fatalf("the lease was lost at %d though renewed", now)
		}
	}
	// a's VM dies: b takes over when the lease ends, and not before.
	if _, ok := b.Next(20_000); ok {
		t.Error("taken while it lasted")
	}
	if _, ok := b.Next(20_000 + shared.LeaseTerm); !ok || !b.Leading() {
		t.Error("not taken after its end")
	}
	b.Close()
	c := New(m.View(), dice(3), nil)
	if _, ok := c.Next(20_001 + shared.LeaseTerm); !ok {
		t.Error("a released lease is still held")
	}
}

func TestIdleVMTakesLeaseFromBusyOne(t *testing.T) {
	m := shared.NewMem()
	worker, other, main := New(m.View(), dice(1), nil), New(m.View(), dice(2), nil), New(m.View(), dice(3), nil)
	worker.Busy()
	other.Busy()
	worker.Next(0)
	if _, ok := other.Next(1); ok {
		t.Fatal("one busy VM took the lease from another")
	}
	if _, ok := main.Next(2); !ok {
		t.Fatal("the idle VM left the lease to a busy one")
	}
	worker.Next(shared.LeaseTerm)
	if worker.Leading() {
		t.Error("the busy VM did not notice")
	}
	if worker.Answer(shared.LeaseTerm, 200, state.Pages(nil, snapshot(1, "a:1"), state.MaxPage)[0]) || stored(t, m.View()) != nil {
		t.Error("an answer that came after the term was used")
	}
}

func TestNewLeaderStartsFromWhatIsThere(t *testing.T) {
	m := shared.NewMem()
	a := New(m.View(), dice(1), nil)
	a.Next(0)
	a.Answer(0, 200, state.Pages(nil, snapshot(5, "a:1"), state.MaxPage)[0])
	b := New(m.View(), dice(2), nil)
	if path, ok := b.Next(shared.LeaseTerm); !ok || !strings.Contains(path, "gen=5") {
		t.Errorf("%q %v, want a delta from 5", path, ok)
	}
}

func TestDamagedSharedDataIsNoLoss(t *testing.T) {
	m := shared.NewMem()
	for _, junk := range []string{"", "x", strings.Repeat("\xff", 17)} {
		s := m.View()
		s.Set([]byte(shared.LeaseKey), []byte(junk), 0)
		s.Set([]byte(shared.StateKey), []byte(junk), 0)
		f := New(s, dice(1), nil)
		if path, ok := f.Next(1000); !ok || !strings.Contains(path, "gen=0") {
			t.Errorf("%q: %q %v, want the whole", junk, path, ok)
		}
	}
}
