package wire

import (
	"sync"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// letter is one token on its way to a client; choice is the index of its answer.
type letter struct {
	choice int
	out    engine.Output
}

// mailbox passes outputs from the engine, which must not wait, to the goroutine
// of one HTTP exchange, which may be slow: it takes all there are at a time.
type mailbox struct {
	mu    sync.Mutex
	full  []letter
	spare []letter
	ready chan struct{}
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put is called by the engine.
func (m *mailbox) put(l letter) {
	m.mu.Lock()
	m.full = append(m.full, l)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns what came since the last call; it is valid until the next one.
func (m *mailbox) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	got := m.full
	m.full, m.spare = m.spare[:0], got
	return got
}
