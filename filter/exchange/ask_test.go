package exchange

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
)

const asking1 = `,"tokenize":"ask","tokenize_timeout_ms":80`

// told answers the call an exchange waits for.
func (s *request) told(status int, answer []byte) *request {
	s.t.Helper()
	if s.call == nil || s.call.Job != 0 || s.phase != asking {
		s.t.Fatalf("does not wait: call %+v, phase %d", s.call, s.phase)
	}
	s.take(s.Tokenized(status, answer))
	return s
}

func TestAsk(t *testing.T) {
	h := newEngines(t, 3, asking1)
	tokens := tokensOf(1, 1000)
	h.holds(base(), tokens, map[int]kvindex.Run{2: {GPU: 40}})
	body := turns(`,"stream":false`, strings.Repeat("words ", 600), "and?")
	s := h.chat(body)
	if s.call == nil || s.call.Cluster != "replicas" || s.call.Path != "/tokenize" || s.call.TimeoutMS != 80 || !bytes.Equal(s.call.Body, body) {
		t.Fatalf("call %+v", s.call)
	}
	if s.Exchange.named >= 0 || len(s.properties) != 0 || h.inFlight() != 0 {
		t.Errorf("decided before the answer: %v, %v", s.named, s.properties)
	}
	if !strings.HasPrefix(string(s.call.Replica), "10.0.0.") {
		t.Errorf("asks %q", s.call.Replica)
	}
	h.now += 30
	s.told(200, tokensAnswer(tokens)).wants("kv_hit", 2, 640, 1000)
	if s.properties[lengthProperty] != strconv.Itoa(len(body)) || s.properties[sessionProperty] != "" {
		t.Errorf("properties %v", s.properties)
	}
	line := s.answered(1000, 640)
	if line["tier"] != 2.0 || line["tokenize"] != "asked" || line["tokenize_ms"] != 30.0 || line["predicted"] != 640.0 {
		t.Errorf("log line %v", line)
	}
	h.wantCounters(map[string]uint64{
		"warmlane_tokenize_total;pool=default;outcome=ok": 1, decided("2", "kv_hit"): 1,
		"warmlane_predicted_error_tokens_total;pool=default;model=m": 0,
	})
	if n := len(h.worker.tally.samples); n == 0 {
		t.Error("no sample of how long it took")
	}
}

// TestAskFails: whatever comes instead of tokens, tier 1 decides.
func TestAskFails(t *testing.T) {
	f := func(name string, status int, answer string, after int64, outcome string) {
		t.Helper()
		h := newEngines(t, 2, asking1)
		s := h.chat(turns("", "you are", "hi"))
		h.now += after
		s.told(status, []byte(answer))
		if s.named < 0 || s.tier() != 1 || s.properties[destinationProperty] == "" {
			t.Errorf("%s: tier %d, r%d, %v", name, s.tier(), s.named, s.properties)
		}
		line := s.finish("{}")
		if line["fallback"] != "fallback_tokenize_failed" || line["tokenize"] != "none" {
			t.Errorf("%s: log line %v", name, line)
		}
		h.wantCounters(map[string]uint64{
			"warmlane_tokenize_total;pool=default;outcome=" + outcome: 1,
			decided("2", "fallback_tokenize_failed"):                  1,
			decided("1", "cache_miss_min_load"):                       1,
		})
		if n := h.inFlight(); n != 0 {
			t.Errorf("%s: %d on the books", name, n)
		}
	}
	f("late", 504, "upstream request timeout", 80, "timeout")
	f("nothing, late", 0, "", 80, "timeout")
	f("no call", 0, "", 0, "error")
	f("broken", 503, "upstream connect error", 5, "error")
	f("unknown model", 404, `{"error":{"message":"The model does not exist.","code":404}}`, 5, "error")
	f("crash", 500, "Internal Server Error", 5, "error")
	f("page", 200, "<html>welcome</html>", 5, "error")
	f("empty", 200, "", 5, "error")
	f("wrong count", 200, `{"count":9,"tokens":[1,2]}`, 5, "error")
	f("negative", 200, `{"count":2,"tokens":[1,-2]}`, 5, "error")
	f("huge", 200, `{"tokens":[`+strings.Repeat("1,", MaxAnswer/2)+`1]}`, 5, "error")
}

// TestAskRests: replicas that do not answer are not asked for every request.
func TestAskRests(t *testing.T) {
	h := newEngines(t, 2, asking1)
	asked := 0
	for range 100 {
		h.now += 100
		s := h.chat(turns("", "you are", "hi"))
		if s.call != nil {
			asked++
			h.now += 80
			s.told(504, nil)
		}
		s.settle()
	}
	if asked < 4 || asked > 8 {
		t.Errorf("asked %d times in 10 s of failures, want 4 to 8", asked)
	}
	if got := h.counter(decided("2", "fallback_tokenize_failed")); got != 100 {
		t.Errorf("%d fallbacks, want 100", got)
	}
	h.now += longestRestMS
	h.chat(turns("", "you are", "hi")).told(200, tokensAnswer(tokensOf(1, 5))).settle()
	if s := h.chat(turns("", "you are", "hi")); s.call == nil {
		t.Error("does not ask after it has worked again")
	}
}

