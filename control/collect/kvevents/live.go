package kvevents

import (
	"context"
	"sync/atomic"
)

// maxSpare is the size of a message whose memory is kept for the next.
const maxSpare = 1 << 20

// live is the stream of events as the engine publishes them. A goroutine reads the
// socket at once, whatever else goes on, into a bounded queue; what does not fit is
// dropped, which is a gap to whoever takes from the queue.
type live struct {
	conn     *conn
	queue    chan *message // closed when the connection ends
	spare    chan *message
	waiting  atomic.Int64 // bytes in the queue
	most     int64
	counters Counters
	err      error // why it ended; to be read after the queue is closed
}

// subscribe connects to a publisher and begins to read.
func (f *Follower) subscribe(ctx context.Context) (*live, error) {
	c, err := dial(ctx, f.address, "SUB", "PUB", f.opts.DialTimeout)
	if err != nil {
		return nil, err
	}
	if err := c.send([]byte{1}); err != nil { // to all topics
		_ = c.Close()
		return nil, err
	}
	l := &live{conn: c, queue: make(chan *message, f.opts.QueueMessages), spare: make(chan *message, 64),
		most: int64(f.opts.QueueBytes), counters: f.counters}
	go l.read()
	return l, nil
}

// stop ends the stream and waits for its goroutine.
func (l *live) stop() {
	_ = l.conn.Close()
	for m := range l.queue {
		l.release(m)
	}
}

func (l *live) read() {
	defer close(l.queue)
	for {
		m := l.empty()
		if l.err = l.conn.receive(m); l.err != nil {
			return
		}
		l.put(m)
	}
}

// put queues a message if it fits.
func (l *live) put(m *message) {
	size := int64(len(m.data))
	if l.waiting.Add(size) <= l.most {
		select {
		case l.queue <- m:
			return
		default:
		}
	}
	l.release(m)
	l.counters.Anomaly(Overrun, 1)
}

func (l *live) empty() *message {
	select {
	case m := <-l.spare:
		return m
	default:
		return new(message)
	}
}

// release gives back a message that was queued.
func (l *live) release(m *message) {
	l.waiting.Add(-int64(len(m.data)))
	if cap(m.data) > maxSpare {
		return
	}
	select {
	case l.spare <- m:
	default:
	}
}
