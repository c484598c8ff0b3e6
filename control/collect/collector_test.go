package collect

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// manual is a source whose list a test sets.
type manual chan []Member

func (m manual) Run(ctx context.Context, emit func([]Member), _ func(error)) {
	for {
		select {
		case list := <-m:
			emit(list)
		case <-ctx.Done():
			return
		}
	}
}

// running is a collector at work and what it published.
type running struct {
	mu     sync.Mutex
	states [][]state.Pool
	cancel context.CancelFunc
	done   chan struct{}
}

func begin(t *testing.T, scrape Scrape, sources ...Source) *running {
	t.Helper()
	r := &running{done: make(chan struct{})}
	c := New(Config{
		Pools:    []Pool{{Name: "default", Sources: sources, Scrape: scrape}},
		Coalesce: 5 * time.Millisecond, LoadEvery: 20 * time.Millisecond,
		RefreshEvery: 200 * time.Millisecond, FirstWithin: 3 * time.Second,
		Log: slog.New(slog.DiscardHandler), Publish: r.publish,
	})
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		c.Run(ctx)
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	r.cancel()
	<-r.done
}

func (r *running) publish(pools []state.Pool, _ []state.Patch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, pools)
}

func (r *running) last() (replicas []state.Replica, states int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return nil, 0
	}
	return r.states[len(r.states)-1][0].Replicas, len(r.states)
}

// wait waits until the last state is as ok says.
func (r *running) wait(t *testing.T, what string, ok func([]state.Replica) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if replicas, n := r.last(); n > 0 && ok(replicas) {
			return
		}
	}
	replicas, n := r.last()
	t.Fatalf("%s: not seen; %d states, last %.500s", what, n, fmt.Sprintf("%+v", replicas))
}

func engineServer(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func TestReplicasComeAndGo(t *testing.T) {
	e := &fakeEngine{metrics: text("vllm:num_requests_running 3\n"), models: text(`{"data":[{"id":"m"}]}`)}
	a, b := engineServer(t, e), engineServer(t, e)
	list := make(manual)
	r := begin(t, quick, list)
	list <- members(a)
	r.wait(t, "first", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].Health == state.Healthy })
	r.mu.Lock()
	if first := r.states[0][0]; first.Replicas[0].Load.Running != 3 || len(first.Models) != 1 {
		t.Errorf("the first state has holes: %+v", first)
	}
	r.mu.Unlock()
	list <- members(a, b)
	r.wait(t, "second", func(rs []state.Replica) bool { return len(rs) == 2 && rs[1].Health == state.Healthy })
	list <- []Member{{Address: a, Draining: true}, {Address: b}}
	r.wait(t, "draining", func(rs []state.Replica) bool { return rs[0].Health == state.Draining })
	list <- members(b)
	r.wait(t, "gone", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].Slot == 1 })
	list <- members(a, b)
	r.wait(t, "back", func(rs []state.Replica) bool {
		return len(rs) == 2 && rs[0].Slot == 0 && rs[0].Health == state.Healthy
	})
}

func TestRestartChangesTheIncarnation(t *testing.T) {
	var began atomic.Int64
	began.Store(1000)
	a := engineServer(t, &fakeEngine{metrics: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "process_start_time_seconds %d\n", began.Load())
	}})
	r := begin(t, quick, Static(members(a)))
	var before uint32
	r.wait(t, "first", func(rs []state.Replica) bool { before = rs[0].Incarnation; return before != 0 })
	began.Store(2000)
	r.wait(t, "restart", func(rs []state.Replica) bool { return rs[0].Incarnation != before })
}

// An engine at rest: nothing but that its load is fresh is told, and rarely.
func TestJitterThatChangesNothingIsNotTold(t *testing.T) {
	n := 0
	a := engineServer(t, &fakeEngine{metrics: func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprintf(w, "vllm:kv_cache_usage_perc 0.5000%d\n", n%10)
	}})
	r := begin(t, quick, Static(members(a)))
	r.wait(t, "first", func(rs []state.Replica) bool { return len(rs) == 1 })
	_, before := r.last()
	time.Sleep(600 * time.Millisecond)
	if _, after := r.last(); after-before < 1 || after-before > 5 {
		t.Errorf("%d states in 600 ms, want about 3", after-before)
	}
}

func TestFirstStateDoesNotWaitForEver(t *testing.T) {
	hung := engineServer(t, &fakeEngine{metrics: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	scrape := quick
	scrape.Timeout = time.Minute
	begun := time.Now()
	r := begin(t, scrape, Static(members(hung)))
	r.wait(t, "first", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].Health == state.Unknown })
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("the first state came after %v, without a reading", took)
	}
}

func TestAddressThatFlaps(t *testing.T) {
	a := engineServer(t, &fakeEngine{metrics: text("up 1\n")})
	list := make(manual)
	r := begin(t, quick, list)
	for range 30 {
		list <- members(a)
		list <- nil
	}
	list <- members(a)
	r.wait(t, "settled", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].Health == state.Healthy })
}

// 256 replicas with the metrics of a real engine must be a small part of one
// core. The measure is what Prometheus' parser takes for one such text, so that
// the test says the same on a slow machine; a scrape, with the engine's side of
// it and all that follows, takes a tenth of that.
func TestManyReplicasAreCheap(t *testing.T) {
	body := fixture(t, "metrics-loaded.txt")
	var scrapes atomic.Int64
	srv := &http.Server{Handler: &fakeEngine{metrics: func(w http.ResponseWriter, _ *http.Request) {
		scrapes.Add(1)
		w.Write(body)
	}}}
	t.Cleanup(func() { srv.Close() })
	var list []Member
	for range 256 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l)
		list = append(list, Member{Address: l.Addr().String()})
	}
	reference := referenceCost(t, body)
	scrape := DefaultScrape
	scrape.Interval, scrape.Timeout = 500*time.Millisecond, 20*time.Second
	r := begin(t, scrape, Static(list))
	r.wait(t, "all healthy", func(rs []state.Replica) bool {
		return len(rs) == 256 && !slices.ContainsFunc(rs, func(r state.Replica) bool { return r.Health != state.Healthy })
	})
	n, used := scrapes.Load(), cpu(t)
	time.Sleep(2 * time.Second)
	n, used = scrapes.Load()-n, cpu(t)-used
	each := used / time.Duration(max(n, 1))
	t.Logf("%d scrapes, %v CPU each for both ends; the reference is %v", n, each, reference)
	if each > reference {
		t.Errorf("a scrape costs %v", each)
	}
}

func referenceCost(t *testing.T, body []byte) time.Duration {
	t.Helper()
	before := cpu(t)
	for range 10 {
		if _, err := reference(body); err != nil {
			t.Fatal(err)
		}
	}
	return (cpu(t) - before) / 10
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
