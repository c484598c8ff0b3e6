package lab

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

func measure(t testing.TB, policy string, w *Workload, o Options) Result {
	t.Helper()
	r, err := Run(policy, w, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-16s %d workers: hit %.1f %%, mean TTFT %.3f s, p99 %.2f s", policy, r.Workers, 100*r.HitRatio, r.TTFTMean, r.TTFTP99)
	return r
}

// The whole point: proxies of one or four workers do about as well as a policy
// that sees every queue and cache, and far better than blind ones.
func TestWarmlaneIsCloseToTheOracle(t *testing.T) {
	w := Conversations(1)
	best := measure(t, "oracle:1", w, Options{})
	blind := min(measure(t, "round-robin", w, Options{}).TTFTMean, measure(t, "least-request", w, Options{}).TTFTMean)
	for _, policy := range []string{"text", "precise-ask", "precise-learned"} {
		one, four := measure(t, policy, w, Options{Workers: 1}), measure(t, policy, w, Options{Workers: 4})
		if four.TTFTMean > 1.25*best.TTFTMean || four.TTFTMean > blind/3 {
			t.Errorf("%s: mean TTFT %.3f s; the oracle has %.3f s, blind policies %.3f s", policy, four.TTFTMean, best.TTFTMean, blind)
		}
		if four.TTFTMean > 1.1*one.TTFTMean {
			t.Errorf("%s: mean TTFT %.3f s with four workers, %.3f s with one", policy, four.TTFTMean, one.TTFTMean)
		}
		if four.HitRatio < 0.95*best.HitRatio {
			t.Errorf("%s: hit ratio %.3f, the oracle's %.3f", policy, four.HitRatio, best.HitRatio)
		}
	}
}

func TestTokenizeCalls(t *testing.T) {
	w := Conversations(1)
	if r := measure(t, "precise-ask", w, Options{}); r.TokenizeCalls != 1 {
		t.Errorf("asked %v times a request, want once", r.TokenizeCalls)
	}
	if r := measure(t, "precise-learned", w, Options{}); r.TokenizeCalls > 0.05 {
		t.Errorf("asked %v times a request where the engines' events tell", r.TokenizeCalls)
	}
	if r := measure(t, "text", w, Options{}); r.TokenizeCalls != 0 {
		t.Errorf("asked %v times a request without events", r.TokenizeCalls)
	}
}

func TestRunsAreRepeatable(t *testing.T) {
	w := Conversations(2)
	w.Requests = w.Requests[:120]
	for _, policy := range []string{"round-robin", "least-request", "work", "oracle:1", "text", "precise-ask", "precise-learned"} {
		o := Options{Workers: 2, Proxies: 2, Seed: 3}
		if a, b := measure(t, policy, w, o), measure(t, policy, w, o); a != b {
			t.Errorf("%s: %+v, then %+v", policy, a, b)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	w := &Workload{Requests: []Request{{Messages: []Message{{"user", " a"}}, Tokens: 10, Output: 1}}}
	f := func(policy, want string, o Options) {
		t.Helper()
		if _, err := Run(policy, w, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for _, name := range []string{"", "oracle", "oracle:x", "oracle:-1", "text:1", "fast"} {
		f(name, "policy \""+name+"\"", Options{})
	}
	f("text", "routing.candidates", Options{Routing: `{"candidates":9}`})
	w.Requests[0].Output = 1 << 20
	f("round-robin", "request 0 has 1048586 tokens", Options{})
	w.Requests = nil
	f("round-robin", "no requests", Options{})
}

// An idle engine prefills at its rate and decodes at its speed, and all but
// the last block of a prompt is there the next time.
func TestEngineTimes(t *testing.T) {
	w := converse("", []arrival{
		{input: 4096, output: 61, ids: []uint64{1, 2, 3, 4, 5, 6, 7, 8}},
		{at: 10 * time.Second, input: 4096, output: 61, ids: []uint64{1, 2, 3, 4, 5, 6, 7, 8}},
	}, 1)
	r := measure(t, "round-robin", w, Options{})
	if r.TTFTMean < 0.255 || r.TTFTMean > 0.257 {
		t.Errorf("TTFT %v s, want 4096 / 16000", r.TTFTMean)
	}
	if d := r.EndToEnd - r.TTFTMean; d < 0.99 || d > 1.01 {
		t.Errorf("60 tokens took %v s, want 1", d)
	}
	if one := measure(t, "round-robin", w, Options{Fleet: 1}); one.HitRatio != float64(4096-16)/(2*4096) {
		t.Errorf("hit ratio %v, want all but a block of the second prompt", one.HitRatio)
	}
}

// What the forecast says of a request that nobody follows is what happens.
func TestForecast(t *testing.T) {
	all := Conversations(3)
	for i := range all.Requests {
		all.Requests[i].At /= 4 // so that there are queues
	}
	for last := 10; last <= 100; last += 10 {
		p := newPlay(&Workload{Requests: all.Requests[:last]}, Options{Fleet: 1, Engine: roomy()})
		seer := &seer{play: p, last: last - 1}
		p.policy = seer
		if err := p.run(); err != nil {
			t.Fatal(err)
		}
		if seer.foreseen != seer.seen {
			t.Errorf("request %d: foreseen %v, came after %v", last, seer.foreseen, seer.seen)
		}
	}
}

// seer sends everything to one engine and looks ahead for the last request.
type seer struct {
	deaf
	play           *play
	sight          forecast
	last           int
	foreseen, seen time.Duration
}

func (s *seer) pick(f *flight) int {
	if f.id == s.last {
		s.play.fleet.prepare(f)
		s.foreseen, _ = s.sight.of(s.play.fleet.replicas[0], f.At, f)
	}
	return 0
}

func (s *seer) first(f *flight) {
	if f.id == s.last {
		s.seen = s.play.clock.now - f.At
	}
}

// roomy is an engine with memory for all that these tests send at once.
func roomy() engine.Config {
	c := Engine()
	c.Blocks = 200_000
	return c
}

// BenchmarkPolicy plays ten seconds of made-up conversations.
func BenchmarkPolicy(b *testing.B) {
	w := Conversations(1)
	end, _ := slices.BinarySearchFunc(w.Requests, 10*time.Second, func(r Request, t time.Duration) int { return int(r.At - t) })
	w.Requests = w.Requests[:end]
	for _, policy := range []string{"round-robin", "text", "precise-ask", "precise-learned", "oracle:1"} {
		b.Run(policy, func(b *testing.B) {
			b.ReportAllocs()
			var r Result
			for b.Loop() {
				r = measure(b, policy, w, Options{})
			}
			b.ReportMetric(1000*r.TTFTMean, "ttft-ms")
			b.ReportMetric(100*r.HitRatio, "hit-%")
		})
	}
}
