package hostsim

import "testing"

// TestSharedRules are the rules of the C++ host, in one sequence.
func TestSharedRules(t *testing.T) {
	s := newShared()
	set := func(value string, cas uint32, want status) uint32 {
		t.Helper()
		if got := s.set("k", value, cas); got != want {
			t.Errorf("set %q with %d: status %d, want %d", value, cas, got, want)
		}
		_, now, _ := s.Get("k")
		return now
	}
	first := set("a", 7, statusOK) // absent: any number creates
	if first == 0 {
		t.Error("number 0")
	}
	set("b", first+1, statusCASMismatch)
	set("b", ^uint32(0), statusCASMismatch)
	second := set("b", first, statusOK)
	set("c", first, statusCASMismatch)
	third := set("c", 0, statusOK)
	if second == first || third == second {
		t.Errorf("numbers %d, %d, %d do not change", first, second, third)
	}
	s.set("other", "x", 0)
	if _, other, _ := s.Get("other"); other == third {
		t.Error("two keys share a number")
	}
	if got := s.Bytes(); got != len("k")+len("c")+len("other")+len("x") {
		t.Errorf("%d bytes", got)
	}
	if keys := s.Keys(); len(keys) != 2 || keys[0] != "k" {
		t.Errorf("keys %q", keys)
	}
	s.next = ^uint32(0)
	if set("d", 0, statusOK) == 0 {
		t.Error("number 0 after the counter wrapped")
	}
}

func TestQueues(t *testing.T) {
	q := newQueues()
	id := q.register("vm", "name", nil, 1)
	if again := q.register("vm", "name", nil, 2); again != id || q.byID[id].ctx != 2 {
		t.Errorf("registered again as %d for context %d, want %d for 2", again, q.byID[id].ctx, id)
	}
	if other := q.register("other", "name", nil, 1); other == id {
		t.Error("queues of two vm_ids are one")
	}
	if _, st := q.dequeue(99); st != statusNotFound {
		t.Errorf("unknown queue: status %d", st)
	}
	if _, st := q.dequeue(id); st != statusEmpty {
		t.Errorf("empty queue: status %d", st)
	}
}
