package exchange

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const (
	eventStream = "text/event-stream; charset=utf-8"
	plainJSON   = "application/json"
	roleEvent   = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	textEvent   = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	errorEvent  = `data: {"error":{"message":"overloaded","type":"server_error","code":503}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

// counted is what an exchange left in the metrics of its model.
type counted struct {
	prompt, completion, cached, missing int
	ttft, pace                          []int
}

func (h *native) counted(outcome Outcome) (c counted, once bool) {
	s := h.worker.pools[0].series.of([]byte("m"))
	c.prompt, c.completion, c.cached = int(s.tokens[promptTokens].Pending), int(s.tokens[completionTokens].Pending), int(s.tokens[cachedTokens].Pending)
	c.missing = int(s.unsaid.Pending)
	for _, sample := range h.worker.tally.samples {
		switch sample.Metric {
		case s.ttft:
			c.ttft = append(c.ttft, int(sample.Value))
		case s.pace:
			c.pace = append(c.pace, int(sample.Value))
		}
	}
	n := uint64(0)
	for _, o := range s.outcomes {
		n += o.Pending
	}
	return c, n == 1 && s.outcomes[outcome].Pending == 1
}

// play sends a request for a stream and answers it, 100 ms for each piece.
func (h *native) play(path string, answer map[string]string, pieces []string, end bool, word string) map[string]any {
	e := h.worker.NewExchange()
	e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": path}), false)
	e.RequestBody([]byte(`{"model":"m","stream":true,"prompt":"hi","input":"hi","messages":[{"role":"user","content":"hi"}]}`), true)
	answer[":status"] = "200"
	e.ResponseHeaders(headersOf(answer), by(e.address()), false)
	for _, p := range pieces {
		h.now += 100
		e.ResponseBody([]byte(p))
	}
	if end {
		e.ResponseEnd()
	}
	var line map[string]any
	for _, p := range e.Settle(func() []byte { return []byte(word) }).Properties {
		if err := json.Unmarshal(p.Value, &line); err != nil {
			return map[string]any{"error": err.Error(), "line": string(p.Value)}
		}
	}
	return line
}

func (c counted) is(d counted) bool {
	return c.prompt == d.prompt && c.completion == d.completion && c.cached == d.cached && c.missing == d.missing &&
		slices.Equal(c.ttft, d.ttft) && slices.Equal(c.pace, d.pace)
}

func TestAnswersAreCounted(t *testing.T) {
	const chat, reset = "/v1/chat/completions", "upstream_reset_after_response_started{connection_termination}"
	f := func(name, path, kind string, pieces []string, end bool, word string, outcome Outcome, want counted) {
		t.Helper()
		h := newNative(t, 2, "")
		h.play(path, map[string]string{"content-type": kind}, pieces, end, word)
		got, once := h.counted(outcome)
		if !once {
			t.Errorf("%s: not counted once as %v", name, outcome)
		}
		if !got.is(want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if n := h.inFlight(); n != 0 {
			t.Errorf("%s: %d still on the books", name, n)
		}
	}
	usage := `data: {"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":7,"total_tokens":127,"prompt_tokens_details":{"cached_tokens":96}}}` + "\n\n"
	f("usage cut in a key, the mark cut too", chat, eventStream,
		[]string{textEvent + usage[:30], usage[30:] + doneEvent[:9], doneEvent[9:]}, true, "", OK, counted{prompt: 120, completion: 7, cached: 96, ttft: []int{100}, pace: []int{200_000 / 6}})
	f("null usage", chat, eventStream, []string{strings.ReplaceAll(textEvent, `]}`, `],"usage":null}`), doneEvent}, true, "", OK, counted{missing: 1, ttft: []int{100}})
	totals := []string{
		`data: {"choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":{"prompt_tokens":16,"completion_tokens":0,"total_tokens":16}}` + "\n\n",
		`data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":16,"completion_tokens":1,"total_tokens":17}}` + "\n\n",
		`data: {"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":2,"total_tokens":18}}` + "\n\n", doneEvent,
	}
	f("running totals", chat, eventStream, totals, true, "", OK, counted{prompt: 16, completion: 2, ttft: []int{200}, pace: []int{200_000}})
	f("client leaves amid running totals", chat, eventStream, totals[:2], false, "downstream_remote_disconnect", ClientCancelled, counted{prompt: 16, completion: 1, ttft: []int{200}})
	f("client leaves at the end mark", chat, eventStream, totals, false, "downstream_remote_disconnect", OK, counted{prompt: 16, completion: 2, ttft: []int{200}, pace: []int{200_000}})
	f("responses", "/v1/responses", eventStream, []string{
		`data: {"type":"response.created","response":{"id":"r1","usage":null}}` + "\n\n",
		"event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","delta":"ok"}` + "\n\n",
		`data: {"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":30,"output_tokens":4,"total_tokens":34,"input_tokens_details":{"cached_tokens":16}}}}` + "\n\n",
	}, true, "", OK, counted{prompt: 30, completion: 4, cached: 16, ttft: []int{200}, pace: []int{100_000 / 3}})
	f("upstream dies", chat, eventStream, []string{textEvent}, false, reset, UpstreamReset, counted{ttft: []int{100}})
	f("error first", chat, eventStream, []string{errorEvent, textEvent, doneEvent}, true, "", StreamError, counted{})
	f("error after a token", chat, eventStream, []string{textEvent, errorEvent, doneEvent}, true, "", StreamError, counted{ttft: []int{100}})
	f("error, then reset", chat, eventStream, []string{textEvent, errorEvent}, false, reset, StreamError, counted{ttft: []int{100}})
	f("abort", chat, eventStream, []string{textEvent, `data: {"choices":[{"delta":{},"finish_reason":"abort"}]}` + "\n\n", usage, doneEvent}, true, "", StreamError,
		counted{prompt: 120, completion: 7, cached: 96, ttft: []int{100}})
	f("abort of a document", chat, plainJSON, []string{`{"choices":[{"finish_reason":"abort"}]}`}, true, "", StreamError, counted{})
	f("comment, role, then content", chat, eventStream, []string{": ping\n\n", roleEvent, textEvent, textEvent, textEvent, usage, doneEvent}, true, "", OK,
		counted{prompt: 120, completion: 7, cached: 96, ttft: []int{300}, pace: []int{400_000 / 6}})
	f("finish, usage and mark apart", chat, eventStream, []string{textEvent, `data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n", usage, doneEvent}, true, "", OK,
		counted{prompt: 120, completion: 7, cached: 96, ttft: []int{100}, pace: []int{100_000 / 6}})
	f("no content", chat, eventStream, []string{": ping\n\n", roleEvent, usage, doneEvent}, true, "", OK, counted{prompt: 120, completion: 7, cached: 96})
	f("tool call", chat, eventStream, []string{`data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0}]}}]}` + "\n\n"}, true, "", OK, counted{missing: 1, ttft: []int{100}})
	f("pace without usage", chat, eventStream, []string{textEvent, textEvent, textEvent}, true, "", OK, counted{missing: 1, ttft: []int{100}, pace: []int{100_000}})
	f("document", chat, plainJSON, []string{`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,`, `"completion_tokens":1}}`}, true, "", OK,
		counted{prompt: 5, completion: 1})
	f("document that is cut", chat, plainJSON, []string{`{"usage":{"prompt_tokens":5,"completion_tokens":1},`}, false, reset, UpstreamReset, counted{})
	f("embeddings", "/v1/embeddings", plainJSON, []string{`{"data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`}, true, "", OK, counted{prompt: 5})
	f("no tokens to tell", "/tokenize", plainJSON, []string{`{"results":[]}`}, true, "", OK, counted{})
	f("no JSON", chat, "text/plain", []string{"data: ", usage}, true, "", OK, counted{missing: 1})
}

