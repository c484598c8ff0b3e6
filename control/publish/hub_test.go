package publish

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// fleet returns pools of n replicas each, all with that many requests waiting.
func fleet(n int, waiting int32, names ...string) []state.Pool {
	var pools []state.Pool
	for i, name := range names {
		p := state.Pool{Name: name, Models: []string{"org/base-7b"}, Replicas: []state.Replica{}}
		for j := range n {
			l := state.NoLoad()
			l.At, l.Waiting, l.KV = 1_796_050_799_000, waiting, .25
			p.Replicas = append(p.Replicas, state.Replica{
				Slot: uint16(i*n + j), Address: "10.0." + strconv.Itoa(i) + "." + strconv.Itoa(j) + ":8000",
				Health: state.Healthy, Models: []string{"org/base-7b"}, Load: l,
			})
		}
		pools = append(pools, p)
	}
	return pools
}

// ask polls as v would, for v's next page.
func ask(t *testing.T, h *Hub, v *state.View, names []string, hold time.Duration) ([]byte, reply) {
	t.Helper()
	q := request(t, v.Query(names))
	return h.poll(t.Context(), &q, choose(q.Pools), hold)
}

func request(t *testing.T, path string) state.Request {
	t.Helper()
	q, err := parseRequest(path[len(state.Path)+1:])
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// take asks until v is complete.
func take(t *testing.T, h *Hub, v *state.View, names ...string) {
	t.Helper()
	for range 100 {
		page, how := ask(t, h, v, names, time.Second)
		if how != replyPage {
			t.Fatalf("reply %d", how)
		}
		r, err := v.Apply(page)
		if err != nil {
			t.Fatal(err)
		}
		if r == state.Complete {
			return
		}
	}
	t.Fatal("not complete after 100 pages")
}

func TestWholeThenDeltas(t *testing.T) {
	h := NewHub()
	var v state.View
	h.Publish(fleet(8, 0, "a"), nil)
	take(t, h, &v)
	for i := range int32(20) {
		h.Publish(fleet(8, i+1, "a"), nil)
		page, _ := ask(t, h, &v, nil, time.Second)
		header, err := state.ParseHeader(page)
		if err != nil || header.Whole() {
			t.Fatalf("not a delta: %+v, %v", header, err)
		}
		if _, err := v.Apply(page); err != nil || !state.Equal(v.Snapshot(), h.Latest()) {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if g := h.Latest().Generation; g != 21 {
		t.Errorf("generation %d", g)
	}
}

func TestSamePoolsAreNoNewGeneration(t *testing.T) {
	h := NewHub()
	h.Publish([]state.Pool{}, nil)
	h.Publish([]state.Pool{}, nil)
	if g := h.Latest().Generation; g != 1 {
		t.Errorf("generation %d", g)
	}
	h.Publish(fleet(1, 0, "a"), nil)
	h.Publish(fleet(1, 0, "a"), nil)
	if g := h.Latest().Generation; g != 2 {
		t.Errorf("generation %d", g)
	}
}

// kept is how many states a hub keeps.
var kept = standard.kept

// Who holds what is not known here, or not any more, gets the whole at once.
func TestWhole(t *testing.T) {
	h := NewHub()
	for i := range int32(kept + 10) {
		h.Publish(fleet(2, i, "a"), nil)
	}
	f := func(q state.Request) {
		t.Helper()
		page, how := h.poll(t.Context(), &q, choose(nil), time.Hour)
		header, err := state.ParseHeader(page)
		if how != replyPage || err != nil || !header.Whole() || header.To != uint64(kept+10) {
			t.Errorf("%+v: reply %d, %+v, %v", q, how, header, err)
		}
	}
	f(state.Request{})
	f(state.Request{Epoch: h.epoch})
	f(state.Request{Epoch: h.epoch + 1, Gen: uint64(kept + 10)})
	f(state.Request{Epoch: h.epoch, Gen: 10})                // the newest that is gone
	f(state.Request{Epoch: h.epoch, Gen: uint64(kept + 11)}) // has not been
	f(state.Request{Epoch: h.epoch, Gen: 1<<64 - 1})
	q := state.Request{Epoch: h.epoch, Gen: 11}
	page, _ := h.poll(t.Context(), &q, choose(nil), time.Hour)
	if header, _ := state.ParseHeader(page); header.From != 11 {
		t.Errorf("the oldest that is kept: %+v", header)
	}
}

func TestPollIsHeldUntilSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		h.Publish(fleet(2, 0, "a", "b"), nil)
		var v, onlyA state.View
		take(t, h, &v)
		take(t, h, &onlyA, "a")

		begun := time.Now()
		if _, how := ask(t, h, &v, nil, 25*time.Second); how != replyNothing || time.Since(begun) != 25*time.Second {
			t.Errorf("nothing new: reply %d after %v", how, time.Since(begun))
		}

		begun = time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			pools := fleet(2, 0, "a", "b")
			pools[1].Replicas[0].Health = state.Draining
			h.Publish(pools, nil)
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			page, how := ask(t, h, &v, nil, 25*time.Second)
			if how != replyPage || time.Since(begun) != 3*time.Second {
				t.Errorf("news: reply %d after %v", how, time.Since(begun))
			}
			if _, err := v.Apply(page); err != nil {
				t.Error(err)
			}
		})
		// Another pool changed: no news for this one, but in the end its
		// generation moves on.
		page, how := ask(t, h, &onlyA, []string{"a"}, 25*time.Second)
		if how != replyPage || time.Since(begun) != 25*time.Second {
			t.Errorf("another pool: reply %d after %v", how, time.Since(begun))
		}
		if r, err := onlyA.Apply(page); r != state.Complete || err != nil || onlyA.Snapshot().Generation != 2 {
			t.Errorf("%d, %v, generation %d", r, err, onlyA.Snapshot().Generation)
		}
		if s := onlyA.Snapshot(); len(s.Pools) != 1 || s.Pools[0].Name != "a" {
			t.Errorf("pools %+v", s.Pools)
		}
		wg.Wait()
	})
}

func TestNoStateYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		var v state.View
		if _, how := ask(t, h, &v, nil, time.Second); how != replyNone {
			t.Errorf("reply %d", how)
		}
		go func() {
			time.Sleep(time.Second)
			h.Publish(fleet(1, 0, "a"), nil)
		}()
		if _, how := ask(t, h, &v, nil, time.Minute); how != replyPage {
			t.Errorf("reply %d", how)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		h.Publish(fleet(1, 0, "a"), nil)
		var v state.View
		take(t, h, &v)
		go func() {
			time.Sleep(time.Second)
			h.Close()
			h.Close()
		}()
		begun := time.Now()
		for range 2 { // one that waits, one that comes later
			if _, how := ask(t, h, &v, nil, time.Hour); how != replyNothing || time.Since(begun) != time.Second {
				t.Errorf("reply %d after %v", how, time.Since(begun))
			}
		}
	})
}

func TestAskerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		h.poll(ctx, &state.Request{}, choose(nil), time.Hour)
		if time.Since(begun) != time.Second {
			t.Errorf("held for %v", time.Since(begun))
		}
	})
}

// large is a state of several pages.
func large(waiting int32) []state.Pool {
	pools := fleet(60, waiting, "a", "b")
	for i := range pools {
		for j := range pools[i].Replicas {
			r := &pools[i].Replicas[j]
			for k := range 200 {
				r.Models = append(r.Models, strconv.Itoa(int(waiting))+"-"+strconv.Itoa(k)+string(make([]byte, 100)))
			}
		}
	}
	return pools
}

func TestSeveralPages(t *testing.T) {
	h := NewHub()
	h.Publish(large(0), nil)
	var v state.View
	take(t, h, &v)
	h.Publish(large(1), nil)
	page, _ := ask(t, h, &v, nil, time.Second)
	if r, err := v.Apply(page); r != state.Partial || err != nil {
		t.Fatal(r, err)
	}
	h.Publish(large(2), nil) // while the pages of the one before are under way
	take(t, h, &v)
	if g := v.Snapshot().Generation; g != 2 {
		t.Errorf("generation %d", g)
	}
	take(t, h, &v)
	if !state.Equal(v.Snapshot(), h.Latest()) {
		t.Error("view differs")
	}
}

// A page of an answer that is gone: the asker is given the first page of
// another one, and begins anew.
func TestPageThatIsGone(t *testing.T) {
	h := NewHub()
	h.Publish(large(0), nil)
	var v state.View
	page, _ := ask(t, h, &v, nil, time.Second)
	if r, err := v.Apply(page); r != state.Partial || err != nil {
		t.Fatal(r, err)
	}
	for i := range int32(kept + 1) {
		h.Publish(fleet(2, i, "a", "b"), nil)
	}
	take(t, h, &v)
	if !state.Equal(v.Snapshot(), h.Latest()) {
		t.Error("view differs")
	}
}

func TestAnswersAreSharedAndBounded(t *testing.T) {
	h := NewHub()
	h.Publish(fleet(2, 0, "a"), nil)
	var one, two state.View
	a, _ := ask(t, h, &one, []string{"a", "x"}, time.Second)
	b, _ := ask(t, h, &two, []string{"x", "a", "a"}, time.Second)
	if &a[0] != &b[0] {
		t.Error("the same question was encoded twice")
	}
	for i := range 2 * standard.answers {
		h.poll(t.Context(), &state.Request{}, choose([]string{strconv.Itoa(i)}), time.Second)
	}
	if n := len(h.answers.latest); n > standard.answers {
		t.Errorf("%d answers are kept", n)
	}
}

// One new state for 1,000 who wait.
func BenchmarkPublishToThousand(b *testing.B) {
	h := NewHub()
	h.Publish(fleet(256, 0, "a"), nil)
	var served sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for range 1000 {
		go func() {
			q := state.Request{Epoch: h.epoch, Gen: 1}
			for ctx.Err() == nil {
				page, _ := h.poll(ctx, &q, choose(nil), time.Hour)
				if header, err := state.ParseHeader(page); err == nil {
					q.Gen = header.To
					served.Done()
				}
			}
		}()
	}
	waiting := int32(0)
	b.ReportAllocs()
	for b.Loop() {
		waiting++
		served.Add(1000)
		h.Publish(fleet(256, waiting, "a"), nil)
		served.Wait()
	}
	h.Close()
}
