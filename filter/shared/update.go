package shared

import "errors"

// maxTries bounds the loop of Update. Every loss means that another worker
// made progress, so this many in a row are only seen when the machine is
// beyond help.
const maxTries = 32

// Update reads key, lets change compute its new value and stores it, again
// from the start if another worker was faster. change gets the present value
// (nil if absent, valid only during the call) and returns the new one, which
// may be scratch memory of the caller's; it returns false to leave the key as
// it is. After maxTries losses Update gives ErrCAS and has changed nothing.
func Update(s Store, key []byte, change func(value []byte) ([]byte, bool)) error {
	for range maxTries {
		value, cas, err := s.Get(key)
		if errors.Is(err, ErrNotFound) {
			value, cas = nil, Absent
		} else if err != nil {
			return err
		}
		next, ok := change(value)
		if !ok {
			return nil
		}
		err = s.Set(key, next, cas)
		if err == nil || !errors.Is(err, ErrCAS) {
			return err
		}
	}
	return ErrCAS
}
