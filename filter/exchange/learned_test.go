package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/state"
)

// age lets so much time pass that events of all that was sent have come.
func (h *engines) age() {
	for range 8 {
		h.now += 250
		h.worker.Tick(h.now, false)
	}
}

// TestLearned plays a conversation: its first prompt is known to nobody, the
// others are found by where the one before ended.
func TestLearned(t *testing.T) {
	h := newEngines(t, 4, "")
	system := strings.Repeat("You answer in few words. ", 60)
	said := []string{system, strings.Repeat("What is a lane? ", 40)}
	var tokens []uint32
	home := -1
	for turn := range 6 {
		n := 700 + 250*turn
		before := len(tokens)
		tokens = append(tokens, tokensOf(turn+1, n-before)...)
		s := h.chat(turns("", said...))
		tag := s.properties[sessionProperty]
		if turn == 0 {
			s.wants("kv_miss_min_load", -1, 0, 0)
			home = s.named
		} else {
			known := (n - 250) / block * block
			if got := int(s.choice.Matched); s.choice.Branch.String() != "kv_hit" || s.named != home || got < known || got > known+block {
				t.Errorf("turn %d: %v to r%d, %d tokens, want kv_hit to r%d, %d", turn, s.choice.Branch, s.named, got, home, known)
			}
			if p := float64(s.choice.Prompt); p < 0.7*float64(n) || p > 1.3*float64(n) {
				t.Errorf("turn %d: thought to have %v tokens, has %d", turn, p, n)
			}
		}
		s.answered(n, before/block*block)
		h.tagged(tag, base(), tokens, map[int]kvindex.Run{home: {GPU: uint32(n / block)}})
		h.age()
		said = append(said, strings.Repeat("A lane is a lane. ", 30), strings.Repeat(fmt.Sprint("And what about ", turn, "? "), 20))
	}
	again := h.chat(turns("", said[:2]...)).wants("kv_hit", home, 688, 700)
	if !again.known.exact {
		t.Error("the number of tokens of a prompt seen before is not exact")
	}
	again.answered(700, 688)
	h.wantCounters(map[string]uint64{decided("2", "kv_hit"): 6, decided("2", "kv_miss_min_load"): 1, decided("1", "cache_hit"): 0})
}

// TestLearnedByAll: what one worker has learned the others know.
func TestLearnedByAll(t *testing.T) {
	h := newEngines(t, 3, "")
	body := turns("", strings.Repeat("system ", 200), strings.Repeat("words ", 200))
	s := h.chat(body)
	tag, home := s.properties[sessionProperty], (s.named+1)%3
	s.answered(800, 0)
	h.tagged(tag, base(), tokensOf(1, 800), map[int]kvindex.Run{home: {GPU: 50}})
	other := h.newWorker(h.worker.config, 99)
	other.Announce(h.now)
	got := h.sendTo(other, "/v1/chat/completions", body)
	if got.choice.Branch.String() != "kv_hit" || got.named != home || got.choice.Matched != 784 {
		t.Errorf("%v to r%d, %d tokens", got.choice.Branch, got.named, got.choice.Matched)
	}
	if got.properties[sessionProperty] != tag {
		t.Errorf("tags %q and %q", got.properties[sessionProperty], tag)
	}
}

// TestTurnOfAnotherProxy: a conversation that began at another proxy is found by
// what control tells of its last turn.
func TestTurnOfAnotherProxy(t *testing.T) {
	said := []string{strings.Repeat("system ", 200), strings.Repeat("words ", 200)}
	there := newEngines(t, 3, "")
	s := there.chat(turns("", said...))
	tag := s.properties[sessionProperty]
	s.answered(800, 0)
	here := newEngines(t, 3, "")
	here.tagged(tag, base(), tokensOf(1, 800), map[int]kvindex.Run{2: {GPU: 50}})
	got := here.chat(turns("", append(said, "Indeed.", "And now?")...))
	if got.choice.Branch.String() != "kv_hit" || got.named != 2 || got.choice.Matched < 500 || got.choice.Matched > 800 {
		t.Errorf("%v to r%d, %d tokens", got.choice.Branch, got.named, got.choice.Matched)
	}
}