// TestGoneWhileHeld: the end may come before the answer, which then does nothing.
func TestGoneWhileHeld(t *testing.T) {
	h := newEngines(t, 2, asking1)
	s := h.chat(turns("", "you are", "hi"))
	if line := s.settle(); line["outcome"] != "client_cancelled" || line["branch"] != nil {
		t.Errorf("log line %v", line)
	}
	s.take(s.Tokenized(200, tokensAnswer(tokensOf(1, 100))))
	if s.named >= 0 || h.inFlight() != 0 || s.call != nil {
		t.Errorf("placed after the end: r%d, %d on the books", s.named, h.inFlight())
	}
	s = h.chat(turns("", "you are", "hi"))
	s.ResponseHeaders(headersOf(map[string]string{":status": "504"}), by(nil), true)
	s.take(s.Tokenized(200, tokensAnswer(tokensOf(1, 100))))
	if line := s.settle(); line["outcome"] != "local_reply" || s.named >= 0 || h.inFlight() != 0 {
		t.Errorf("answered by Envoy while held: %v", line)
	}
	if h.worker.tier2.kept.held != 0 {
		t.Errorf("%d bytes are still kept", h.worker.tier2.kept.held)
	}
}

// TestAnswersOutOfTurn: no answer that nobody waits for does anything.
func TestAnswersOutOfTurn(t *testing.T) {
	h := newEngines(t, 2, asking1)
	e := h.worker.NewExchange()
	e.Tokenized(200, tokensAnswer(tokensOf(1, 10)))
	s := h.chat(turns("", "you are", "hi")).told(200, tokensAnswer(tokensOf(1, 10)))
	named := s.named
	s.take(s.Tokenized(500, nil))
	if s.named != named || h.inFlight() != 1 {
		t.Errorf("placed twice: r%d, %d on the books", s.named, h.inFlight())
	}
	for _, id := range []uint32{0, 1, maxJobs, maxJobs + 1, 1 << 31} {
		h.worker.Tokenized(id, 200, tokensAnswer(tokensOf(1, 10)))
	}
	s.settle()
	NewWorker(&Config{}, Env{Store: h.store.View(), Now: h.worker.env.Now, Dice: h.worker.env.Dice}).Tokenized(1, 200, nil)
}

// TestIndexIsGoneWhileHeld: no replica has one any more when the answer comes.
func TestIndexIsGoneWhileHeld(t *testing.T) {
	h := newEngines(t, 2, asking1)
	s := h.chat(turns("", "you are", "hi"))
	for i := range h.pool.Replicas {
		h.pool.Replicas[i].KV = 0
	}
	h.announce()
	s.told(200, tokensAnswer(tokensOf(1, 100))).wants("cache_miss_min_load", -1, 0, 0)
	if line := s.finish("{}"); line["fallback"] != "fallback_no_index" || line["tier"] != 1.0 {
		t.Errorf("log line %v", line)
	}
}

// TestTwoHeldAtOnce: what is scratch memory of the worker is nobody's while two
// exchanges wait.
func TestTwoHeldAtOnce(t *testing.T) {
	h := newEngines(t, 2, asking1)
	a, b := tokensOf(1, 800), tokensOf(2, 800)
	h.holds(base(), a, map[int]kvindex.Run{0: {GPU: 20}})
	h.holds(base(), b, map[int]kvindex.Run{1: {GPU: 30}})
	first, second := h.chat(turns("", "one", "hi")), h.chat(turns("", "two", "hi"))
	second.told(200, tokensAnswer(b)).wants("kv_hit", 1, 480, 800)
	first.told(200, tokensAnswer(a)).wants("kv_hit", 0, 320, 800)
	first.settle()
	second.settle()
}

// TestAskUsesTheRequestsNamespace: adapter and salt of the request, tokens of the
// answer.
func TestAskUsesTheRequestsNamespace(t *testing.T) {
	h := newEngines(t, 2, asking1)
	tokens := tokensOf(1, 800)
	h.holds(kvindex.Root("default", []byte("sql"), 0), tokens, map[int]kvindex.Run{1: {GPU: 20}})
	body := []byte(`{"model":"sql","messages":[{"role":"user","content":"hi"}]}`)
	h.chat(body).told(200, tokensAnswer(tokens)).wants("kv_hit", 1, 320, 800).settle()
	h.chat(turns("", "hi")).told(200, tokensAnswer(tokens)).wants("kv_miss_min_load", -1, 0, 800).settle()
}

// TestOddOrderOfHeldEvents plays events that do not fit around a question: none
// may panic, the books must be empty in the end and nothing kept.
func TestOddOrderOfHeldEvents(t *testing.T) {
	for _, more := range []string{asking1, "", `,"tokenize":"off"`} {
		h := newEngines(t, 2, more)
		events := []func(e *Exchange){
			func(e *Exchange) {
				e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/completions", "x-session-id": "s"}), false)
			},
			func(e *Exchange) { e.RequestBody([]byte(`{"model":"m","prompt":"some words of a prompt"}`), true) },
			func(e *Exchange) { e.Tokenized(200, tokensAnswer(tokensOf(1, 40))) },
			func(e *Exchange) { e.ResponseHeaders(ok(), by([]byte("10.0.0.1:8000")), false) },
			func(e *Exchange) { e.ResponseBody([]byte(`{` + usageOf(40, 16) + `}`)) },
			func(e *Exchange) { e.Settle(noWord) },
		}
		e := h.worker.NewExchange()
		for code := range 6 * 6 * 6 * 6 * 6 {
			for n := code; n > 0; n /= 6 {
				events[n%6](e)
			}
			e.Settle(noWord)
			e.Reset()
		}
		for id := range uint32(maxJobs) {
			h.worker.Tokenized(id+1, 0, nil)
		}
		h.worker.tier2.kept.settle()
		if n := h.inFlight(); n != 0 || h.worker.tier2.kept.held != 0 || h.worker.pools[0].precise.calls != 0 {
			t.Errorf("%s: %d on the books, %d bytes kept, %d calls", more, n, h.worker.tier2.kept.held, h.worker.pools[0].precise.calls)
		}
	}
}
