//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// spoken is a request in one of the dialects. Its prompt is told apart from all
// others by a seed.
type spoken struct {
	name, path string
	body       func(seed string) object
	usage      string // what the answer tells of tokens: all, prompt, nothing
	streams    bool
	byLoad     bool // has no prompt that Warmlane knows
}

var dialects = []spoken{
	{"chat", "/v1/chat/completions", func(seed string) object {
		return chat(words(seed, 200))
	}, "all", true, false},
	{"completions", "/v1/completions", func(seed string) object {
		return object{"model": "m", "prompt": words(seed, 200), "max_tokens": 5}
	}, "all", true, false},
	{"responses", "/v1/responses", func(seed string) object {
		return object{"model": "m", "instructions": words(seed, 150), "input": words(seed, 60), "max_output_tokens": 5}
	}, "all", true, false},
	{"responses of items", "/v1/responses", func(seed string) object {
		return object{"model": "m", "input": []object{
			{"role": "user", "content": []object{{"type": "input_text", "text": words(seed+"i", 150)}}},
			{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "c", "output": words(seed, 50)},
		}}
	}, "all", true, false},
	{"messages", "/v1/messages", func(seed string) object {
		return object{"model": "m", "max_tokens": 5, "system": words(seed, 150), "messages": []object{{"role": "user", "content": words(seed, 60)}}}
	}, "all", true, false},
	{"messages of blocks", "/v1/messages", func(seed string) object {
		return object{"model": "m", "max_tokens": 5, "system": []object{{"type": "text", "text": words(seed+"b", 150), "cache_control": object{"type": "ephemeral"}}},
			"messages": []object{{"role": "user", "content": []object{{"type": "text", "text": words(seed, 60)}}}}}
	}, "all", true, false},
	{"count_tokens", "/v1/messages/count_tokens", func(seed string) object {
		return object{"model": "m", "messages": []object{{"role": "user", "content": words(seed, 60)}}}
	}, "nothing", false, true},
	{"embeddings", "/v1/embeddings", func(seed string) object {
		return object{"model": "m", "input": words(seed+"e", 200)}
	}, "prompt", false, false},
	{"embeddings of a list", "/v1/embeddings", func(seed string) object {
		return object{"model": "m", "input": []string{words(seed+"l", 150), words(seed, 60)}, "encoding_format": "base64"}
	}, "prompt", false, false},
	{"pooling", "/pooling", func(seed string) object {
		return object{"model": "m", "input": words(seed+"p", 200)}
	}, "prompt", false, false},
	{"rerank", "/v1/rerank", func(seed string) object {
		return object{"model": "m", "query": words(seed, 200), "documents": []string{"a document", words("other", 20)}}
	}, "prompt", false, false},
	{"score", "/score", func(seed string) object {
		return object{"model": "m", "queries": words(seed+"s", 200), "documents": words("other", 20)}
	}, "prompt", false, false},
	{"detokenize", "/detokenize", func(seed string) object {
		return object{"model": "m", "tokens": ids(len(seed), 20)}
	}, "nothing", false, true},
}

// stillEngines are n replicas that no answer tells apart: equal requests, equal bytes.
func stillEngines(t *testing.T, n int) []*replicatest.Replica {
	return engines(t, n, func(o *node.Options) { o.Events, o.Wire.Still, o.Wire.Name = nil, true, "any" })
}

// TestDialects asks everything twice, through Envoy and of a replica that stands
// alone: the answers are equal to the byte, the second time the same replica
// answers, and what the engines count is what Warmlane counts.
func TestDialects(t *testing.T) {
	list := stillEngines(t, 3)
	alone := stillEngines(t, 1)[0]
	h := start(t, "-workers", "2", "-replicas", strings.Join(addressesOf(list), ","))
	p := &parrot{house: h, alone: alone}
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			p.twice(t, d, d.name, d.body(d.name))
			if d.streams {
				o := with(d.body(d.name+" stream"), "stream", true)
				if _, ok := o["max_tokens"]; ok && !strings.HasPrefix(d.name, "messages") {
					o["stream_options"] = object{"include_usage": true}
				}
				p.twice(t, d, d.name+" stream", o)
			}
		})
	}
	t.Run("transcription", p.transcription)
	t.Run("errors", p.errors)
	h.settled()
	p.counted(t, list)
}

