package wire_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// completion is what tests read of an answer in one piece.
type completion struct {
	ID      string
	Choices []struct {
		Index        int
		Text         string
		FinishReason string `json:"finish_reason"`
		Message      struct{ Content string }
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Tokens []uint32
}

func read(t *testing.T, r reply) (c completion) {
	t.Helper()
	if err := json.Unmarshal(r.body, &c); err != nil || r.status != 200 {
		t.Fatalf("%d %v %s", r.status, err, r.body)
	}
	return c
}

const chatPath, textPath = "/v1/chat/completions", "/v1/completions"

func TestPromptForms(t *testing.T) {
	r := tiny(t)
	f := func(body string, choices, prompt, completion int) {
		t.Helper()
		c := read(t, ask(t, "POST", r.URL+textPath, body))
		if len(c.Choices) != choices || c.Usage.Prompt != prompt || c.Usage.Completion != completion {
			t.Errorf("%s: %d choices, usage %+v", body, len(c.Choices), c.Usage)
		}
		for i := range c.Choices {
			if c.Choices[i].Index != i || c.Choices[i].FinishReason != "length" {
				t.Errorf("%s: choice %d: %+v", body, i, c.Choices[i])
			}
		}
	}
	f(`{"prompt":"one two three","max_tokens":4}`, 1, 3, 4)
	f(`{"prompt":[300,301],"max_tokens":4}`, 1, 2, 4)
	f(`{"prompt":[[300,301],[302]],"max_tokens":4}`, 2, 3, 8)
	f(`{"prompt":["one","two three"],"max_tokens":4}`, 2, 3, 8)
	f(`{"prompt":["one","two"],"n":2,"max_tokens":4}`, 4, 2, 16)
	f(`{"prompt":"x"}`, 1, 1, 16)
	if got := ask(t, "POST", r.URL+textPath, `{"prompt":""}`); got.status != 400 {
		t.Errorf("empty prompt: %d", got.status)
	}
	if got := ask(t, "POST", r.URL+textPath, `{"prompt":"x","max_tokens":5000}`); got.status != 400 || !strings.Contains(string(got.body), `"param":"max_tokens"`) {
		t.Errorf("answer beyond the context: %d %s", got.status, got.body)
	}
}

func TestSameAnswerStreamedAndNot(t *testing.T) {
	r := tiny(t)
	const body = `{"messages":[{"role":"user","content":"Say it twice."}],"n":2`
	whole := read(t, ask(t, "POST", r.URL+chatPath, body+`}`))
	if whole.Choices[0].FinishReason != "stop" {
		t.Errorf("answer without limit: %+v", whole.Choices[0])
	}
	texts := make([]string, 2)
	for _, e := range events(ask(t, "POST", r.URL+chatPath, body+`,"stream":true}`).body) {
		var chunk struct {
			Choices []struct {
				Index int
				Delta struct{ Content string }
			}
		}
		if e != "[DONE]" && json.Unmarshal([]byte(e), &chunk) != nil {
			t.Fatalf("event %q", e)
		}
		for _, c := range chunk.Choices {
			texts[c.Index] += c.Delta.Content
		}
	}
	for i := range texts {
		if texts[i] != whole.Choices[i].Message.Content {
			t.Errorf("choice %d: streamed %q, whole %q", i, texts[i], whole.Choices[i].Message.Content)
		}
	}
}

// TestTokenizeIsWhatIsServed: the tokens of /tokenize, and then those of the
// answer, are the tokens of the cached blocks.
func TestTokenizeIsWhatIsServed(t *testing.T) {
	r := tiny(t)
	text, _ := json.Marshal(long)
	body := `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":` + string(text) + `}],"max_tokens":70}`
	tokens := read(t, ask(t, "POST", r.URL+"/tokenize", body)).Tokens
	answer := read(t, ask(t, "POST", r.URL+chatPath, body))
	if answer.Usage.Prompt != len(tokens) {
		t.Errorf("usage says %d prompt tokens, /tokenize %d", answer.Usage.Prompt, len(tokens))
	}
	said, _ := json.Marshal(answer.Choices[0].Message.Content)
	tokens = append(tokens, read(t, ask(t, "POST", r.URL+"/tokenize", `{"prompt":`+string(said)+`}`)).Tokens...)
	var blocks []uint32
	all := r.Blocks().Blocks
	for parent := (*uint64)(nil); ; {
		i := slices.IndexFunc(all, func(b replicatest.Block) bool {
			return parent == nil && b.Parent == nil || parent != nil && b.Parent != nil && *parent == *b.Parent
		})
		if i < 0 {
			break
		}
		blocks, parent = append(blocks, all[i].Tokens...), &all[i].Hash
	}
	if want := (len(tokens) - 1) / 32 * 32; len(blocks) != want || !slices.Equal(blocks, tokens[:want]) {
		t.Errorf("%d tokens in the chain of blocks, want the first %d", len(blocks), want)
	}
	// Tokens of any length are counted, also more than the model takes.
	if c := read(t, ask(t, "POST", r.URL+"/tokenize", `{"prompt":"`+strings.Repeat(" word", 10000)+`"}`)); len(c.Tokens) != 10000 {
		t.Errorf("%d tokens of 10000 words", len(c.Tokens))
	}
}

func TestSaltAndAdapterKeepCachesApart(t *testing.T) {
	r := tiny(t)
	ask(t, "POST", r.URL+"/v1/load_lora_adapter", `{"lora_name":"sql","lora_path":"/sql"}`)
	text, _ := json.Marshal(long)
	f := func(extra string, want int) {
		t.Helper()
		c := read(t, ask(t, "POST", r.URL+textPath, `{"prompt":`+string(text)+`,"max_tokens":1`+extra+`}`))
		if c.Usage.Details.Cached != want {
			t.Errorf("%s: cached %d, want %d", extra, c.Usage.Details.Cached, want)
		}
	}
	f(``, 0)
	f(``, 96)
	f(`,"cache_salt":"t"`, 0)
	f(`,"cache_salt":"t"`, 96)
	f(`,"model":"sql"`, 0)
	f(`,"model":"sql"`, 96)
	f(``, 96)
	if got := ask(t, "POST", r.URL+"/reset_prefix_cache", ""); got.status != 200 {
		t.Errorf("reset: %d", got.status)
	}
	f(``, 0)
}

func TestSwitches(t *testing.T) {
	o := node.Options{Speed: 20}
	o.Wire.NoDetails, o.Wire.EchoIDs, o.Wire.ForceUse, o.Wire.NoLoRA = true, true, true, true
	r := replicatest.Start(t, o)
	got := ask(t, "POST", r.URL+textPath, `{"prompt":"x","max_tokens":2}`, "x-request-id", "abc-1")
	c := read(t, got)
	if c.ID != "cmpl-abc-1" || got.header.Get("X-Request-Id") != "abc-1" || c.Usage.Details != nil {
		t.Errorf("id %q, header %q, details %+v", c.ID, got.header.Get("X-Request-Id"), c.Usage.Details)
	}
	list := events(ask(t, "POST", r.URL+textPath, `{"prompt":"x","max_tokens":2,"stream":true}`).body)
	if usage := list[len(list)-2]; !strings.Contains(usage, `"choices":[],"usage":{"prompt_tokens":1,"total_tokens":3,"completion_tokens":2}`) {
		t.Errorf("last event before the end: %s", usage)
	}
	if got := ask(t, "POST", r.URL+"/v1/load_lora_adapter", `{}`); got.status != 404 || string(got.body) != `{"detail":"Not Found"}` {
		t.Errorf("adapters are off: %d %s", got.status, got.body)
	}
}

func TestJournal(t *testing.T) {
	r := tiny(t)
	body := `{ "prompt" : "x",` + "\n\n" + `"max_tokens":2}`
	ask(t, "POST", r.URL+textPath, body, "x-request-id", "q1", "x-warmlane-work", "prompt=8, uncached=2", "x-gateway-destination-endpoint", "10.0.0.1:80")
	req, _ := http.NewRequest("POST", r.URL+textPath, io.MultiReader(strings.NewReader(body))) // length unknown: chunked
	req.Header.Set("content-type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	ask(t, "POST", r.URL+"/v2/embed", body)
	ask(t, "GET", r.URL+"/health", "")
	list := r.Requests()
	if len(list) != 3 {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	sum := sha256.Sum256([]byte(body))
	for i, e := range list {
		if e.BodySHA256 != hex.EncodeToString(sum[:]) || e.BodyBytes != len(body) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	a, b, c := list[0], list[1], list[2]
	if a.RequestID != "q1" || a.Headers["x-warmlane-work"] != "prompt=8, uncached=2" || a.Headers["x-gateway-destination-endpoint"] != "10.0.0.1:80" ||
		a.ContentLength == nil || *a.ContentLength != int64(len(body)) || a.TransferEncoding != "" || a.Outcome != wire.OutcomeOK ||
		a.PromptTokens != 1 || a.CompletionTokens != 2 || a.TTFT <= 0 || a.Status != 200 {
		t.Errorf("first: %+v", a)
	}
	if b.ContentLength != nil || b.TransferEncoding != "chunked" {
		t.Errorf("chunked: %+v", b)
	}
	if c.Status != 404 || c.Outcome != wire.OutcomeRefused {
		t.Errorf("unknown path: %+v", c)
	}
}

func TestClientLeaves(t *testing.T) {
	r := replicatest.Start(t, node.Options{})
	for _, stream := range []string{"false", "true"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "POST", r.URL+textPath, strings.NewReader(`{"prompt":"x","max_tokens":5000,"stream":`+stream+`}`))
		req.Header.Set("content-type", "application/json")
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
		}()
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		waitFor(t, "running back to 0", func() bool {
			page := string(ask(t, "GET", r.URL+"/metrics", "").body)
			return strings.Contains(page, `num_requests_running{engine="0",model_name="tiny"} 0.0`) &&
				strings.Contains(page, `finished_reason="abort",model_name="tiny"} 0.0`)
		})
	}
	waitFor(t, "two cancelled entries", func() bool {
		list := r.Requests()
		return len(list) == 2 && list[0].Outcome == wire.OutcomeCancelled && list[1].Outcome == wire.OutcomeCancelled
	})
	if got := string(ask(t, "GET", r.URL+"/load", "").body); got != `{"server_load":0}` {
		t.Errorf("load: %s", got)
	}
}

// stream reads a stream to its end, however it ends.
func stream(t *testing.T, r *replicatest.Replica) (text string, err error) {
	t.Helper()
	resp, err := http.Post(r.URL+chatPath, "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"x"}],"max_tokens":8,"stream":true}`))
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestStreamFaults(t *testing.T) {
	r := tiny(t)
	http.DefaultClient.CloseIdleConnections()
	r.Faults(`{"die_after_events":3,"times":1}`)
	text, err := stream(t, r)
	if n := strings.Count(text, "data: "); n != 3 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("died after %d events with %v, want 3 and a reset", n, err)
	}
	if text, err = stream(t, r); err != nil || !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("the fault was for one request; the next: %v %q", err, text)
	}

	r.Faults(`{"error_after_events":2}`)
	want := captured(t, "stream-engine-death.txt").body
	want = want[strings.Index(string(want), `data: {"error"`):]
	if text, err = stream(t, r); err != nil || !strings.HasSuffix(text, strings.TrimRight(string(want), "\n")+"\n\n") || strings.Count(text, "data: ") != 4 {
		t.Errorf("error event: %v %q", err, text)
	}
	dead := captured(t, "err-engine-death-500.txt")
	if got := ask(t, "POST", r.URL+textPath, `{"prompt":"x"}`); got.status != dead.status || string(got.body) != string(dead.body) {
		t.Errorf("in one piece: %d %s", got.status, got.body)
	}

	r.Heal()
	r.Faults(`{"abort_after_events":2,"times":1}`)
	if text, err = stream(t, r); err != nil || strings.Count(text, "data: ") != 3 {
		t.Errorf("abort at the first token: %v %q", err, text)
	}
	r.Faults(`{"abort_after_events":3}`)
	if text, err = stream(t, r); err != nil || !strings.Contains(text, `"finish_reason":"abort"`) || strings.Count(text, "data: ") != 4 || !strings.HasSuffix(text, "[DONE]\n\n") {
		t.Errorf("abort: %v %q", err, text)
	}
	if c := read(t, ask(t, "POST", r.URL+textPath, `{"prompt":"x"}`)); c.Choices[0].FinishReason != "abort" || c.Usage.Completion != 3 {
		t.Errorf("abort in one piece: %+v", c)
	}

	r.Heal()
	r.Faults(`{"reset":true}`)
	if _, err = stream(t, r); err == nil {
		t.Error("reset: the request went well")
	}
	for _, e := range r.Requests() {
		if e.Outcome == "" || e.Outcome == wire.OutcomeOK && e.CompletionTokens != 8 {
			t.Errorf("entry %+v", e)
		}
	}
}

// TestSilence: a stream that stalls and a request that hangs send nothing more, and end with their client.
func TestSilence(t *testing.T) {
	r := tiny(t)
	f := func(fault string, wantEvents int) {
		t.Helper()
		r.Heal()
		r.Faults(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "POST", r.URL+chatPath, strings.NewReader(`{"messages":[{"role":"user","content":"x"}],"stream":true}`))
		req.Header.Set("content-type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		got := 0
		if err == nil {
			for in := bufio.NewScanner(resp.Body); in.Scan(); {
				got += strings.Count(in.Text(), "data: ")
			}
			_ = resp.Body.Close()
		}
		if got != wantEvents || ctx.Err() == nil {
			t.Errorf("%s: %d events, err %v, ended early: %v", fault, got, err, ctx.Err() == nil)
		}
	}
	f(`{"stall_after_events":2}`, 2)
	f(`{"hang":true}`, 0)
}

func TestOtherFaults(t *testing.T) {
	r := tiny(t)
	r.Faults(`{"status":429,"unhealthy":true,"tokenize":"error"}`)
	f := func(method, path, body string, want int) {
		t.Helper()
		if got := ask(t, method, r.URL+path, body); got.status != want {
			t.Errorf("%s: %d, want %d", path, got.status, want)
		}
	}
	f("POST", chatPath, `{}`, 429)
	f("GET", "/health", "", 503)
	f("POST", "/tokenize", `{"prompt":"x"}`, 500)
	f("GET", "/v1/models", "", 200)
	f("POST", "/debug/faults", `{"statsu":503}`, 400)
	f("POST", "/debug/faults", `{"metrics":"odd"}`, 400)
	f("POST", "/debug/faults", `{"status":200}`, 400)
	f("POST", "/debug/faults", `{"slow":`, 400)
	if got := string(ask(t, "GET", r.URL+"/debug/faults", "").body); got != `{"status":429,"unhealthy":true,"tokenize":"error"}` {
		t.Errorf("faults after refusals: %s", got)
	}
	f("DELETE", "/debug/faults", "", 200)
	f("POST", "/tokenize", `{"prompt":"x"}`, 200)
	f("POST", "/health", "", 405)
	f("GET", "/nowhere", "", 404)
}

func TestSlow(t *testing.T) {
	r := replicatest.Start(t, node.Options{Speed: 10})
	ttft := func() float64 {
		ask(t, "POST", r.URL+textPath, `{"prompt":[`+strings.Repeat("300,", 799)+`300],"max_tokens":1,"cache_salt":"`+time.Now().String()+`"}`)
		list := r.Requests()
		return list[len(list)-1].TTFT
	}
	before := ttft()
	r.Faults(`{"slow":5}`)
	if after := ttft(); after < 4.9*before || after > 5.1*before {
		t.Errorf("TTFT %v, five times slower %v", before, after)
	}
}

func TestGzip(t *testing.T) {
	r := tiny(t)
	r.Faults(`{"gzip":true}`)
	for _, body := range []string{`{"prompt":"x","max_tokens":4}`, `{"prompt":"x","max_tokens":4,"stream":true}`} {
		if got := ask(t, "POST", r.URL+textPath, body); got.header.Get("Content-Encoding") != "" || !strings.Contains(string(got.body), `"text"`) {
			t.Errorf("not asked for: %v", got.header)
		}
		got := ask(t, "POST", r.URL+textPath, body, "accept-encoding", "gzip")
		if got.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("asked for: %v", got.header)
		}
		z, err := gzip.NewReader(strings.NewReader(string(got.body)))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(z); err != nil || !strings.Contains(string(plain), `"finish_reason":"length"`) {
			t.Errorf("%v %q", err, plain)
		}
	}
}

func TestBigBody(t *testing.T) {
	o := node.Options{Speed: 1000, Engine: engine.Config{MaxModelLen: 10 << 20, Blocks: 1 << 20}}
	o.Wire.MaxBody = 33 << 20
	r := replicatest.Start(t, o)
	body := `{"prompt":"` + strings.Repeat(" words", 32<<20/6) + `","max_tokens":1}`
	if c := read(t, ask(t, "POST", r.URL+textPath, body)); c.Usage.Prompt != 32<<20/6 {
		t.Errorf("%d tokens", c.Usage.Prompt)
	}
	body = `{"prompt":"` + strings.Repeat(" words", 34<<20/6) + `"}`
	if got := ask(t, "POST", r.URL+textPath, body); got.status != 413 {
		t.Errorf("over the limit: %d", got.status)
	}
	sent := io.MultiReader(strings.NewReader(body)) // of unknown length
	resp, err := http.Post(r.URL+textPath, "application/json", sent)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != 413 {
			t.Errorf("over the limit, chunked: %d", resp.StatusCode)
		}
	}
}

// TestHostileBodies: whatever comes, the next normal request is served.
func TestHostileBodies(t *testing.T) {
	r := tiny(t)
	for _, body := range []string{
		strings.Repeat("[", 20000), `{"` + strings.Repeat("k", 1<<20) + `":1}`, `{"messages":[{"role":"user","content":"\ud83d"}]}`,
		`{"messages":[{"role":`, "\x00\xff", `{"model":null,"messages":[]}`, `{"prompt":{"a":1},"messages":{}}`,
	} {
		for _, path := range []string{chatPath, textPath, "/tokenize", "/v1/load_lora_adapter", "/v1/unload_lora_adapter"} {
			if got := ask(t, "POST", r.URL+path, body); got.status >= 500 {
				t.Errorf("%s %.40q: %d %s", path, body, got.status, got.body)
			}
		}
	}
	read(t, ask(t, "POST", r.URL+chatPath, `{"messages":[{"role":"user","content":"x"}]}`))
}
