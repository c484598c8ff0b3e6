//go:build vllm

package e2e

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warmlane/warmlane/examples/vllm/engine"
)

// sample is one request, with what was known before it and what came of it.
type sample struct {
	kind string
	decision
	length int            // tokens of the prompt
	held   map[string]int // tokens resident at each engine just before, by address
	cached int            // tokens that the engine says it had
}

// stage is where the load is played: engines with the quickstart in front of them.
type stage struct {
	t       *testing.T
	engines []*member
	house   *house

	mu      sync.Mutex
	samples []sample
}

// send sends a request through the quickstart, notes what happened, and returns the answer's text.
func (s *stage) send(kind string, b body) string {
	s.t.Helper()
	path := "/v1/completions"
	if b["messages"] != nil {
		path = "/v1/chat/completions"
	}
	it := sample{kind: kind, held: s.held(b)}
	a, err := post(s.t.Context(), s.house.url+path, b)
	if err != nil || a.status != http.StatusOK {
		s.t.Errorf("%s: %v: %+v", kind, err, a)
		return ""
	}
	said, err := a.read()
	if err != nil {
		s.t.Errorf("%s: %v", kind, err)
	}
	if it.decision, err = a.decision(); err != nil {
		s.t.Errorf("%s: %v", kind, err)
	}
	it.length, it.cached = said.prompt, said.cached
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, it)
	return said.text
}

// held is what each engine that is up holds of a request's prompt; nil for a request of several prompts.
func (s *stage) held(b body) map[string]int {
	s.t.Helper()
	if _, several := b["prompt"].([]string); several {
		return nil
	}
	held := map[string]int{}
	for _, m := range s.engines {
		if m.Ended() {
			continue
		}
		p, err := tokenize(s.t.Context(), m.Address, b)
		if err != nil {
			s.t.Errorf("%s: %v", m.Address, err)
			continue
		}
		held[m.Address] = m.holds.holds(p)
	}
	return held
}

// most is the largest number of tokens any engine held.
func (s *sample) most() int {
	return slices.Max(append(slices.Collect(maps.Values(s.held)), 0))
}

// home tells whether the request went to an engine that held as much as any, but for a block.
func (s *sample) home() bool { return s.held[s.replica] >= s.most()-engine.BlockSize }

// right tells whether the predicted number of cached tokens was the one reported, but for a block.
func (s *sample) right() bool {
	return max(s.matched-s.cached, s.cached-s.matched) <= engine.BlockSize
}

// agreed tells whether the engine had cached what its events say, but for a block.
func (s *sample) agreed() bool {
	held := s.held[s.replica]
	return s.held == nil || max(held-s.cached, s.cached-held) <= engine.BlockSize
}

// since are the samples from the nth on.
func (s *stage) since(n int) []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples[n:])
}

// count is how many samples there are.
func (s *stage) count() int { return len(s.since(0)) }

var words = strings.Fields("river stone table window garden morning silver paper engine number language object class method value string")

// text makes n words, about 1.7 tokens each.
func text(dice *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = words[dice.IntN(len(words))]
	}
	return strings.Join(list, " ")
}
