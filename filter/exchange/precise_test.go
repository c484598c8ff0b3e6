package exchange

import (
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/state"
)

func decided(tier, branch string) string {
	return "warmlane_decisions_total;pool=default;model=m;tier=" + tier + ";branch=" + branch
}

func TestTokenIDs(t *testing.T) {
	h := newEngines(t, 3, "")
	tokens := tokensOf(1, 1000)
	h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 50}, 2: {GPU: 10}})
	s := h.completion(idsBody("m", tokens, "")).wants("kv_hit", 1, 50*block, 1000)
	if s.properties[sessionProperty] != "" || s.call != nil {
		t.Errorf("properties %v, call %+v", s.properties, s.call)
	}
	line := s.answered(1000, 50*block)
	if line["tier"] != 2.0 || line["branch"] != "kv_hit" || line["tokenize"] != "ids" || line["predicted"] != 800.0 || line["cached"] != 800.0 {
		t.Errorf("log line %v", line)
	}
	if want := `tier=2, branch=kv_hit, replica="10.0.0.2:8000", matched=800, prompt=1000, candidates=3, queue_ms=0`; s.decision != want {
		t.Errorf("decision %q, want %q", s.decision, want)
	}
	h.wantCounters(map[string]uint64{
		decided("2", "kv_hit"):                                       1,
		"warmlane_matched_tokens_total;pool=default;model=m":         800,
		"warmlane_predicted_error_tokens_total;pool=default;model=m": 0,
		"warmlane_usage_missing_total;pool=default;model=m":          0,
	})
	h.completion(idsBody("m", tokensOf(2, 1000), "")).wants("kv_miss_min_load", -1, 0, 1000)
}

// TestLastToken: an engine always computes the last token, so a prompt of whole
// blocks is never cached whole.
func TestLastToken(t *testing.T) {
	h := newEngines(t, 2, "")
	tokens := tokensOf(1, 64)
	h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 4}})
	h.completion(idsBody("m", tokens, "")).wants("kv_hit", 1, 48, 64).answered(64, 48)
	h.completion(idsBody("m", tokens[:1], "")).wants("kv_miss_min_load", -1, 0, 1)
}

// TestNamespaces: equal tokens with another adapter or salt are other blocks.
func TestNamespaces(t *testing.T) {
	tokens := tokensOf(1, 320)
	roots := map[string]uint64{
		"base": base(), "adapter": kvindex.Root("default", []byte("sql"), 0), "salt": kvindex.Root("default", nil, openai.SaltHash("tenant-7")),
	}
	bodies := map[string][]byte{
		"base": idsBody("m", tokens, ""), "adapter": idsBody("sql", tokens, ""), "salt": idsBody("m", tokens, `,"cache_salt":"tenant-7"`),
	}
	for held, root := range roots {
		h := newEngines(t, 2, "")
		h.holds(root, tokens, map[int]kvindex.Run{1: {GPU: 10}})
		for asked, body := range bodies {
			s := h.completion(body)
			if hit := s.choice.Branch.String() == "kv_hit"; hit != (held == asked) {
				t.Errorf("%s where %s is held: %v", asked, held, s.choice.Branch)
			}
			s.settle()
		}
	}
}

func TestLowerTiersCountLess(t *testing.T) {
	h := newEngines(t, 2, `,"tier_weight":0.25`)
	tokens := tokensOf(1, 1600)
	h.holds(base(), tokens, map[int]kvindex.Run{0: {GPU: 30}, 1: {GPU: 20, Any: 80}})
	h.completion(idsBody("m", tokens, "")).wants("kv_hit", 1, 35*block, 1600)
}

// TestLoadOverridesAMatch puts so much on the warm replica that the other is
// better.
func TestLoadOverridesAMatch(t *testing.T) {
	h := newEngines(t, 2, "")
	tokens := tokensOf(1, 320)
	h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 19}})
	var open []*request
	for h.worker.pools[0].router.Owed(1, h.now) < 10000 {
		open = append(open, h.completion(idsBody("m", append(tokens[:len(tokens):len(tokens)], tokensOf(7+len(open), 4000)...), `,"stream":true`)))
	}
	for h.worker.pools[0].router.Owed(0, h.now) > 0 { // those that went to the other have left
		for _, s := range open {
			if s.named == 0 {
				s.Settle(noWord)
			}
		}
		h.worker.Tick(h.now, false)
	}
	h.completion(idsBody("m", tokens, "")).wants("load_balance_override", 0, 0, 320)
	if got := h.counter(decided("2", "load_balance_override")); got == 0 {
		t.Error("not counted as a decision of tier 2")
	}
}

