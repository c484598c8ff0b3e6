//go:build vllm

package e2e

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// least is the share of requests of which something must hold.
const least = 0.95

// TestPrecise plays the same load with both ways to learn the tokens of a prompt. It prints its figures.
func TestPrecise(t *testing.T) {
	engines := fleet(t, 2)
	for i, mode := range []string{"learned", "ask"} {
		t.Run(mode, func(t *testing.T) {
			for _, m := range engines {
				if m.Ended() {
					m.again()
				} else {
					m.empty()
				}
			}
			pool := map[string]any{"name": "default", "cluster": "replicas", "kv_events": true, "tokenize": mode, "tokenize_timeout_ms": 5000}
			s := &stage{t: t, engines: engines, house: open(t, addresses(engines), pool)}
			seed := uint64(i)
			s.day(seed)
			s.refused()
			if mode == "ask" {
				s.elsewhere(seed)
			}
			calm := s.count()
			s.reset(seed)
			s.restart(seed)
			s.burst(seed)
			s.loss(seed)
			t.Logf("tokenize: %s\n%s\n%s", mode, table(s.since(0)[:calm]), table(s.since(calm)))
			s.branches()
			for _, m := range engines {
				m.holds.check(t)
			}
		})
	}
}

// day plays the mixed load and holds it against what is asked of Warmlane.
func (s *stage) day(seed uint64) {
	n := s.count()
	removed, copied := s.stress()
	s.play(seed, mixed(seed)...)
	s.assert("mixed load", s.since(n))
	r, c := s.stress()
	if r == removed || c == copied {
		s.t.Errorf("the load was too light: %d blocks were removed, and %d copied", r-removed, c-copied)
	}
	s.t.Logf("%d blocks were removed to make room, %d stored again as copies", r-removed, c-copied)
}

// stress is that of all engines together.
func (s *stage) stress() (removed, copied int) {
	for _, m := range s.engines {
		r, c := m.holds.stress()
		removed, copied = removed+r, copied+c
	}
	return removed, copied
}

// assert wants nearly all requests to go where their prefix is resident, and nearly all predictions to be right.
func (s *stage) assert(what string, samples []sample) {
	s.t.Helper()
	var all row
	for i := range samples {
		it := &samples[i]
		all.add(it)
		if it.most() > 0 && !it.home() || it.tier == 2 && !it.right() || !it.agreed() {
			s.t.Logf("%s: %+v", what, *it)
		}
	}
	if float64(all.agreed) < least*float64(all.requests) {
		s.t.Errorf("%s: this test's own count of what is resident is right for %d of %d requests only", what, all.agreed, all.requests)
	}
	if all.tier2 < all.requests/2 {
		s.t.Errorf("%s: %d of %d requests were decided by tier 2", what, all.tier2, all.requests)
	}
	if float64(all.home) < least*float64(all.resident) {
		s.t.Errorf("%s: %d of %d requests went where their prefix is", what, all.home, all.resident)
	}
	if float64(all.right) < least*float64(all.tier2) {
		s.t.Errorf("%s: %d of %d predictions are within a block of what was cached", what, all.right, all.tier2)
	}
}

// homesick begins conversations until one engine has got some, and returns that engine and what follows in them. No other
// engine holds them.
func (s *stage) homesick(seed uint64) (*member, []body) {
	s.t.Helper()
	const enough = 4
	dice := rand.New(rand.NewPCG(seed, 2))
	next := map[string][]body{}
	for {
		n := s.count()
		messages := []map[string]string{{"role": "user", "content": text(dice, 200)}}
		answer := s.send("first of two", chat(body{"model": baseModel}, messages, 8))
		if s.t.Failed() {
			s.t.FailNow()
		}
		messages = append(messages, map[string]string{"role": "assistant", "content": answer}, map[string]string{"role": "user", "content": text(dice, 10)})
		home := s.since(n)[0].replica
		next[home] = append(next[home], chat(body{"model": baseModel}, messages, 8))
		time.Sleep(pause)
		for _, m := range s.engines {
			if len(next[m.Address]) == enough {
				return m, next[m.Address]
			}
		}
	}
}

