package report

import (
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
)

const t0 = int64(1_700_000_000_000)

// dice returns numbers that differ from one worker to the next.
func dice(seed uint64) func() uint64 {
	return func() uint64 { seed += 0x9e3779b97f4a7c15; return seed }
}

var config = Config{Engine: "engine", IntervalMS: 250, MaxBytes: 1 << 20}

func newWorker(mem *shared.Mem, seed uint64) *Reporter {
	return New(config, Env{Store: mem.View(), Dice: dice(seed), Counts: func(path []byte) bool { return string(path) == "/v1/chat/completions" }})
}

// answer has the engine say text.
func answer(r *Reporter, now int64, text string) error {
	return r.Answer(now, 200, len(text), func(offset, max int) []byte { return []byte(text[offset : offset+max]) })
}

// stamped is what the worker would report now.
func stamped(r *Reporter, now int64) string {
	none := route.NoReport()
	return string(r.report(now, &none))
}

const idleStamp = "TEXT named_metrics.owed_tokens=0, named_metrics.in_flight=0"

func TestOneWorkerAsks(t *testing.T) {
	mem := shared.NewMem()
	busy, idle := newWorker(mem, 1), newWorker(mem, 2)
	busy.Busy()
	if !busy.Tick(t0) {
		t.Fatal("nobody asks though the only VM could")
	}
	if busy.Tick(t0 + 250) {
		t.Error("asked again before there was an answer")
	}
	if !idle.Tick(t0 + 260) {
		t.Error("the VM without streams did not take over")
	}
	if busy.Tick(t0+2000) || busy.Tick(t0+3000) {
		t.Error("two VMs ask")
	}
	if err := answer(idle, t0+270, "vllm:num_requests_waiting 3\n"); err != nil {
		t.Fatal(err)
	}
	if want := "TEXT named_metrics.num_requests_waiting=3, named_metrics.owed_tokens=0, named_metrics.in_flight=0"; stamped(busy, t0+300) != want {
		t.Errorf("the other worker says %q, want %q", stamped(busy, t0+300), want)
	}
	asked := 0
	for now := t0 + 500; now < t0+10_500; now += 250 {
		if busy.Tick(now) {
			t.Errorf("two VMs ask at %d", now-t0)
		}
		if idle.Tick(now) {
			asked++
			idle.Failed()
		}
	}
	if asked != 40 {
		t.Errorf("asked %d times in 10 s, want 40", asked)
	}
	// The one who asks dies; the other takes over when its lease is over.
	if !busy.Tick(t0 + 10_500 + shared.LeaseTerm) {
		t.Error("nobody asks after the death of the one who did")
	}
	busy.Close()
	if !idle.Tick(t0 + 10_501 + shared.LeaseTerm) {
		t.Error("the lease was not given up")
	}
}

// TestFading takes the engine's word away: it counts for eight intervals.
func TestFading(t *testing.T) {
	r := newWorker(shared.NewMem(), 1)
	r.Tick(t0)
	if got := stamped(r, t0); got != idleStamp {
		t.Errorf("before the first word: %q", got)
	}
	if err := answer(r, t0, "vllm:kv_cache_usage_perc 0.41234\n"); err != nil {
		t.Fatal(err)
	}
	known := "TEXT named_metrics.kv_cache_usage_perc=0.412, named_metrics.owed_tokens=0, named_metrics.in_flight=0"
	for _, f := range []struct {
		after int64
		want  string
	}{{0, known}, {2000, known}, {2001, idleStamp}, {-2001, idleStamp}} {
		if got := stamped(r, t0+f.after); got != f.want {
			t.Errorf("%d ms later: %q, want %q", f.after, got, f.want)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	f := func(status int, text, want string) {
		t.Helper()
		mem := shared.NewMem()
		r := newWorker(mem, 1)
		r.Tick(t0)
		sets := mem.Sets
		err := r.Answer(t0, status, len(text), func(offset, max int) []byte {
			return []byte(text[offset : offset+max])
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("status %d, %.40q: %v, want %s", status, text, err, want)
		}
		if mem.Sets != sets {
			t.Errorf("status %d, %.40q: written into shared data", status, text)
		}
		if !r.Tick(t0 + 250) {
			t.Errorf("status %d, %.40q: not asked again", status, text)
		}
	}
	f(503, "busy", "status 503")
	f(0, "", "status 0")
	f(200, "", "none of those")
	f(200, "<html>", "none of those")
	f(200, "# vllm:num_requests_waiting 3", "none of those")
	f(200, strings.Repeat("x", 1<<20+1), "1048577 bytes; allowed: 1048576")

	r := newWorker(shared.NewMem(), 1)
	if err := r.Answer(t0, 200, 100, func(int, int) []byte { return nil }); err != errCut {
		t.Errorf("a text that cannot be read: %v", err)
	}
}

func TestAnswerMakesNoGarbage(t *testing.T) {
	text := realMetrics(t)
	r := newWorker(shared.NewMem(), 1)
	read := func(offset, max int) []byte { return text[offset : offset+max] }
	now := t0
	if n := testing.AllocsPerRun(100, func() {
		now += 250
		if err := r.Answer(now, 200, len(text), read); err != nil {
			t.Fatal(err)
		}
		r.Tick(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