// TestSystemPromptIsShared: another conversation under the same system prompt
// finds its blocks by the first border.
func TestSystemPromptIsShared(t *testing.T) {
	h := newEngines(t, 3, "")
	system := strings.Repeat("You are a lawyer. ", 200)
	s := h.chat(turns("", system, "hello"))
	tag := s.properties[sessionProperty]
	s.answered(1000, 0)
	h.tagged(tag, base(), tokensOf(1, 1000), map[int]kvindex.Run{1: {GPU: 62}})
	h.age()
	long := []string{system}
	for i := range 12 {
		long = append(long, fmt.Sprint("another question ", i))
	}
	other := h.chat(turns("", long...))
	if other.choice.Branch.String() != "kv_hit" || other.named != 1 || other.choice.Matched < 950 || other.choice.Matched > 1000 {
		t.Errorf("%v to r%d, %d tokens", other.choice.Branch, other.named, other.choice.Matched)
	}
}

// TestTagsTellPromptsApart: whatever makes other blocks makes another tag.
func TestTagsTellPromptsApart(t *testing.T) {
	h := newEngines(t, 2, "")
	seen := map[string]string{}
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"b"}]}`,
		`{"model":"sql","messages":[{"role":"user","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"cache_salt":"x"}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"x":1}}`,
		`{"model":"m","messages":[{"role":"system","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"a"}]}`,
	} {
		s := h.chat([]byte(body))
		tag := s.properties[sessionProperty]
		if len(tag) != 20 || !strings.HasPrefix(tag, "wl1-") {
			t.Errorf("tag %q", tag)
		}
		if other, ok := seen[tag]; ok {
			t.Errorf("one tag for %s and %s", body, other)
		}
		seen[tag] = body
		s.settle()
	}
}

// TestUnknownButSent: if no border leads to blocks but replicas were sent the
// beginning of the prompt, tier 1 decides.
func TestUnknownButSent(t *testing.T) {
	h := newEngines(t, 3, "")
	text := strings.Repeat("The same beginning. ", 200)
	first := h.chat(turns("", text))
	home := first.named
	first.settle() // no answer: nothing is learned
	h.worker.pools[0].router.Tick(h.now)
	s := h.chat(turns("", text+"Another end."))
	if s.named == home && s.choice.Branch.String() == "cache_hit" {
		t.Error("a prompt that was withdrawn is still matched")
	}
	s.answered(1000, 0)
	again := h.chat(turns("", text+"A third end.")).wants("cache_hit", s.named, 3840/bytesPerToken, 0)
	if again.known.fallback.String() != "fallback_tokenize_failed" || again.tier() != 1 {
		t.Errorf("tier %d, %v", again.tier(), again.known.fallback)
	}
	h.wantCounters(map[string]uint64{decided("2", "fallback_tokenize_failed"): 1, decided("1", "cache_hit"): 1})
}

// TestEvictedPrompt: the index knows the prompt and that nobody has it any more,
// though the text index thinks so.
func TestEvictedPrompt(t *testing.T) {
	h := newEngines(t, 2, "")
	body := turns("", strings.Repeat("system ", 200), strings.Repeat("words ", 200))
	s := h.chat(body)
	tag := s.properties[sessionProperty]
	s.answered(800, 0)
	h.tagged(tag, base(), tokensOf(1, 800), map[int]kvindex.Run{s.named: {GPU: 50}})
	h.age()
	h.chat(body).wants("kv_hit", s.named, 784, 800).answered(800, 784)
	h.tagged(tag, base(), tokensOf(1, 800), nil)
	h.age()
	h.chat(body).wants("kv_miss_min_load", -1, 0, 800)
}

// TestShortPrompt: of a prompt shorter than a block nothing can be cached.
func TestShortPrompt(t *testing.T) {
	h := newEngines(t, 2, "")
	for range 3 {
		s := h.chat(turns("", "hi"))
		if s.tier() != 2 || s.choice.Matched != 0 {
			t.Errorf("tier %d, %v, %d tokens", s.tier(), s.choice.Branch, s.choice.Matched)
		}
		s.answered(9, 0)
	}
}

// learns sends a prompt and returns the call that learns it, if there is one.
func (h *engines) learns(body []byte, headers ...string) *Call {
	h.t.Helper()
	s := h.chat(body, headers...)
	if s.call != nil {
		h.t.Fatalf("the request waits for %+v", s.call)
	}
	n := len(body) / bytesPerToken
	s.answered(n, 0)
	return s.call
}

func TestLearnedByCall(t *testing.T) {
	h := newEngines(t, 3, "")
	for i := range h.pool.Replicas {
		h.pool.Replicas[i].Tags = false
	}
	h.announce()
	body := turns("", strings.Repeat("system ", 200), strings.Repeat("words ", 200))
	call := h.learns(body)
	if call == nil || call.Job == 0 || call.Path != "/tokenize" || string(call.Body) != string(body) || call.TimeoutMS != learnMS {
		t.Fatalf("call %+v", call)
	}
	tokens := tokensOf(1, 800)
	h.worker.Tokenized(call.Job, 200, tokensAnswer(tokens))
	h.holds(base(), tokens, map[int]kvindex.Run{2: {GPU: 45}})
	h.age()
	s := h.chat(body).wants("kv_hit", 2, 720, 800)
	s.answered(800, 720)
	if s.call != nil {
		t.Error("a prompt that is known is learned again")
	}
	h.wantCounters(map[string]uint64{"warmlane_tokenize_total;pool=default;outcome=ok": 1})
}

// TestWhatIsLearnedByCall: only what no tag will tell.
func TestWhatIsLearnedByCall(t *testing.T) {
	long := strings.Repeat("words ", 200)
	f := func(name string, tags bool, more string, body []byte, want bool, headers ...string) {
		t.Helper()
		h := newEngines(t, 2, more)
		for i := range h.pool.Replicas {
			h.pool.Replicas[i].Tags = tags
		}
		h.announce()
		if call := h.learns(body, headers...); (call != nil) != want {
			t.Errorf("%s: call %+v", name, call)
		}
		if n := h.worker.tier2.kept.held; n > 0 && len(h.worker.tier2.kept.spent) == 0 {
			t.Errorf("%s: %d bytes are still kept", name, n)
		}
	}
	f("tags come", true, "", turns("", long), false)
	f("the client has its own session", true, "", turns("", long), true, "x-session-id", "mine")
	f("no tags", false, "", turns("", long), true)
	f("no budget", false, `,"tokenize_budget":{"calls_per_s":0}`, turns("", long), false)
	f("too large", false, `,"tokenize_budget":{"max_bytes":1024}`, turns("", long), false)
	f("image", false, "", []byte(`{"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"u"}}]}]}`), false)
	f("reasoning", false, "", turns(`,"reasoning_effort":"low"`, long), false)
}

// TestTagThatDidNotCome: the second time a prompt leads nowhere it is asked for.
func TestTagThatDidNotCome(t *testing.T) {
	h := newEngines(t, 2, "")
	body := turns("", strings.Repeat("words ", 200))
	if call := h.learns(body); call != nil {
		t.Fatalf("call %+v", call)
	}
	h.age()
	h.learns(body) // now it is seen that the tag led nowhere
	if call := h.learns(body); call == nil {
		t.Error("is not asked for")
	}
}

func TestLearningIsBounded(t *testing.T) {
	h := newEngines(t, 2, `,"tokenize_budget":{"calls_per_s":5,"in_flight":3}`)
	for i := range h.pool.Replicas {
		h.pool.Replicas[i].Tags = false
	}
	h.announce()
	var open []*Call
	total := 0
	for i := range 200 {
		if call := h.learns(turns("", fmt.Sprint(i, strings.Repeat("words ", 100)))); call != nil {
			open, total = append(open, call), total+1
		}
		if len(open) > 3 || h.worker.tier2.kept.held > 64<<10 {
			t.Fatalf("%d calls are open, %d bytes kept", len(open), h.worker.tier2.kept.held)
		}
		if i%3 == 0 && len(open) > 0 {
			h.worker.Tokenized(open[0].Job, 200, tokensAnswer(tokensOf(i, 100)))
			open = open[1:]
		}
	}
	if total < 50 || total > 120 { // in 20 s
		t.Errorf("%d calls", total)
	}
	for _, call := range open {
		h.worker.Tokenized(call.Job, 0, nil)
	}
	if n := h.worker.pools[0].precise.calls; n != 0 {
		t.Errorf("%d calls are still counted", n)
	}
}

// TestNoClusterNoCalls: without a cluster there are no calls.
func TestNoClusterNoCalls(t *testing.T) {
	h := newEngines(t, 2, "")
	c := *h.worker.config
	c.Pools = append([]PoolConfig(nil), c.Pools...)
	c.Pools[0].Cluster = ""
	h.worker = h.newWorker(&c, 5)
	h.pool.Replicas[0].Tags, h.pool.Replicas[1].Tags = false, false
	h.pool.Replicas[0].KV = state.KVComplete
	h.announce()
	if call := h.learns(turns("", strings.Repeat("words ", 200))); call != nil {
		t.Errorf("call %+v", call)
	}
}
