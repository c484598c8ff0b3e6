// Package pace runs an engine in real time, or a multiple of it, or by a
// [Clock] that stands still at times. One goroutine with one timer wakes when a
// step ends; it serves any number of requests, so a replica that streams to
// hundreds of clients costs little.
package pace

import (
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Runner drives one engine. Its methods may be called from any goroutine, but
// not from Deliver or OnBatch of the engine, which run under its lock.
type Runner struct {
	clock *Clock
	mu    sync.Mutex
	eng   *engine.Engine
	wake  chan struct{}
	stop  chan struct{}
	once  sync.Once
}

// New starts a runner that goes by the given clock. Stop ends it.
func New(eng *engine.Engine, clock *Clock) *Runner {
	r := &Runner{clock: clock, eng: eng, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	go r.loop()
	return r
}

// Stop ends the runner's goroutine, not its clock; requests under way get no
// more outputs.
func (r *Runner) Stop() { r.once.Do(func() { close(r.stop) }) }

// Speed is how much faster than the machine's clock engine time passes.
func (r *Runner) Speed() float64 { return r.clock.Speed() }

// Wall turns a moment of engine time into one of the machine's clock.
func (r *Runner) Wall(at time.Duration) time.Time { return r.clock.Wall(at) }

// Prepare makes a request, without holding up the engine.
func (r *Runner) Prepare(s engine.Spec) *engine.Request { return r.eng.NewRequest(s) }

// Submit queues requests together, all or none: when one is refused, those
// before it are aborted.
func (r *Runner) Submit(reqs ...*engine.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.nudge()
	now := r.clock.Now()
	for i, req := range reqs {
		if err := r.eng.Submit(now, req); err != nil {
			for _, sent := range reqs[:i] {
				r.eng.Abort(now, sent)
			}
			return err
		}
	}
	return nil
}

// Abort ends requests whose client has gone. Those that are done stay as they are.
func (r *Runner) Abort(reqs ...*engine.Request) {
	r.Do(func(e *engine.Engine, now time.Duration) {
		for _, req := range reqs {
			e.Abort(now, req)
		}
	})
}

// Do calls f with the engine, brought up to the present time, under the lock.
func (r *Runner) Do(f func(e *engine.Engine, now time.Duration)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.nudge()
	now := r.clock.Now()
	r.eng.Advance(now)
	f(r.eng, now)
}

// nudge makes the loop look again at when the next step ends.
func (r *Runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop sleeps until the step under way ends, completes it, and so on.
func (r *Runner) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-r.wake:
		case <-timer.C:
		}
		timer.Reset(r.turn())
	}
}

// turn completes what is due and returns how long to sleep.
func (r *Runner) turn() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eng.Advance(r.clock.Now())
	at, busy := r.eng.Next()
	if !busy {
		return time.Hour
	}
	return r.clock.until(at)
}
