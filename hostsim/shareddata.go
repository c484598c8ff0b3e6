package hostsim

import (
	"slices"
	"sync"
)

// Shared is the shared data of one proxy: one store under one vm_id, seen by
// every VM. The rules are those of proxy-wasm-cpp-host: CAS 0 overwrites; on
// an absent key any CAS creates; another CAS must match, or nothing changes;
// numbers come from one counter for all keys and never are 0.
//
// Guests reach it by host calls; a test reads and prepares it by the methods
// here, which are not counted.
type Shared struct {
	mu     sync.Mutex
	next   uint32
	values map[string]sharedValue
	gets   int
	sets   int
}

type sharedValue struct {
	data string
	cas  uint32
}

func newShared() *Shared { return &Shared{values: map[string]sharedValue{}} }

// Get returns the value and CAS number of key; ok is false if it was never set.
func (s *Shared) Get(key string) (value []byte, cas uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	return []byte(v.data), v.cas, ok
}

// Set stores value under key unconditionally.
func (s *Shared) Set(key string, value []byte) { s.set(key, string(value), 0) }

// Keys returns all keys, sorted. Guests cannot list keys; tests can.
func (s *Shared) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, len(s.values))
	for k := range s.values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Bytes returns the memory the store holds: the sum of keys and values.
func (s *Shared) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for k, v := range s.values {
		n += len(k) + len(v.data)
	}
	return n
}

// Calls returns how often guests have read and written since the host
// started, failed calls included. A stream's own share is in its Result.
func (s *Shared) Calls() (gets, sets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets, s.sets
}

func (s *Shared) count(gets, sets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets += gets
	s.sets += sets
}

func (s *Shared) set(key, value string, cas uint32) status {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	if ok && cas != 0 && cas != v.cas {
		return statusCASMismatch
	}
	s.next++
	if s.next == 0 {
		s.next = 1
	}
	s.values[key] = sharedValue{data: value, cas: s.next}
	return statusOK
}
