package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/state"
	"github.com/warmlane/warmlane/hostsim"
)

const blockSize = 16

// newPrecise is a proxy whose replicas publish KV events; the one in the slot
// holds all blocks of the tokens.
func newPrecise(t *testing.T, more string, tokens []uint32, slot int) *proxy {
	t.Helper()
	p := newProxyOf(t, 3, 1, `{"pools":[{"name":"default","cluster":"replicas","kv_events":true`+more+`}],"piggyback":{"explain":true}}`, func(p *proxy) hostsim.Upstream {
		return p.precise(tokens, slot)
	})
	return p
}

func (p *proxy) precise(tokens []uint32, slot int) hostsim.Upstream {
	pool := state.Pool{Name: "default", Models: []string{"m"}}
	for i, a := range p.replicas {
		pool.Replicas = append(pool.Replicas, state.Replica{
			Slot: uint16(i), Incarnation: 1, Address: a, Health: state.Healthy, Models: pool.Models, Load: state.NoLoad(),
			BlockSize: blockSize, KV: state.KVComplete, Tags: true,
		})
	}
	s := &state.Snapshot{Epoch: 7, Generation: 1, Pools: []state.Pool{pool}}
	pages := state.Pages(nil, s, state.MaxPage, state.Patch{Pool: "default", Records: nodes(tokens, slot)})
	return func(r *hostsim.UpstreamRequest) hostsim.Reply {
		if strings.Contains(r.Header.Get(":path"), "gen=1") {
			return hostsim.Reply{Status: 204, Delay: 25 * time.Second}
		}
		return hostsim.Reply{Body: pages[0]}
	}
}

// nodes are the records that say that a replica holds a prompt.
func nodes(tokens []uint32, slot int) (records []state.Record) {
	var c kvindex.Chain
	c.Reset(kvindex.Root("default", nil, 0), blockSize)
	c.Add(tokens)
	keys, parent := c.Keys(), uint64(0)
	for at := 0; at < len(keys); at += kvindex.MaxRun {
		part := keys[at:min(at+kvindex.MaxRun, len(keys))]
		n := kvindex.Node{Parent: parent, Depth: uint32(at), Size: blockSize, Held: []kvindex.Held{{Slot: uint16(slot), Run: uint8(len(part)), Any: uint8(len(part))}}}
		for _, k := range part {
			n.Tags = append(n.Tags, uint16(k))
		}
		records = append(records, state.Record{ID: part[0], Payload: kvindex.AppendNode(nil, &n)})
		parent = part[0]
	}
	return records
}

func someTokens(n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(3*i + 5)
	}
	return tokens
}

func tokensAnswer(tokens []uint32) string {
	ids, _ := json.Marshal(tokens)
	return fmt.Sprintf(`{"count":%d,"max_model_len":4096,"tokens":%s,"token_strs":null}`, len(tokens), ids)
}

const askConfig = `,"tokenize":"ask","tokenize_timeout_ms":100`

// decision sends a chat and returns what was decided and how long it took.
func (p *proxy) decision(body []byte) (decision string, r *hostsim.Result) {
	p.t.Helper()
	_, r = p.ask(0, body, hostsim.Respond(200, `{"usage":{"prompt_tokens":500,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":480}}}`))
	return flat(r.Header)["x-warmlane-decision"], r
}

func TestAsksForTokens(t *testing.T) {
	tokens := someTokens(500)
	p := newPrecise(t, askConfig, tokens, 2)
	body := chat(strings.Repeat("some words ", 3000), false)
	var asked []*hostsim.UpstreamRequest
	p.host.SetUpstream("replicas", func(r *hostsim.UpstreamRequest) hostsim.Reply {
		asked = append(asked, r)
		return hostsim.Reply{Body: []byte(tokensAnswer(tokens)), Delay: 20 * time.Millisecond}
	})
	got, r := p.decision(body)
	if !strings.HasPrefix(got, `tier=2, branch=kv_hit, replica="10.0.0.3:8000", matched=496, prompt=500, candidates=3`) {
		t.Errorf("decision %q", got)
	}
	if len(asked) != 1 || asked[0].Header.Get(":path") != "/tokenize" || string(asked[0].Body) != string(body) ||
		!strings.HasPrefix(asked[0].Header.Get("x-gateway-destination-endpoint"), "10.0.0.") || asked[0].Header.Get("content-type") != "application/json" {
		t.Errorf("asked %+v", asked)
	}
	if string(r.Upstream.Body) != string(body) || r.FilterState["wasm.warmlane.length"] != strconv.Itoa(len(body)) {
		t.Errorf("%d bytes arrived, length %q, want %d", len(r.Upstream.Body), r.FilterState["wasm.warmlane.length"], len(body))
	}
	p.wantMetric("warmlane_tokenize_total;pool=default;outcome=ok", 1)
	p.wantMetric("warmlane_decisions_total;pool=default;model=m;tier=2;branch=kv_hit", 1)
	p.wantMetric("warmlane_predicted_error_tokens_total;pool=default;model=m", 16)
}

