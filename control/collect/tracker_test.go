package collect

import (
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// sampleAt is what an engine that began at start says after serving n requests.
func sampleAt(start float64, n float64) *Sample {
	one := func(v float64) Total { return Total{v, 1} }
	return &Sample{
		Start: start, Waiting: one(0), Running: one(1), KV: one(.5),
		Queries: one(100 * n), Hits: one(75 * n), Finished: one(n), Generated: one(50 * n), Prompt: one(100 * n),
	}
}

// series gives samples to one tracker, a second apart.
type series struct {
	t    tracker
	now  time.Time
	load state.Load
}

func (s *series) observe(sample *Sample) uint32 {
	s.now = s.now.Add(time.Second)
	s.load = s.t.observe(sample, s.now)
	return s.t.incarnation()
}

func TestRatesAndHitRatio(t *testing.T) {
	s := series{now: time.UnixMilli(1_796_050_799_000)}
	s.observe(sampleAt(1000, 40))
	if l := s.load; l.RPS == l.RPS || l.TPS == l.TPS || l.Hit == l.Hit {
		t.Errorf("one sample gives rates: %+v", l)
	}
	for n := range 30 {
		s.observe(sampleAt(1000, 40+4*float64(n+1)))
	}
	want := state.Load{At: s.now.UnixMilli(), Waiting: 0, Running: 1, KV: .5, Hit: .75, RPS: 4, TPS: 200}
	if !state.EqualLoad(&s.load, &want) {
		t.Errorf("got %+v, want %+v", s.load, want)
	}
	if n := len(s.t.window.marks); n > 12 {
		t.Errorf("the window keeps %d marks", n)
	}
	// An idle engine: rates fall to 0, the ratio stays what it was.
	for range 15 {
		s.observe(sampleAt(1000, 160))
	}
	if l := s.load; l.RPS != 0 || l.TPS != 0 || l.Hit != .75 {
		t.Errorf("idle: %+v", l)
	}
}

func TestAbsentIsNotZero(t *testing.T) {
	s := series{now: time.UnixMilli(1_796_050_799_000)}
	s.observe(&Sample{})
	s.observe(&Sample{})
	want := state.NoLoad()
	want.At = s.now.UnixMilli()
	if !state.EqualLoad(&s.load, &want) {
		t.Errorf("got %+v", s.load)
	}
}

// The usage of several engines is their mean: a replica's engines have caches
// of one size, and share its requests.
func TestSeveralEngines(t *testing.T) {
	s := series{}
	s.observe(&Sample{KV: Total{0.93, 2}, Running: Total{7, 2}})
	if s.load.KV != .465 || s.load.Running != 7 {
		t.Errorf("got %+v", s.load)
	}
}

func TestIncarnation(t *testing.T) {
	f := func(what string, same bool, before, after *Sample) {
		t.Helper()
		s := series{now: time.UnixMilli(1_796_050_799_000)}
		a := s.observe(before)
		b := s.observe(after)
		if a == 0 || b == 0 {
			t.Errorf("%s: incarnation 0", what)
		}
		if (a == b) != same {
			t.Errorf("%s: %d then %d", what, a, b)
		}
	}
	f("goes on", true, sampleAt(1000, 4), sampleAt(1000, 5))
	f("idle", true, sampleAt(1000, 4), sampleAt(1000, 4))
	f("start time jitters", true, sampleAt(1000, 4), sampleAt(1000.9, 4))
	f("new process", false, sampleAt(1000, 4), sampleAt(1060, 0))
	f("new process that has overtaken the old", false, sampleAt(1000, 4), sampleAt(1060, 9))
	f("quick restart", false, sampleAt(1000, 4), sampleAt(1000.5, 0))
	f("counters fell", false, sampleAt(1000, 4), sampleAt(1000, 1))
	f("counters fell, no start time", false, sampleAt(0, 4), sampleAt(0, 1))
	f("start time vanished", true, sampleAt(1000, 4), sampleAt(0, 4))
	f("start time vanished and counters fell", false, sampleAt(1000, 4), sampleAt(0, 1))
	f("metrics vanished", true, sampleAt(1000, 4), &Sample{Start: 1000})
}

func TestIncarnationIsTheSameForEveryObserver(t *testing.T) {
	var a, b series
	a.observe(sampleAt(900, 4))
	x := a.observe(sampleAt(1000, 0))
	if y := b.observe(sampleAt(1000, 7)); x != y {
		t.Errorf("%d and %d", x, y)
	}
	if (&tracker{}).incarnation() != 0 {
		t.Error("an engine that was never seen has an incarnation")
	}
}

func TestRestartForgetsTheHitRatio(t *testing.T) {
	s := series{now: time.UnixMilli(1_796_050_799_000)}
	s.observe(sampleAt(1000, 1))
	s.observe(sampleAt(1000, 9))
	s.observe(sampleAt(2000, 1))
	if s.load.Hit == s.load.Hit || s.load.RPS == s.load.RPS {
		t.Errorf("got %+v", s.load)
	}
}

func TestRounding(t *testing.T) {
	f := func(delta float64, want float32) {
		t.Helper()
		if got := rate(delta, time.Second); got != want {
			t.Errorf("%v: got %v, want %v", delta, got, want)
		}
	}
	f(0, 0)
	f(-5, 0)
	f(4.1049, 4.1)
	f(812.3, 812)
	f(98765, 98800)
	if got := quantum(0.41239, 1000); got != 0.412 {
		t.Errorf("got %v", got)
	}
}
