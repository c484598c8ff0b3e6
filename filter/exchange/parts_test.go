package exchange

import (
	"bytes"
	"testing"
)

func TestKeeper(t *testing.T) {
	var k keeper
	var b []byte
	ok := true
	for range 100 {
		if b, ok = k.append(b, make([]byte, 1000), 100_000); !ok {
			t.Fatal("refused")
		}
	}
	if len(b) != 100_000 || k.held != cap(b) {
		t.Errorf("%d bytes, %d held", len(b), k.held)
	}
	if b, ok = k.append(b, []byte("x"), 100_000); ok || b != nil || k.held != 0 {
		t.Errorf("beyond the limit: %v, %d held", ok, k.held)
	}
	var all [][]byte
	for {
		b, ok := k.append(nil, make([]byte, 1<<20), 1<<20)
		if !ok {
			break
		}
		all = append(all, b)
	}
	if len(all) != maxKept>>20 || k.held > maxKept {
		t.Errorf("%d buffers, %d bytes held", len(all), k.held)
	}
	k.spend(all[0])
	if k.held != maxKept {
		t.Error("what was spent is taken back before the host has seen it")
	}
	if _, ok = k.append(nil, []byte("x"), 10); !ok {
		t.Error("what was spent is not taken back")
	}
	k = keeper{}
	if n := testing.AllocsPerRun(100, func() {
		b, _ := k.append(nil, bytes.Repeat([]byte{'x'}, 0), 10000)
		for range 5 {
			b, _ = k.append(b, all[1][:1000], 10000)
		}
		k.release(b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	k.release(nil)
	if k.held != 0 {
		t.Errorf("%d bytes held", k.held)
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	now := int64(1_000_000)
	for i, want := range []int64{0, 0, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		b.note(false, now)
		rest := int64(0)
		for b.resting(now + rest) {
			rest += 1000
		}
		if rest != want {
			t.Errorf("after %d failures it rests %d ms, want %d", i+1, rest, want)
		}
	}
	if b.resting(now - 1_000_000) {
		t.Error("rests for ever when the clock was set back")
	}
	b.note(true, now)
	b.note(false, now)
	if b.resting(now) {
		t.Error("a success does not end the row of failures")
	}
}

func TestAllowance(t *testing.T) {
	a := allowance{perS: 4}
	taken := 0
	for now := int64(1); now <= 10_000; now += 10 {
		for a.has(now) {
			a.take()
			taken++
		}
	}
	if taken < 42 || taken > 44 {
		t.Errorf("%d calls in 10 s, want 4 at once and 4 a second", taken)
	}
	if a = (allowance{}); a.has(1) || a.has(1_000_000) {
		t.Error("a budget of none allows a call")
	}
}

func TestWindow(t *testing.T) {
	var w window
	f := func(clock, owed uint32, now int64, want uint32) {
		t.Helper()
		if got := w.open(clock, owed, now); got != want {
			t.Errorf("at %d: %d, want %d", now, got, want)
		}
	}
	near := ^uint32(0) - 10 // the clock wraps
	f(near, 0, 1000, 0)
	f(near+50, 50, 1100, 50)    // sent and not done
	f(near+50, 0, 1300, 50)     // done a moment ago
	f(near+50, 0, 1600, 50)     // not half a second ago
	f(near+80, 30, 2200, 30)    // long done; new ones sent
	f(near+80, 0, 2300, 30)     // and done
	f(near+80, 0, 2800, 30)     // a moment ago
	f(near+80, 0, 3400, 0)      // all done
	f(near+5000, 5000, 1, 5000) // the clock was set back
}

func TestTrust(t *testing.T) {
	var r trust
	for i := range 100 {
		r.note(7, 1000, 990, block, int64(i))
		r.note(7, 0, 500, block, int64(i))
		r.note(7, 1000, 4000, block, int64(i))
	}
	if r.weight(7, 100) != 1 || r.doubt {
		t.Errorf("the truth is doubted: %+v", r)
	}
	for i := range liesBorne {
		r.note(7, 1000, 100, block, int64(100+i))
	}
	if w := r.weight(7, 110); w > 0.5 || !r.doubt {
		t.Errorf("lies are believed: weight %v, %+v", w, r)
	}
	if r.weight(8, 110) != 1 {
		t.Error("the next replica in the slot is not believed")
	}
	if w := r.weight(7, 110+5*trustHalfMS); w != 1 {
		t.Errorf("weight %v after a long time", w)
	}
	r.note(8, 1000, 1000, block, 200)
	if r.err != 0 || r.key != 8 {
		t.Errorf("%+v", r)
	}
}

func TestCacheable(t *testing.T) {
	for _, c := range []struct{ n, size, want uint32 }{
		{0, 16, 0}, {1, 16, 0}, {16, 16, 0}, {17, 16, 16}, {64, 32, 32}, {65, 32, 64}, {1600, 16, 1584}, {5, 0, 4}, {0, 0, 0},
	} {
		if got := cacheable(c.n, c.size); got != c.want {
			t.Errorf("%d tokens in blocks of %d: %d, want %d", c.n, c.size, got, c.want)
		}
	}
}