func (p *proxy) wantMetric(name string, want uint64) {
	p.t.Helper()
	p.host.Advance(time.Second)
	if got := p.host.Metrics().Counters[name]; got != want {
		p.t.Errorf("%s is %d, want %d", name, got, want)
	}
}

// TestAskedInVain: whatever becomes of the question, the request goes on, no
// later than its deadline.
func TestAskedInVain(t *testing.T) {
	tokens := someTokens(500)
	f := func(name string, up hostsim.Upstream, outcome string) {
		t.Helper()
		p := newPrecise(t, askConfig, tokens, 2)
		if outcome != "no call" {
			p.host.SetUpstream("replicas", up)
		}
		got, r := p.decision(chat("hi", false))
		if r.Status != 200 || !strings.HasPrefix(got, "tier=1, branch=cache_miss_min_load") || r.Duration > 150*time.Millisecond {
			t.Errorf("%s: status %d after %v, %q", name, r.Status, r.Duration, got)
		}
		if outcome == "no call" {
			outcome = "error"
		}
		p.wantMetric("warmlane_tokenize_total;pool=default;outcome="+outcome, 1)
		p.wantMetric("warmlane_decisions_total;pool=default;model=m;tier=2;branch=fallback_tokenize_failed", 1)
		if n := p.inFlight(); n != 0 {
			t.Errorf("%s: %v still on the books", name, n)
		}
	}
	f("silent", func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Delay: time.Hour} }, "timeout")
	f("slow body", func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Body: []byte(tokensAnswer(tokens)), ChunkDelay: time.Minute}
	}, "timeout")
	f("reset", func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Reset: hostsim.ResetBeforeHead} }, "error")
	f("reset in the body", func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Body: []byte(`{"tokens":[1`), Reset: hostsim.ResetInBody}
	}, "error")
	f("html", hostsim.Respond(200, "<html>"), "error")
	f("500", hostsim.Respond(500, "Internal Server Error"), "error")
	f("no healthy host", nil, "error")
	f("no such cluster", nil, "no call")
}

// held opens a stream and sends all of a request that is then held.
func (p *proxy) held(end func(s *hostsim.Stream, body []byte)) *hostsim.Stream {
	p.t.Helper()
	s, err := p.host.Stream(0)
	if err != nil {
		p.t.Fatal(err)
	}
	s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}}, false)
	end(s, chat("hi", false))
	if !s.Paused() || s.Upstream() != nil {
		p.t.Fatal("the request is not held")
	}
	return s
}

func whole(s *hostsim.Stream, body []byte) { s.RequestBody(body, true) }

func TestClientLeavesWhileHeld(t *testing.T) {
	tokens := someTokens(500)
	p := newPrecise(t, askConfig, tokens, 2)
	p.host.SetUpstream("replicas", func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Body: []byte(tokensAnswer(tokens)), Delay: 50 * time.Millisecond}
	})
	for range 5 {
		gone := p.held(whole)
		p.host.Advance(10 * time.Millisecond)
		gone.Abort()
		next := p.held(whole) // it takes the memory of the one that has gone
		p.host.Advance(45 * time.Millisecond)
		if !next.Paused() {
			t.Fatal("the answer to another's question was taken")
		}
		p.host.Advance(45 * time.Millisecond)
		if next.Paused() || !strings.HasPrefix(next.Upstream().Header.Get("x-gateway-destination-endpoint"), "10.0.0.3:8000") {
			t.Fatalf("paused %v, sent to %+v", next.Paused(), next.Upstream())
		}
		next.Abort()
	}
	if n := p.inFlight(); n != 0 {
		t.Errorf("%v still on the books", n)
	}
	if traps := p.host.Traps(); len(traps) > 0 {
		t.Errorf("a VM died: %v", traps[0].Err)
	}
}

