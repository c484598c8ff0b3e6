package pace

import (
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

func TestRealTime(t *testing.T) {
	f := func(rate, speed float64, atLeast, below time.Duration) {
		t.Helper()
		r := New(engine.New(engine.Config{PrefillRate: 1000, DecodeRate: rate, DecodeFull: rate}), speed)
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

func TestSubmitAllOrNone(t *testing.T) {
	r := New(engine.New(engine.Config{MaxSeqs: 1, MaxQueued: 2, PrefillRate: 1}), 1)
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
	r := New(engine.New(engine.Config{DecodeRate: 100, DecodeFull: 100}), 1)
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