func addressesOf(list []*replicatest.Replica) (addresses []string) {
	for _, r := range list {
		addresses = append(addresses, r.Addr)
	}
	return addresses
}

// parrot says everything to Envoy and to a replica.
type parrot struct {
	*house
	alone   *replicatest.Replica
	asked   int // requests that were answered well
	refused int // and those that the replica refused
}

// twice asks when the prompt is new and when it is warm.
func (p *parrot) twice(t *testing.T, d spoken, name string, o object) {
	t.Helper()
	cold := p.same(t, d.path, body(o), "application/json", 200)
	warm := p.same(t, d.path, body(o), "application/json", 200)
	p.asked += 2
	if d.byLoad {
		return
	}
	was, is := cold.header.Get("x-warmlane-decision"), warm.header.Get("x-warmlane-decision")
	if warm.branch() != "cache_hit" || replicaOf(was) != replicaOf(is) || replicaOf(is) == "" {
		t.Errorf("%s: decided %s, then %s", name, was, is)
	}
	if stream, _ := o["stream"].(bool); stream != strings.HasPrefix(warm.header.Get("content-type"), "text/event-stream") {
		t.Errorf("%s: %s", name, warm.header.Get("content-type"))
	}
}

func replicaOf(decision string) string {
	_, at, _ := strings.Cut(decision, `replica="`)
	at, _, _ = strings.Cut(at, `"`)
	return at
}

// same asks both and compares what a client sees.
func (p *parrot) same(t *testing.T, path string, text []byte, contentType string, status int) reply {
	t.Helper()
	through := post(kept, p.url+path, text, "content-type", contentType, "x-warmlane-explain", "1")
	direct := post(kept, p.alone.URL+path, text, "content-type", contentType)
	if through.err != nil || direct.err != nil || through.status != status || direct.status != status {
		t.Fatalf("%s: %d %v and %d %v: %.300s", path, through.status, through.err, direct.status, direct.err, through.body)
	}
	if !bytes.Equal(through.body, direct.body) {
		t.Errorf("%s: through Envoy\n%.1500s\ndirectly\n%.1500s", path, through.body, direct.body)
	}
	for name := range direct.header {
		if name == "Date" || name == "Server" {
			continue
		}
		if got, want := through.header.Get(name), direct.header.Get(name); got != want {
			t.Errorf("%s: %s is %q, directly %q", path, name, got, want)
		}
	}
	return through
}

// transcription uploads a sound.
func (p *parrot) transcription(t *testing.T) {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	if err := form.WriteField("model", "m"); err != nil {
		t.Fatal(err)
	}
	file, err := form.CreateFormFile("file", "speech.wav")
	if err != nil {
		t.Fatal(err)
	}
	file.Write(bytes.Repeat([]byte{0, 255, '"', '{', '\n'}, 60_000))
	form.Close()
	for range 2 {
		p.same(t, "/v1/audio/transcriptions", text.Bytes(), form.FormDataContentType(), 200)
		p.asked++
	}
}

