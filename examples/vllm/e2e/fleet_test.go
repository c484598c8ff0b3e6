//go:build vllm

package e2e

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/vllm/engine"
)

// member is an engine and what it holds. It may outlive the test that starts it anew.
type member struct {
	*engine.Server
	t     *testing.T
	holds *resident
	deaf  func() // ends the following of its events
}

// fleet starts n engines with both adapters loaded.
func fleet(t *testing.T, n int) []*member {
	t.Helper()
	members, errs := make([]*member, n), make([]error, n)
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() {
			s, err := engine.Start(t.Context(), engine.Options{Model: baseModel})
			members[i], errs[i] = &member{Server: s, t: t}, err
		})
	}
	all.Wait()
	for i, m := range members {
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		t.Cleanup(m.Kill)
		m.welcome()
	}
	if t.Failed() {
		t.FailNow()
	}
	return members
}

// welcome follows the events of an engine that has just started, makes sure that they come, and loads the adapters.
func (m *member) welcome() {
	m.t.Helper()
	m.holds, m.deaf = follow(m.t, m.Server)
	m.speak()
	for _, name := range engine.Adapters {
		if err := m.LoadAdapter(m.t.Context(), name); err != nil {
			m.t.Fatal(err)
		}
	}
}

// speak has the engine do something that it publishes events of, and waits for them.
func (m *member) speak() {
	m.t.Helper()
	seen := m.holds.batches()
	prompt := text(rand.New(rand.NewPCG(rand.Uint64(), 0)), 40)
	if a, err := post(m.t.Context(), "http://"+m.Address+"/v1/completions", completion(prompt, 1)); err != nil || a.status != http.StatusOK {
		m.t.Fatalf("%s: %v, %+v", m.Address, err, a)
	}
	for end := time.Now().Add(10 * time.Second); m.holds.batches() == seen; time.Sleep(pause) {
		if time.Now().After(end) {
			m.t.Fatalf("%s publishes no events", m.Address)
		}
	}
}

// again starts an ended engine anew, with an empty cache.
func (m *member) again() {
	m.t.Helper()
	m.holds.check(m.t)
	m.deaf()
	if err := m.Restart(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.welcome()
}

// empty resets the cache of an engine. The engine tells of that only with its next request, so it gets one.
func (m *member) empty() {
	m.t.Helper()
	if err := m.ResetCache(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.speak()
}

func addresses(members []*member) []string {
	var list []string
	for _, m := range members {
		list = append(list, m.Address)
	}
	return list
}
