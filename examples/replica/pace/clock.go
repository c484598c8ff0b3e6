package pace

import (
	"sync"
	"time"
)

// Clock is the time of engines: it starts at 0 and passes some times as fast
// as the machine's. Engines that share a clock share a world.
//
// A clock can be held, and then stands still. A simulation uses that for spans
// that cost no time in the world it simulates: while a request is inside the
// router, for one. Its methods may be called from any goroutine.
type Clock struct {
	speed  float64
	stride time.Duration // 0: the clock goes by itself
	stop   chan struct{}

	mu    sync.Mutex
	base  time.Duration // engine time at mark
	mark  time.Time
	holds int
	last  time.Time // when a steady clock was last wound
}

// NewClock returns a clock that runs speed times as fast as the machine's (0
// means 1).
func NewClock(speed float64) *Clock {
	if speed <= 0 {
		speed = 1
	}
	return &Clock{speed: speed, mark: time.Now()}
}

// NewSteadyClock returns a clock that has to be wound every millisecond, by a
// goroutine of its own, and moves by at most stride of the machine's time for
// each winding. So a process that the machine kept from running loses that
// time in its world, too. Stop ends the goroutine.
func NewSteadyClock(speed float64, stride time.Duration) *Clock {
	c := NewClock(speed)
	c.stride, c.last, c.stop = stride, c.mark, make(chan struct{})
	go c.wind()
	return c
}

// Stop ends a steady clock, which then stands still.
func (c *Clock) Stop() { close(c.stop) }

func (c *Clock) wind() {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			return
		case now := <-ticker.C:
			c.mu.Lock()
			c.advance(now)
			c.last = now
			c.mu.Unlock()
		}
	}
}

// advance moves base to what the clock shows at the given moment.
func (c *Clock) advance(now time.Time) {
	if c.holds == 0 && now.After(c.mark) {
		c.base += c.passed(now)
	}
	c.mark = now
}

// passed is the engine time since mark, if the clock was not held.
func (c *Clock) passed(now time.Time) time.Duration {
	if c.stride > 0 {
		if limit := c.last.Add(c.stride); now.After(limit) {
			now = limit
		}
	}
	return time.Duration(float64(max(now.Sub(c.mark), 0)) * c.speed)
}

// Now is the engine time.
func (c *Clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds > 0 {
		return c.base
	}
	return c.base + c.passed(time.Now())
}

// Hold stops the clock until Release has been called as often.
func (c *Clock) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds == 0 {
		c.advance(time.Now())
	}
	c.holds++
}

// Release undoes one Hold.
func (c *Clock) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds--
	if c.holds == 0 {
		c.mark = time.Now()
	}
}

// Speed is how much faster than the machine's clock engine time passes.
func (c *Clock) Speed() float64 { return c.speed }

// Wall turns a moment of engine time into one of the machine's clock, as if
// the clock had run on, or will, without being held.
func (c *Clock) Wall(at time.Duration) time.Time {
	return time.Now().Add(time.Duration(float64(at-c.Now()) / c.speed))
}

// heldNap is how long who waits for a held clock sleeps before looking again.
const heldNap = time.Millisecond

// until is how long to sleep until the clock may show at.
func (c *Clock) until(at time.Duration) time.Duration {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	d := time.Duration(float64(at-now) / c.speed)
	if c.holds > 0 {
		d = max(d, heldNap)
	}
	return max(d, 0)
}

// Sleep returns when the clock shows at, or when done is closed.
func (c *Clock) Sleep(done <-chan struct{}, at time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		if c.Now() >= at {
			return
		}
		timer.Reset(max(c.until(at), 50*time.Microsecond))
	}
}
