package pace

import (
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

func TestRealTime(t *testing.T) {
	f := func(rate, speed float64, atLeast, below time.Duration) {
		t.Helper()
		r := New(engine.New(engine.Config{PrefillRate: 1000, DecodeRate: rate, DecodeFull: rate}), NewClock(speed))
		defer r.Stop()
		done := make(chan time.Time, 1)
		req := r.Prepare(engine.Spec{Prompt: engine.Tokenize(nil, "one two three four"), MaxTokens: 20, Deliver: func(o engine.Output) {
			if o.Finish != "" {
				done <- time.Now()
			}
		}})
		start := time.Now()
		if err := r.Submit(req); err != nil {
			t.Fatal(err)
		}
		if took := (<-done).Sub(start); took < atLeast || took > below {
			t.Errorf("at speed %v it took %v, want %v to %v", speed, took, atLeast, below)
		}
	}
	f(100, 1, 180*time.Millisecond, 5*time.Second)
	f(10, 20, 90*time.Millisecond, 1500*time.Millisecond)
}

func TestHeldClockStandsStill(t *testing.T) {
	c := NewSteadyClock(100, 50*time.Millisecond)
	defer c.Stop()
	r := New(engine.New(engine.Config{PrefillRate: 1000, DecodeRate: 100, DecodeFull: 100}), c)
	defer r.Stop()
	first := make(chan time.Duration, 1)
	req := r.Prepare(engine.Spec{Prompt: engine.Tokenize(nil, "one two three four"), MaxTokens: 1, Deliver: func(o engine.Output) { first <- o.At }})
	c.Hold()
	c.Hold()
	at := c.Now()
	if err := r.Submit(req); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	c.Release()
	time.Sleep(20 * time.Millisecond) // 4 s of engine time so far, were it not held
	if now := c.Now(); now != at {
		t.Fatalf("a held clock went from %v to %v", at, now)
	}
	select {
	case <-first:
		t.Fatal("an engine went on while its clock was held")
	default:
	}
	c.Release()
	if got := <-first; got <= at || got > at+time.Second {
		t.Errorf("a request of some milliseconds began at %v and had its token at %v", at, got)
	}
	c.Sleep(nil, at+2*time.Second)
	if now := c.Now(); now < at+2*time.Second {
		t.Errorf("slept until %v, not %v", now, at+2*time.Second)
	}
}

func TestSteadyClockLosesWhatIsLate(t *testing.T) {
	c := NewClock(10)
	c.stride, c.last = 2*time.Millisecond, c.mark
	start := c.mark
	c.advance(start.Add(time.Second)) // nobody has wound it for a second
	if got, want := c.base, 20*time.Millisecond; got != want {
		t.Errorf("a second without winding moved the clock by %v, want %v", got, want)
	}
}

func TestSubmitAllOrNone(t *testing.T) {
	r := New(engine.New(engine.Config{MaxSeqs: 1, MaxQueued: 2, PrefillRate: 1}), NewClock(1))
	defer r.Stop()
	var reqs []*engine.Request
	for range 5 {
		reqs = append(reqs, r.Prepare(engine.Spec{Prompt: engine.Tokenize(nil, "a b c d e f"), MaxTokens: 1}))
	}
	if err := r.Submit(reqs...); err != engine.ErrQueueFull {
		t.Fatalf("five requests: %v, want ErrQueueFull", err)
	}
	r.Do(func(e *engine.Engine, _ time.Duration) {
		if _, waiting, _ := e.Load(); waiting != 0 {
			t.Errorf("%d requests of a refused group still wait", waiting)
		}
	})
	if err := r.Submit(r.Prepare(engine.Spec{Prompt: engine.Tokenize(nil, "x"), MaxTokens: 1})); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
}

func TestAbortStopsOutputs(t *testing.T) {
	r := New(engine.New(engine.Config{DecodeRate: 100, DecodeFull: 100}), NewClock(1))
	defer r.Stop()
	outs := make(chan engine.Output, 10000)
	req := r.Prepare(engine.Spec{Prompt: []engine.Token{300}, MaxTokens: 10000, Deliver: func(o engine.Output) { outs <- o }})
	if err := r.Submit(req); err != nil {
		t.Fatal(err)
	}
	<-outs
	r.Abort(req)
	time.Sleep(30 * time.Millisecond)
	seen := len(outs)
	time.Sleep(50 * time.Millisecond)
	if len(outs) != seen {
		t.Error("outputs go on after an abort")
	}
}
