package shared

import (
	"errors"
	"sync"
	"testing"
)

func TestMemConforms(t *testing.T) {
	m := NewMem()
	for _, run := range []string{"a", "b"} {
		if err := Conform(m.View(), run); err != nil {
			t.Error(err)
		}
	}
}

// broken is a Store with one rule of the host left out.
type broken struct {
	Store
	set func(s Store, key, value []byte, cas uint32) error
}

func (b broken) Set(key, value []byte, cas uint32) error {
	return b.set(b.Store, key, value, cas)
}

func TestConformSeesBrokenRules(t *testing.T) {
	f := func(name string, set func(s Store, key, value []byte, cas uint32) error) {
		t.Helper()
		if err := Conform(broken{NewMem().View(), set}, "x"); err == nil {
			t.Errorf("%s: a store without the rule conforms", name)
		}
	}
	f("CAS ignored", func(s Store, k, v []byte, _ uint32) error { return s.Set(k, v, 0) })
	f("CAS 0 creates only", func(s Store, k, v []byte, cas uint32) error {
		if cas == 0 {
			cas = Absent
		}
		return s.Set(k, v, cas)
	})
	f("nothing stored", func(Store, []byte, []byte, uint32) error { return nil })
}

func TestUpdateCountsEveryWorker(t *testing.T) {
	m, key := NewMem(), []byte("k")
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			view, next := m.View(), make([]byte, 2)
			for range each {
				err := ErrCAS
				for errors.Is(err, ErrCAS) {
					err = Update(view, key, func(v []byte) ([]byte, bool) {
						n := uint16(0)
						if v != nil {
							n = uint16(v[0]) | uint16(v[1])<<8
						}
						n++
						next[0], next[1] = byte(n), byte(n>>8)
						return next, true
					})
				}
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	v, _, err := m.View().Get(key)
	if n := int(v[0]) | int(v[1])<<8; err != nil || n != workers*each {
		t.Errorf("counted %d of %d, err %v", n, workers*each, err)
	}
}

func TestUpdateGivesUp(t *testing.T) {
	s := broken{NewMem().View(), func(Store, []byte, []byte, uint32) error { return ErrCAS }}
	tries := 0
	err := Update(s, []byte("k"), func([]byte) ([]byte, bool) { tries++; return nil, true })
	if !errors.Is(err, ErrCAS) || tries != maxTries {
		t.Errorf("err %v after %d tries, want ErrCAS after %d", err, tries, maxTries)
	}
}

func TestUpdateLeavesAlone(t *testing.T) {
	m := NewMem()
	err := Update(m.View(), []byte("k"), func(v []byte) ([]byte, bool) {
		if v != nil {
			t.Errorf("absent key gave %q", v)
		}
		return nil, false
	})
	if err != nil || m.Sets != 0 {
		t.Errorf("err %v, %d sets, want none", err, m.Sets)
	}
}

func TestKeys(t *testing.T) {
	if got := string(LedgerKey("a/b")); got != "wl.l.a/b" {
		t.Error(got)
	}
	for want, appendKey := range map[string]func([]byte, uint32) []byte{
		"wl.t.4095": AppendBucketKey, "wl.k.4095": AppendBlocksKey,
		"wl.b.4095": AppendBordersKey, "wl.q.4095": AppendPromptsKey,
	} {
		if got := string(appendKey(nil, 4095)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPublishCounts(t *testing.T) {
	m, key := NewMem(), []byte("k")
	a, b := m.View(), m.View()
	if _, _, err := LoadPublished(a, key); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for want := uint32(1); want < 4; want++ {
		s := a
		if want%2 == 0 {
			s = b
		}
		if got, err := Publish(s, key, []byte{0, 0, 0, 0, byte(want)}); err != nil || got != want {
			t.Errorf("sequence %d, %v, want %d", got, err, want)
		}
		got, value, err := LoadPublished(b, key)
		if err != nil || got != want || len(value) != 1 || value[0] != byte(want) {
			t.Errorf("%d: %d %v %v", want, got, value, err)
		}
	}
	a.Set(key, []byte("\xff\xff\xff\xff"), 0)
	if got, _ := Publish(a, key, make([]byte, SequenceSize)); got != 1 {
		t.Errorf("after the wrap: %d, want 1", got)
	}
	a.Set(key, []byte("x"), 0)
	if _, _, err := LoadPublished(a, key); err == nil {
		t.Error("a short value was taken for a published one")
	}
}