// errors come as the dialect has them.
func (p *parrot) errors(t *testing.T) {
	for _, e := range []struct {
		path, body, begins string
		status             int
	}{
		{"/v1/messages", `{"model":"nope","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, `{"type":"error","error":{"type":"NotFoundError",`, 404},
		{"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, `{"error":{`, 400},
		{"/v1/messages/count_tokens", `{"model":"nope","messages":[{"role":"user","content":"x"}]}`, `{"type":"error",`, 404},
		{"/v1/responses", `{"model":"m","input":5}`, `{"error":{`, 400},
		{"/v1/responses", `{"model":"nope","input":"x","stream":true}`, `{"error":{`, 404},
		{"/v1/embeddings", `{"model":"m"}`, `{"error":{`, 400},
		{"/v1/rerank", `{"model":"m","query":`, `{"error":{`, 400},
		{"/score", `{"model":"m","queries":["a","b"],"documents":["c","d","e"]}`, `{"error":{`, 400},
	} {
		if r := p.same(t, e.path, []byte(e.body), "application/json", e.status); !bytes.HasPrefix(r.body, []byte(e.begins)) {
			t.Errorf("%s: %s", e.path, r.body)
		}
		p.refused++
	}
}

// counted compares Warmlane's figures with the engines'.
func (p *parrot) counted(t *testing.T, list []*replicatest.Replica) {
	var prompt, completion, cached int
	for _, r := range list {
		for _, e := range r.Requests() {
			tells := usageOf(e)
			if e.Status != 200 || tells == "nothing" {
				continue
			}
			prompt += e.PromptTokens
			if tells == "all" {
				completion += e.CompletionTokens
				cached += e.CachedTokens
			}
		}
	}
	if cached == 0 {
		t.Error("no engine had anything cached")
	}
	for what, want := range map[string]int{`kind="prompt"`: prompt, `kind="completion"`: completion, `kind="cached"`: cached} {
		p.equal(t, "warmlane_tokens_total", float64(want), what)
	}
	p.equal(t, "warmlane_requests_total", float64(p.asked), `status="200"`)
	p.equal(t, "warmlane_outcomes_total", float64(p.asked+p.refused), `outcome="ok"`)
	p.equal(t, "warmlane_outcomes_total", float64(p.asked+p.refused))
	p.equal(t, "warmlane_panics_total", 0)
}

func usageOf(e wire.Entry) string {
	for _, d := range dialects {
		if d.path == e.Path {
			return d.usage
		}
	}
	return "nothing"
}

// equal waits until a metric of Envoy's has a value.
func (p *parrot) equal(t *testing.T, name string, want float64, labels ...string) {
	t.Helper()
	var got float64
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = p.series(name, labels...); got == want {
			return
		}
	}
	t.Errorf("%s%v is %v, want %v", name, labels, got, want)
}

// TestDialectStreamsThatBreak: an error inside a stream of Anthropic's, and one
// of responses that is cut, are seen by client and metrics.
func TestDialectStreamsThatBreak(t *testing.T) {
	list := stillEngines(t, 1)
	h := start(t, "-workers", "1", "-replicas", list[0].Addr)
	list[0].Faults(`{"error_after_events":4}`)
	messages := dialects[4].body("broken")
	if r := post(fresh, h.url+"/v1/messages", body(with(messages, "stream", true))); r.err != nil || !bytes.Contains(r.body, []byte("event: error\ndata: {\"type\":\"error\"")) {
		t.Errorf("messages: %d %v %s", r.status, r.err, r.body)
	}
	response := with(dialects[2].body("broken"), "stream", true)
	if r := post(fresh, h.url+"/v1/responses", body(response)); r.err != io.ErrUnexpectedEOF || bytes.Contains(r.body, []byte("response.completed")) {
		t.Errorf("responses: %d %v %s", r.status, r.err, r.body)
	}
	h.settled()
	for _, outcome := range []string{"stream_error", "upstream_reset"} {
		h.eventually(5*time.Second, outcome, func() bool {
			return h.series("warmlane_outcomes_total", fmt.Sprintf("outcome=%q", outcome)) == 1
		})
	}
	if r := post(fresh, h.url+"/v1/messages", body(messages)); r.status != http.StatusInternalServerError || !bytes.HasPrefix(r.body, []byte(`{"type":"error"`)) {
		t.Errorf("in one piece: %d %s", r.status, r.body)
	}
}
