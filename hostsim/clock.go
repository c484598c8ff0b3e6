package hostsim

import (
	"container/heap"
	"time"
)

// clock is virtual time and what is due in it. Nothing happens by itself:
// events run when the owner of the Host advances time, in order of their
// time and then of their making.
type clock struct {
	start  time.Time
	now    time.Duration // since start
	seq    uint64
	events eventHeap
}

type event struct {
	at     time.Duration
	seq    uint64
	worker *worker // whose thread runs it; nil for the outside world
	run    func()
	dead   bool
}

// stop makes e never run.
func (e *event) stop() {
	if e != nil {
		e.dead = true
	}
}

func (c *clock) wall() time.Time { return c.start.Add(c.now) }

func (c *clock) after(d time.Duration, w *worker, run func()) *event {
	c.seq++
	e := &event{at: c.now + max(d, 0), seq: c.seq, worker: w, run: run}
	heap.Push(&c.events, e)
	return e
}

// runUntil runs every event due up to end and leaves the clock there.
func (c *clock) runUntil(end time.Duration) {
	for c.step(end) {
	}
	c.now = max(c.now, end)
}

// step runs the next event that is due by end, if there is one. Events of a
// worker in the middle of a callback wait, as they would on its thread.
func (c *clock) step(end time.Duration) bool {
	var waiting []*event
	defer func() {
		for _, e := range waiting {
			heap.Push(&c.events, e)
		}
	}()
	for len(c.events) > 0 && c.events[0].at <= end {
		e := heap.Pop(&c.events).(*event)
		if e.dead {
			continue
		}
		if e.worker != nil && e.worker.busy {
			waiting = append(waiting, e)
			continue
		}
		c.now = max(c.now, e.at)
		e.runOn()
		return true
	}
	return false
}

func (e *event) runOn() {
	if e.worker == nil {
		e.run()
		return
	}
	e.worker.busy = true
	defer func() { e.worker.busy = false }()
	e.run()
}

// next returns when the next live event is due.
func (c *clock) next() (time.Duration, bool) {
	for len(c.events) > 0 && c.events[0].dead {
		heap.Pop(&c.events)
	}
	if len(c.events) == 0 {
		return 0, false
	}
	return c.events[0].at, true
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
