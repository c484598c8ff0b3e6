package collect

import (
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

func TestAgenda(t *testing.T) {
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	var a agenda
	f := func(now int, pools, index bool, wait time.Duration) {
		t.Helper()
		if p, i := a.next(at(now)); p != pools || i != index {
			t.Errorf("at %d: due %t %t, want %t %t", now, p, i, pools, index)
		}
		if got := a.wait(at(now)); got != wait {
			t.Errorf("at %d: wait %v, want %v", now, got, wait)
		}
	}
	f(0, false, false, time.Hour)
	a.state(at(100), false)
	a.state(at(50), false)
	a.state(at(70), false)
	f(49, false, false, time.Millisecond)
	f(50, true, false, time.Hour)
	// Load that is not due does not go with blocks that are.
	a.state(at(200), false)
	a.blocks(at(60))
	a.blocks(at(65))
	f(60, false, true, 140*time.Millisecond)
	// What a replica is does.
	a.state(at(180), true)
	a.blocks(at(80))
	f(80, true, true, time.Hour)
	// Nor is an index published twice that went with the pools.
	a.state(at(90), false)
	a.blocks(at(95))
	f(90, true, false, time.Hour)
}

func TestPatchesKeepTheNewest(t *testing.T) {
	record := func(id uint64, payload string) (r state.Record) {
		r.ID = id
		if payload != "" {
			r.Payload = []byte(payload)
		}
		return r
	}
	var p patches
	p.add("a", []state.Record{record(1, "x"), record(2, "y"), record(3, "")})
	p.add("b", []state.Record{record(9, "b")})
	p.add("a", []state.Record{record(2, ""), record(3, "z"), record(4, "w")})
	got := p.take()
	if len(got) != 2 || got[0].Pool != "a" || got[1].Pool != "b" || len(got[1].Records) != 1 {
		t.Fatalf("%+v", got)
	}
	want := map[uint64]string{1: "x", 2: "", 3: "z", 4: "w"}
	for _, r := range got[0].Records {
		if text, ok := want[r.ID]; !ok || text != string(r.Payload) || (text == "") != (r.Payload == nil) {
			t.Errorf("record %+v", r)
		}
		delete(want, r.ID)
	}
	if len(want) > 0 || p.take() != nil {
		t.Errorf("missing %v", want)
	}
}