func TestFallbacks(t *testing.T) {
	ask, off := `,"tokenize":"ask","tokenize_budget":{"max_bytes":1024}`, `,"tokenize":"off"`
	text := `{"model":"m","prompt":"some words"}`
	f := func(name, more, path, body, fallback, branch string, change func(h *engines)) {
		t.Helper()
		h := newEngines(t, 2, more)
		if change != nil {
			change(h)
		}
		s := h.sendTo(h.worker, path, []byte(body), "content-type", "application/json")
		if s.choice.Branch.String() != branch || s.tier() != 1 || s.known.fallback.String() != fallback || s.call != nil {
			t.Errorf("%s: tier %d, %v, %v, call %v; want %s, %s", name, s.tier(), s.choice.Branch, s.known.fallback, s.call, branch, fallback)
		}
		line := s.settle()
		if line["tier"] != 1.0 || line["fallback"] != fallback {
			t.Errorf("%s: log line %v", name, line)
		}
		h.wantCounters(map[string]uint64{decided("1", branch): 1, decided("2", fallback): 1})
	}
	completions, chat := "/v1/completions", "/v1/chat/completions"
	f("incomplete index", ask, completions, text, "fallback_no_index", "cache_miss_min_load", func(h *engines) { h.must(h.writer.Begin()); h.now += 50 })
	f("no replica has one", ask, completions, text, "fallback_no_index", "cache_miss_min_load", func(h *engines) {
		for i := range h.pool.Replicas {
			h.pool.Replicas[i].KV = state.KVNone
		}
		h.announce()
	})
	f("tokenize off", off, completions, text, "fallback_unsupported", "cache_miss_min_load", nil)
	f("malformed", ask, completions, `{"model":"m","prompt":"x`, "fallback_unsupported", "no_tree", nil)
	f("no model but bad JSON", ask, chat, `{"model":"m","messages":[{"content":"x"}]`, "fallback_unsupported", "no_tree", nil)
	f("no dialect", ask, "/v1/audio/speech", `{"model":"m","input":"x"}`, "fallback_unsupported", "no_tree", nil)
	f("dialect that /tokenize does not read", ask, "/v1/responses", `{"model":"m","input":"x"}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("ids that /tokenize does not read", ask, "/v1/embeddings", `{"model":"m","input":[1,2,3]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("body too large to ask", ask, completions, `{"model":"m","prompt":"`+strings.Repeat("x", 2000)+`"}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("list of texts", ask, completions, `{"model":"m","prompt":["a","b"]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("several texts, of which one tag cannot tell", "", completions, `{"model":"m","prompt":["a","b"]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("several lists of ids", "", completions, `{"model":"m","prompt":[[1,2],[3,4]]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("image", ask, chat, `{"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"u"}}]}]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("template member that /tokenize lacks", ask, chat, `{"model":"m","reasoning_effort":"low","messages":[{"content":"x"}]}`, "fallback_unsupported", "cache_miss_min_load", nil)
	f("ids that are cut", ask, completions, `{"model":"m","truncate_prompt_tokens":5,"prompt":[1,2,3]}`, "fallback_unsupported", "cache_miss_min_load", nil)
}

// TestInFlight: what has just been sent counts although its events have not come,
// but what came long ago and is not in the index does not.
func TestInFlight(t *testing.T) {
	h := newEngines(t, 3, "")
	tokens := tokensOf(1, 1600)
	first := h.completion(idsBody("m", tokens, `,"stream":true`)).wants("kv_miss_min_load", -1, 0, 1600)
	second := h.completion(idsBody("m", tokens, "")).wants("kv_hit", first.named, 1584, 1600)
	second.answered(1600, 1584)
	first.answered(1600, 0)
	h.completion(idsBody("m", tokens, "")).wants("kv_hit", first.named, 1584, 1600).answered(1600, 1584)
	for range 8 {
		h.now += 250
		h.worker.Tick(h.now, false)
	}
	h.completion(idsBody("m", tokens, "")).wants("kv_miss_min_load", -1, 0, 1600).answered(1600, 0)
}

// TestPartialIndex: where an index has gaps, what was sent counts however long
// ago; so it does where a replica tells nothing.
func TestPartialIndex(t *testing.T) {
	for _, kv := range []state.KVState{state.KVPartial, state.KVNone} {
		h := newEngines(t, 2, "")
		h.pool.Replicas[1].KV = kv
		h.announce()
		tokens := tokensOf(1, 1600)
		h.pool.Replicas[0].Health = state.Unhealthy
		h.announce()
		h.completion(idsBody("m", tokens, "")).wants("kv_miss_min_load", 1, 0, 1600).answered(1600, 0)
		h.pool.Replicas[0].Health = state.Healthy
		h.announce()
		for range 20 {
			h.now += 250
			h.worker.Tick(h.now, false)
		}
		s := h.completion(idsBody("m", tokens, ""))
		if s.choice.Branch.String() != "kv_hit" || s.named != 1 || s.choice.Matched < 1500 {
			t.Errorf("state %d: %v to r%d, %d tokens", kv, s.choice.Branch, s.named, s.choice.Matched)
		}
	}
}

// TestTextGoesOnWhereTheIndexEnds: a replica that holds all blocks known of a
// prompt is credited with what it was sent beyond them.
func TestTextGoesOnWhereTheIndexEnds(t *testing.T) {
	h := newEngines(t, 2, "")
	system, question := strings.Repeat("You are a router. ", 100), strings.Repeat("Where to? ", 300)
	h.chat(turns("", system, "hello")).answered(400, 0)
	known := h.chat(turns("", system, "hello"))
	tag := known.properties[sessionProperty]
	known.answered(400, 0)
	h.tagged(tag, base(), tokensOf(1, 400), map[int]kvindex.Run{known.named: {GPU: 25}})
	h.chat(turns("", system, question)).answered(1100, 384)
	for range 8 {
		h.now += 250
		h.worker.Tick(h.now, false)
	}
	s := h.chat(turns("", system, question+" now?"))
	if s.tier() != 2 || s.named != known.named || s.choice.Matched < 900 {
		t.Errorf("tier %d, %v to r%d, %d of %d tokens", s.tier(), s.choice.Branch, s.named, s.choice.Matched, s.choice.Prompt)
	}
}

// TestLies: a replica that keeps having less than its index claims is believed
// less, is reported, and is believed again when it says the truth.
func TestLies(t *testing.T) {
	h := newEngines(t, 2, "")
	doubts := 0
	for i := range 40 {
		tokens := tokensOf(i, 800)
		h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 50}})
		s := h.completion(idsBody("m", tokens, ""))
		if i == 0 {
			s.wants("kv_hit", 1, 784, 800)
		}
		cached := 0
		if s.named == 0 {
			cached = -1
		}
		s.answered(800, cached)
		h.worker.Doubts(func(slot uint16) {
			doubts++
			if slot != 1 {
				t.Errorf("doubts r%d", slot)
			}
		})
	}
	kv := h.worker.pools[0].precise
	if w := kv.slots[1].trust.weight(h.worker.pools[0].router.Key(1), h.now); w > 0.5 || doubts == 0 {
		t.Errorf("weight %v, %d doubts", w, doubts)
	}
	if got := h.counter("warmlane_replica_error_tokens_total;pool=default;slot=r1"); got == 0 || got != h.counter("warmlane_predicted_error_tokens_total;pool=default;model=m") {
		t.Errorf("%d tokens of error at r1", got)
	}
	h.now += 10 * trustHalfMS
	tokens := tokensOf(99, 800)
	h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 50}})
	h.completion(idsBody("m", tokens, "")).wants("kv_hit", 1, 784, 800)
}

// TestAnotherReplicaAnswers: a prediction is about the replica that was named.
func TestAnotherReplicaAnswers(t *testing.T) {
	h := newEngines(t, 2, "")
	tokens := tokensOf(1, 800)
	h.holds(base(), tokens, map[int]kvindex.Run{1: {GPU: 50}})
	s := h.completion(idsBody("m", tokens, "")).wants("kv_hit", 1, 784, 800)
	s.ResponseHeaders(ok(), by([]byte(h.replicas[0])), false)
	s.ResponseBody([]byte(`{` + usageOf(800, 0) + `}`))
	s.ResponseEnd()
	if line := s.settle(); line["cached"] != 0.0 || line["answered"] != h.replicas[0] {
		t.Errorf("log line %v", line)
	}
	h.wantCounters(map[string]uint64{"warmlane_predicted_error_tokens_total;pool=default;model=m": 0})
	if h.worker.pools[0].precise.slots[1].trust.err != 0 {
		t.Error("the replica named is trusted less for another's answer")
	}
}

func TestUsageThatIsMissing(t *testing.T) {
	f := func(name, body, kind, answer string, missing uint64) {
		t.Helper()
		h := newEngines(t, 1, "")
		s := h.completion([]byte(body))
		s.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": kind}), by(s.address()), false)
		for i := range len(answer) {
			s.ResponseBody([]byte{answer[i]})
		}
		s.ResponseEnd()
		s.settle()
		h.wantCounters(map[string]uint64{"warmlane_usage_missing_total;pool=default;model=m": missing})
	}
	event := `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	last := `data: {"choices":[],` + usageOf(10, 0) + "}\n\ndata: [DONE]\n\n"
	f("said", `{"model":"m","prompt":"x"}`, "application/json", `{`+usageOf(10, -1)+`}`, 0)
	f("not said", `{"model":"m","prompt":"x"}`, "application/json", `{}`, 1)
	f("stream that was not asked", `{"model":"m","prompt":"x","stream":true}`, "text/event-stream", event, 1)
	f("stream that was asked", `{"model":"m","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`, "text/event-stream", event+last, 0)
	f("stream that was asked and does not say", `{"model":"m","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`, "text/event-stream", event, 1)
}