// TestHeldAtTheTrailers: the end of a request may be its trailers.
func TestHeldAtTheTrailers(t *testing.T) {
	tokens := someTokens(500)
	p := newPrecise(t, askConfig, tokens, 2)
	p.host.SetUpstream("replicas", hostsim.Respond(200, tokensAnswer(tokens)))
	s := p.held(func(s *hostsim.Stream, body []byte) {
		s.RequestBody(body, false)
		s.RequestTrailers(hostsim.Header{{"a", "b"}})
	})
	p.host.Advance(10 * time.Millisecond)
	if s.Paused() || s.Upstream() == nil || !s.Upstream().Complete || string(s.Upstream().Body) != string(chat("hi", false)) {
		t.Errorf("paused %v, sent %+v", s.Paused(), s.Upstream())
	}
	s.Abort()
}

// TestManyAreHeld: all that are held are let go, each once.
func TestManyAreHeld(t *testing.T) {
	tokens := someTokens(500)
	p := newPrecise(t, askConfig, tokens, 2)
	n := 0
	p.host.SetUpstream("replicas", func(*hostsim.UpstreamRequest) hostsim.Reply {
		n++
		return hostsim.Reply{Body: []byte(tokensAnswer(tokens)), Delay: time.Duration(n*7%80) * time.Millisecond}
	})
	var all []*hostsim.Stream
	for range 100 {
		all = append(all, p.held(whole))
	}
	p.host.Advance(100 * time.Millisecond)
	for i, s := range all {
		if s.Paused() || s.Upstream() == nil {
			t.Fatalf("stream %d is still held", i)
		}
		s.Abort()
	}
	if n := p.inFlight(); n != 0 {
		t.Errorf("%v still on the books", n)
	}
}

// TestTagged: where prompts are learned, each goes with its tag and is not held;
// what the tag does not tell is learned by a call after the request has left.
func TestTagged(t *testing.T) {
	p := newPrecise(t, "", nil, 0)
	calls := 0
	p.host.SetUpstream("replicas", func(r *hostsim.UpstreamRequest) hostsim.Reply {
		calls++
		return hostsim.Reply{Body: []byte(tokensAnswer(someTokens(500)))}
	})
	body := chat(strings.Repeat("some words ", 300), false)
	got, r := p.decision(body)
	if tag := r.FilterState["wasm.warmlane.session"]; len(tag) != 20 || !strings.HasPrefix(tag, "wl1-") || calls != 0 {
		t.Errorf("tag %q, %d calls", tag, calls)
	}
	if !strings.HasPrefix(got, "tier=2, branch=kv_miss_min_load") {
		t.Errorf("decision %q", got)
	}
	own := hostsim.Request{Method: "POST", Path: "/v1/chat/completions", Body: body, Header: hostsim.Header{{"x-session-id", "mine"}, {"x-warmlane-explain", "1"}}}
	answer := func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Address: "10.0.0.1:8000", Body: []byte("{}")}
	}
	if _, err := p.host.Do(own, answer); err != nil {
		t.Fatal(err)
	}
	p.wantMetric("warmlane_tokenize_total;pool=default;outcome=ok", 1)
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// TestMemoryOfHeldRequests holds a VM to its budget while many large requests wait
// for their tokens: what is too much is not asked for.
func TestMemoryOfHeldRequests(t *testing.T) {
	tokens := someTokens(500)
	p := newPrecise(t, askConfig, tokens, 2)
	p.host.SetUpstream("replicas", func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Body: []byte(tokensAnswer(tokens)), Delay: 50 * time.Millisecond}
	})
	for range 3 {
		var all []*hostsim.Stream
		held := 0
		for i := range 200 {
			s, err := p.host.Stream(0)
			if err != nil {
				t.Fatal(err)
			}
			s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}}, false)
			s.RequestBody(chat(strings.Repeat(fmt.Sprintf("%9d ", i), 20_000), false), true)
			if s.Paused() {
				held++
			}
			all = append(all, s)
		}
		if held < 20 || held > 100 {
			t.Errorf("%d of 200 are held", held)
		}
		p.host.Advance(200 * time.Millisecond)
		for _, s := range all {
			if s.Upstream() == nil {
				t.Error("a request has not left")
			}
			s.Abort()
		}
	}
	const budget = 48 << 20
	if n := p.host.Memory(0); n > budget {
		t.Errorf("%d KiB, budget %d KiB", n>>10, budget>>10)
	}
}