// TestCompressedAnswers has bytes that would be read as an answer if they were.
func TestCompressedAnswers(t *testing.T) {
	for _, kind := range []string{eventStream, plainJSON} {
		h := newNative(t, 1, "")
		h.play("/v1/chat/completions", map[string]string{"content-type": kind, "content-encoding": "gzip"}, []string{textEvent + errorEvent, `{"error":1}`}, true, "")
		if got, once := h.counted(OK); !once || !got.is(counted{missing: 1}) {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	h := newNative(t, 1, "")
	h.play("/v1/chat/completions", map[string]string{"content-type": plainJSON, "content-encoding": "identity"}, []string{`{"usage":{"prompt_tokens":5}}`}, true, "")
	if got, _ := h.counted(OK); got.prompt != 5 {
		t.Errorf("identity: %+v", got)
	}
}

// TestBrokenAnswersAreHeldAgainstTheReplica wants the index to forget what a
// replica failed to do, and the router to avoid it.
func TestBrokenAnswersAreHeldAgainstTheReplica(t *testing.T) {
	h := newNative(t, 2, "")
	prompt := chatBody(strings.Repeat("warm ", 500), true)
	first := h.open(t, h.worker, prompt)
	named := first.named
	first.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": eventStream}), by(first.address()), false)
	first.ResponseBody([]byte(textEvent + errorEvent + doneEvent))
	first.ResponseEnd()
	first.Settle(noWord)
	second := h.open(t, h.worker, prompt)
	if second.named == named || second.choice.Matched != 0 {
		t.Errorf("the replica that failed is asked again, for %d matched tokens", second.choice.Matched)
	}
	second.Settle(noWord)
}

func TestLogOfAnswer(t *testing.T) {
	h := newNative(t, 1, `{"piggyback":{"log":true}}`)
	line := h.play("/v1/chat/completions", map[string]string{"content-type": eventStream}, []string{
		textEvent, `data: {"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":120,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":96}}}` + "\n\n", doneEvent,
	}, true, "")
	for key, want := range map[string]any{
		"prompt_tokens": 120.0, "completion_tokens": 7.0, "cached": 96.0, "finish": "length", "outcome": "ok", "ttft_ms": 100.0, "duration_ms": 300.0,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v, in %v", key, line[key], want, line)
		}
	}
	h = newNative(t, 1, `{"piggyback":{"log":true}}`)
	line = h.play("/v1/chat/completions", map[string]string{"content-type": eventStream}, []string{errorEvent}, true, "")
	if line["outcome"] != "stream_error" || line["prompt_tokens"] != nil || line["finish"] != nil || line["ttft_ms"] != nil {
		t.Errorf("%v", line)
	}
}

// TestPredictionsAreJudged does so in a pool without KV events too.
func TestPredictionsAreJudged(t *testing.T) {
	h := newNative(t, 1, "")
	prompt := chatBody(strings.Repeat("warm ", 1000), false)
	for _, cached := range []string{"0", "1100"} {
		e := h.open(t, h.worker, prompt)
		e.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": plainJSON}), by(e.address()), false)
		e.ResponseBody([]byte(`{"usage":{"prompt_tokens":1250,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":` + cached + `}}}`))
		e.ResponseEnd()
		e.Settle(noWord)
		h.now += 60_000
		if cached == "1100" {
			if got, want := e.series.missed.Pending, uint64(e.choice.Matched)-1100; e.choice.Matched <= 1100 || got != want {
				t.Errorf("%d tokens matched, off by %d, want %d", e.choice.Matched, got, want)
			}
		}
	}
}

// BenchmarkChunk is what the chunk of one token costs an exchange.
func BenchmarkChunk(b *testing.B) {
	h := newNative(b, 2, "")
	e := h.worker.NewExchange()
	e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/chat/completions"}), false)
	e.RequestBody(chatBody("hi", true), true)
	e.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": eventStream}), by(e.address()), false)
	chunk := []byte(`data: {"id":"chatcmpl-92b7c35342d8dac3","object":"chat.completion.chunk","created":1796050750,"model":"tiny","choices":[{"index":0,"delta":{"content":" selected"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n")
	b.ReportAllocs()
	for b.Loop() {
		e.ResponseBody(chunk)
	}
}
