package shared

import (
	"bytes"
	"errors"
)

// Conform checks that s keeps the rules of [Store] and returns the first one
// broken. It runs on Mem, inside a guest in hostsim, and inside a guest on a
// real Envoy. run must be new for each call on the same store, since keys
// cannot be removed.
func Conform(s Store, run string) error {
	for _, rule := range rules {
		if err := rule.check(s, []byte(conformPrefix+run+"."+rule.name)); err != nil {
			return errors.New("shared data: rule " + rule.name + ": " + err.Error())
		}
	}
	return nil
}

var rules = []struct {
	name  string
	check func(s Store, key []byte) error
}{
	{"absent", absentIsNotFound},
	{"overwrite", zeroOverwrites},
	{"mismatch", staleIsRefused},
	{"create", absentCreatesOnce},
	{"count", writesAreNumbered},
}

func absentIsNotFound(s Store, key []byte) error {
	if _, _, err := s.Get(key); !errors.Is(err, ErrNotFound) {
		return errors.New("Get of a fresh key did not give ErrNotFound")
	}
	return nil
}

func zeroOverwrites(s Store, key []byte) error {
	if err := s.Set(key, []byte("one"), 0); err != nil {
		return err
	}
	_, first, err := s.Get(key)
	if err != nil {
		return err
	}
	if err := s.Set(key, []byte("two"), 0); err != nil {
		return err
	}
	value, second, err := s.Get(key)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(value, []byte("two")):
		return errors.New("CAS 0 did not overwrite")
	case first == 0 || first == second:
		return errors.New("the CAS number did not change with the value")
	}
	return nil
}

func staleIsRefused(s Store, key []byte) error {
	if err := s.Set(key, []byte("one"), 0); err != nil {
		return err
	}
	_, stale, err := s.Get(key)
	if err != nil {
		return err
	}
	if err := s.Set(key, []byte("two"), stale); err != nil {
		return errors.New("the present CAS number was refused")
	}
	if err := s.Set(key, []byte("three"), stale); !errors.Is(err, ErrCAS) {
		return errors.New("a stale CAS number was accepted")
	}
	value, _, err := s.Get(key)
	if err == nil && !bytes.Equal(value, []byte("two")) {
		return errors.New("a refused Set changed the value")
	}
	return err
}

func absentCreatesOnce(s Store, key []byte) error {
	if err := s.Set(key, []byte("mine"), Absent); err != nil {
		return errors.New("a fresh key was not created with Absent")
	}
	if err := s.Set(key, []byte("theirs"), Absent); !errors.Is(err, ErrCAS) {
		return errors.New("a key that was there was overwritten with Absent")
	}
	return nil
}

// writesAreNumbered: the number of a write is at least that of one before plus
// the writes of this view since. Others may write meanwhile, so it can be more.
func writesAreNumbered(s Store, key []byte) error {
	if err := s.Set(key, []byte("one"), 0); err != nil {
		return err
	}
	_, first, err := s.Get(key)
	if err != nil {
		return err
	}
	before := s.Sets()
	for _, value := range []string{"two", "three", "four"} {
		if err := s.Set(key, []byte(value), 0); err != nil {
			return err
		}
	}
	if err := s.Set(key, []byte("five"), first); !errors.Is(err, ErrCAS) {
		return errors.New("a stale CAS number was accepted")
	}
	_, last, err := s.Get(key)
	switch {
	case err != nil:
		return err
	case s.Sets()-before != 3:
		return errors.New("Sets does not count the successful writes")
	case int32(last-first) < 3:
		return errors.New("the CAS number grew by less than the writes")
	}
	return nil
}
