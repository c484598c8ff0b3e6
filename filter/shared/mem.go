package shared

import "sync"

// Mem is a Store in memory with the host's exact rules. It is safe for use
// by several goroutines as long as each works on its own View.
type Mem struct {
	mu     sync.Mutex
	next   uint32
	values map[string]*memValue

	// Gets and Sets count the calls, for tests that hold a budget.
	Gets, Sets int
}

type memValue struct {
	data []byte
	cas  uint32
}

// NewMem returns an empty store.
func NewMem() *Mem {
	return &Mem{values: make(map[string]*memValue)}
}

// View returns one worker's Store onto m. Values it returns stay valid until
// the next call on the same view.
func (m *Mem) View() Store { return &memView{mem: m} }

type memView struct {
	mem  *Mem
	buf  []byte
	sets uint32
}

func (v *memView) Sets() uint32 { return v.sets }

func (v *memView) Get(key []byte) ([]byte, uint32, error) {
	m := v.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Gets++
	e, ok := m.values[string(key)]
	if !ok {
		return nil, 0, ErrNotFound
	}
	v.buf = append(v.buf[:0], e.data...)
	return v.buf, e.cas, nil
}

func (v *memView) Set(key, value []byte, cas uint32) error {
	m := v.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Sets++
	e, ok := m.values[string(key)]
	if ok && cas != 0 && cas != e.cas {
		return ErrCAS
	}
	if !ok {
		e = &memValue{}
		m.values[string(key)] = e
	}
	m.next++
	if m.next == 0 || m.next == Absent {
		m.next = 1
	}
	e.data = append(e.data[:0], value...)
	e.cas = m.next
	v.sets++
	return nil
}
