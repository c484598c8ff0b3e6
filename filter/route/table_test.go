package route

import (
	"testing"

	"github.com/warmlane/warmlane/filter/state"
)

func TestTable(t *testing.T) {
	p := &state.Pool{Replicas: []state.Replica{
		{Slot: 3, Address: "[::1]:8001", Health: state.Healthy, CacheTokens: 1600},
		{Slot: 1, Address: "10.0.0.1:80", Health: state.Healthy},
	}}
	r := New(newCrew(p, 1).mem.View(), "default", Defaults(), 0)
	r.Configure(Defaults())
	r.Adopt(p, 41)
	f := func(slot int, address string, capacity uint32) {
		t.Helper()
		if got := string(r.Address(slot)); got != address {
			t.Errorf("slot %d: address %q, want %q", slot, got, address)
		}
		if got := r.Capacity(slot); got != capacity {
			t.Errorf("slot %d: capacity %d, want %d", slot, got, capacity)
		}
		if (r.Key(slot) != 0) != (address != "") {
			t.Errorf("slot %d: key %d", slot, r.Key(slot))
		}
		if address != "" && r.Slot([]byte(address)) != slot {
			t.Errorf("%s is in slot %d, want %d", address, r.Slot([]byte(address)), slot)
		}
		if r.InFlight(slot) != 0 || r.Owed(slot, t0) != 0 || r.Clock(slot) != 0 {
			t.Errorf("slot %d is not empty before anything was read", slot)
		}
	}
	f(3, "[::1]:8001", 100)
	f(1, "10.0.0.1:80", 0)
	f(0, "", 0)
	f(-1, "", 0)
	f(4, "", 0)
	f(MaxSlots, "", 0)
	if r.Slot([]byte("10.0.0.9:80")) != -1 || r.Slots() != 4 || r.Generation() != 41 {
		t.Errorf("slots %d, generation %d", r.Slots(), r.Generation())
	}
	if got := r.Rate(1); got != 0 {
		t.Errorf("rate %v before anything was read", got)
	}
	r.Spread(t0)
	if r.Newest() != 41 || r.Rate(1) != Defaults().StartRate || r.Rate(9) != 0 {
		t.Errorf("newest %d, rate %v", r.Newest(), r.Rate(1))
	}
}

func TestKeysTellLivesApart(t *testing.T) {
	seen := map[uint32]bool{}
	for _, address := range []string{"10.0.0.1:80", "10.0.0.2:80"} {
		for incarnation := range uint32(100) {
			seen[laneKey(address, incarnation)] = true
		}
	}
	if len(seen) != 200 || seen[0] {
		t.Errorf("%d keys of 200, zero among them: %v", len(seen), seen[0])
	}
}

func TestSlotsSet(t *testing.T) {
	var s Slots
	for _, slot := range []int{0, 63, 64, 255, -1, 256} {
		s.Add(slot)
	}
	for slot, want := range map[int]bool{0: true, 1: false, 63: true, 64: true, 255: true, -1: false, 256: false} {
		if s.Has(slot) != want {
			t.Errorf("slot %d: %v, want %v", slot, s.Has(slot), want)
		}
	}
}