// followUp sends follow-ups and wants no request to go to an engine for what it has lost.
func (s *stage) followUp(what string, m *member, bodies []body) {
	s.t.Helper()
	n := s.count()
	for _, b := range bodies {
		s.send("after "+what, b)
		time.Sleep(pause)
	}
	for _, it := range s.since(n) {
		if it.replica == m.Address && !it.right() {
			s.t.Errorf("after %s a request went there for %d tokens, of which it had %d: %+v", what, it.matched, it.cached, it)
		}
	}
}

// reset empties the cache of an engine.
func (s *stage) reset(seed uint64) {
	m, bodies := s.homesick(seed)
	m.empty()
	time.Sleep(settle)
	s.followUp("reset", m, bodies)
}

// restart ends an engine in peace and starts it again. While it is away requests must not fail.
func (s *stage) restart(seed uint64) {
	m, bodies := s.homesick(seed + 100)
	m.Stop()
	s.send("while one is away", bodies[0])
	m.again()
	s.house.eventually(30*time.Second, "control sees the engine again", func() bool { return s.house.replica(m.Address).State == "healthy" })
	time.Sleep(settle)
	s.followUp("restart", m, bodies[1:])
}

// burst has many clients ask at once about what one engine holds, until the other is the better choice.
func (s *stage) burst(seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 4))
	messages := []map[string]string{{"role": "system", "content": text(dice, 100)}, {"role": "user", "content": text(dice, 10)}}
	ask := func(question string, maxTokens int) body {
		asked := append(messages[:2:2], map[string]string{"role": "user", "content": question})
		return chat(body{"model": baseModel, "ignore_eos": true}, asked, maxTokens)
	}
	s.send("first of many", ask(text(dice, 10), 1))
	time.Sleep(settle)
	var all sync.WaitGroup
	for range 24 {
		b := ask(text(dice, 10), 100)
		all.Go(func() { s.send("burst", b) })
	}
	all.Wait()
}

// loss kills an engine with all its processes. Requests go on.
func (s *stage) loss(seed uint64) {
	m, bodies := s.homesick(seed + 200)
	m.Kill()
	for _, b := range bodies {
		s.send("after a loss", b)
	}
	s.house.eventually(30*time.Second, "control sees the loss", func() bool { return s.house.replica(m.Address).State == "unhealthy" })
	n := s.count()
	for _, b := range bodies {
		s.send("after a loss", b)
	}
	for _, it := range s.since(n) {
		if it.replica == m.Address {
			s.t.Errorf("a request was sent to a lost engine: %+v", it)
		}
	}
}

// elsewhere has the engines serve clients that do not come through Warmlane, and then asks for the same through it. Where the
// tokens of a prompt are asked for, what was never seen passing is found all the same.
func (s *stage) elsewhere(seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 5))
	n := s.count()
	for i := range 6 {
		b := chat(body{"model": baseModel}, []map[string]string{{"role": "user", "content": text(dice, 200)}}, 8)
		if a, err := post(s.t.Context(), "http://"+s.engines[i%2].Address+"/v1/chat/completions", b); err != nil || a.status != http.StatusOK {
			s.t.Fatalf("%v, %+v", err, a)
		}
		time.Sleep(settle)
		s.send("seen elsewhere", b)
	}
	s.assert("seen elsewhere", s.since(n))
}

// refused sends what no engine takes, nor has tokens for.
func (s *stage) refused() {
	b := chat(body{"model": baseModel}, []map[string]any{{"role": "user", "content": 5}}, 8)
	if a, err := post(s.t.Context(), s.house.url+"/v1/chat/completions", b); err != nil || a.status != http.StatusBadRequest {
		s.t.Errorf("a message whose content is a number: %v, %+v", err, a)
	}
}

// branches wants to have seen every way to decide that this load can bring about. fallback_no_index is not among them: these
// engines have told of their blocks before the first request.
func (s *stage) branches() {
	got := s.house.branches()
	s.t.Logf("decisions: %v", got)
	for _, branch := range []string{
		"2 kv_hit", "2 kv_miss_min_load", "2 load_balance_override", "2 fallback_unsupported", "2 fallback_tokenize_failed",
		"1 cache_hit", "1 cache_miss_min_load",
	} {
		if got[branch] == 0 {
			s.t.Errorf("no decision %q", branch)
		}
	}
}
