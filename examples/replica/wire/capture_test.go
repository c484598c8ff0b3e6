package wire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
)

// tiny is a replica set up as the captured server was.
func tiny(t *testing.T) *replicatest.Replica {
	t.Helper()
	o := node.Options{Speed: 20, Engine: engine.Config{BlockSize: 32, MaxModelLen: 4096, MaxSeqs: 8}}
	o.Wire.MaxLoRAs = 2
	return replicatest.Start(t, o)
}

// reply is what a test compares: the head and the body.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// captured reads what `curl -i` wrote of the real server.
func captured(t *testing.T, name string) reply {
	t.Helper()
	text, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := bytes.Cut(text, []byte("\r\n\r\n"))
	var r reply
	r.header = http.Header{}
	for i, line := range strings.Split(string(head), "\r\n") {
		if i == 0 {
			_, _ = fmt.Sscanf(line, "HTTP/1.1 %d", &r.status)
			continue
		}
		k, v, _ := strings.Cut(line, ": ")
		r.header.Add(k, v)
	}
	r.body = body
	return r
}

// ask sends a request; header is a list of names and values.
func ask(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body = nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r := reply{status: resp.StatusCode, header: resp.Header}
	if resp.ContentLength >= 0 {
		r.header.Set("Content-Length", fmt.Sprint(resp.ContentLength))
	}
	if len(resp.TransferEncoding) > 0 {
		r.header.Set("Transfer-Encoding", resp.TransferEncoding[0])
	}
	if r.body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return r
}

func headerNames(h http.Header) (names []string) {
	for k := range h {
		names = append(names, strings.ToLower(k))
	}
	slices.Sort(names)
	return names
}

// skeleton is a JSON text with its keys in order and kinds for values; equal
// neighbours in a list are one.
func skeleton(t *testing.T, text []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	s, err := bones(dec)
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return s
}

func bones(dec *json.Decoder) (string, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	switch v := tok.(type) {
	case json.Delim:
		return inner(dec, v)
	case string:
		return "text", nil
	case json.Number:
		return "number", nil
	case bool:
		return "bool", nil
	}
	return "null", nil
}

func inner(dec *json.Decoder, open json.Delim) (string, error) {
	var parts []string
	for dec.More() {
		key := ""
		if open == '{' {
			k, err := dec.Token()
			if err != nil {
				return "", err
			}
			key = k.(string) + ":"
		}
		v, err := bones(dec)
		if err != nil {
			return "", err
		}
		if part := key + v; len(parts) == 0 || parts[len(parts)-1] != part {
			parts = append(parts, part)
		}
	}
	end, err := dec.Token()
	return open.String() + strings.Join(parts, ",") + fmt.Sprint(end), err
}

// events splits a stream into the JSON of its events; [DONE] stays as it is.
func events(body []byte) (list []string) {
	for _, e := range strings.Split(strings.TrimRight(string(body), "\n"), "\n\n") {
		list = append(list, strings.TrimPrefix(e, "data: "))
	}
	return list
}

const long = `The "with" statement is used to wrap the execution of a block with methods defined by a context manager. ` +
	`It allows common try, except, finally usage patterns to be put into one word for convenient reuse. The context expression ` +
	`is evaluated to obtain a context manager, then its enter method is invoked, and if a target was given, the value is assigned to it. ` +
	`The suite is executed, and the exit method of the context manager is invoked when it is done, with the exception if there was one.`

// TestShapes asks for what was asked of the real server and compares status,
// names of headers, and the body's keys, order and kinds.
func TestShapes(t *testing.T) {
	r := tiny(t)
	f := func(capture, method, path, body string, header ...string) {
		t.Helper()
		want, got := captured(t, capture), ask(t, method, r.URL+path, body, header...)
		if got.status != want.status {
			t.Errorf("%s: status %d, want %d: %s", capture, got.status, want.status, got.body)
			return
		}
		if g, w := headerNames(got.header), headerNames(want.header); !slices.Equal(g, w) {
			t.Errorf("%s: headers %v, want %v", capture, g, w)
		}
		if g, w := got.header.Get("Content-Type"), want.header.Get("Content-Type"); g != w {
			t.Errorf("%s: content type %q, want %q", capture, g, w)
		}
		compareBodies(t, capture, got, want)
	}
	longQ, _ := json.Marshal(long)
	chat := `{"model":"tiny","messages":[{"role":"user","content":` + string(longQ) + `}],"max_tokens":40}`
	short := `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":4}`
	shortStream := `{"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`
	text := `{"model":"tiny","prompt":"The as-","max_tokens":4}`
	textStream := `{"model":"tiny","prompt":"The as-","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`
	orca := "endpoint-load-metrics-format"

	f("chat-1.txt", "POST", "/v1/chat/completions", chat)
	f("chat-stream-cached.txt", "POST", "/v1/chat/completions", strings.Replace(chat, `"max_tokens":40`,
		`"max_tokens":4,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`, 1))
	f("chat-orca-TEXT.txt", "POST", "/v1/chat/completions", short, orca, "text")
	f("chat-orca-JSON.txt", "POST", "/v1/chat/completions", short, orca, "JSON")
	f("chat-orca-BIN.txt", "POST", "/v1/chat/completions", short, orca, "BIN")
	f("chat-stream-orca-TEXT.txt", "POST", "/v1/chat/completions", shortStream, orca, "TEXT")
	f("chat-stream-orca-JSON.txt", "POST", "/v1/chat/completions", shortStream, orca, "JSON")
	f("completions-orca-TEXT.txt", "POST", "/v1/completions", text, orca, "TEXT")
	f("completions-orca-JSON.txt", "POST", "/v1/completions", text, orca, "JSON")
	f("completions-orca-BIN.txt", "POST", "/v1/completions", text, orca, "BIN")
	f("completions-stream-orca-TEXT.txt", "POST", "/v1/completions", textStream, orca, "TEXT")
	f("completions-stream-orca-JSON.txt", "POST", "/v1/completions", textStream, orca, "JSON")

	f("health.txt", "GET", "/health", "")
	f("version.txt", "GET", "/version", "")
	f("load.txt", "GET", "/load", "")
	f("models.txt", "GET", "/v1/models", "")
	f("tokenize-completion.txt", "POST", "/tokenize", `{"model":"tiny","prompt":"The assert statement"}`)
	f("tokenize-nomodel.txt", "POST", "/tokenize", `{"prompt":"The assert statement"}`)
	f("tokenize-completion-strs.txt", "POST", "/tokenize", `{"prompt":"The assert statement","return_token_strs":true}`)
	f("tokenize-chat.txt", "POST", "/tokenize", short)
	f("tokenize-chat-nogenprompt.txt", "POST", "/tokenize", `{"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":false}`)
	f("tokenize-err-role.txt", "POST", "/tokenize", `{"messages":[{"role":"user"}]}`)
	f("tokenize-get.txt", "GET", "/tokenize", "")

	load := func(name, path string) string { return `{"lora_name":"` + name + `","lora_path":"` + path + `"}` }
	f("lora-load-a.txt", "POST", "/v1/load_lora_adapter", load("lora-a", "/adapters/a"))
	f("lora-load-a-again.txt", "POST", "/v1/load_lora_adapter", load("lora-a", "/adapters/a"))
	f("lora-load-bad.txt", "POST", "/v1/load_lora_adapter", `{"lora_name":"x"}`)
	f("lora-load-missing-path.txt", "POST", "/v1/load_lora_adapter", load("lora-x", "/nonexistent"))
	f("lora-models.txt", "GET", "/v1/models", "")
	f("tokenize-lora.txt", "POST", "/tokenize", `{"model":"lora-a","prompt":"The assert statement"}`)
	f("lora-completion.txt", "POST", "/v1/completions", `{"model":"lora-a","prompt":`+string(longQ)+`,"max_tokens":4}`, orca, "TEXT")
	f("lora-completion-cached.txt", "POST", "/v1/completions", `{"model":"lora-a","prompt":`+string(longQ)+`,"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`)
	f("lora-unload-a.txt", "POST", "/v1/unload_lora_adapter", `{"lora_name":"lora-a"}`)
	f("lora-unload-a-again.txt", "POST", "/v1/unload_lora_adapter", `{"lora_name":"lora-a"}`)
	f("lora-completion-unloaded.txt", "POST", "/v1/completions", `{"model":"lora-a","prompt":"x"}`)
}

func compareBodies(t *testing.T, capture string, got, want reply) {
	t.Helper()
	switch {
	case strings.HasPrefix(want.header.Get("Content-Type"), "text/event-stream"):
		compareStreams(t, capture, got.body, want.body)
	case want.header.Get("Content-Type") == "application/json":
		if g, w := skeleton(t, got.body), skeleton(t, want.body); g != w {
			t.Errorf("%s:\ngot  %s\nwant %s", capture, g, w)
		}
	case string(got.body) != strings.TrimSuffix(string(want.body), "\n"):
		t.Errorf("%s: body %q, want %q", capture, got.body, want.body)
	}
}

func compareStreams(t *testing.T, capture string, got, want []byte) {
	t.Helper()
	g, w := events(got), events(want)
	if len(g) != len(w) {
		t.Errorf("%s: %d events, want %d:\n%s", capture, len(g), len(w), got)
		return
	}
	for i := range w {
		if w[i] == "[DONE]" || g[i] == "[DONE]" {
			if g[i] != w[i] {
				t.Errorf("%s: event %d is %s, want %s", capture, i, g[i], w[i])
			}
			continue
		}
		if a, b := skeleton(t, []byte(g[i])), skeleton(t, []byte(w[i])); a != b {
			t.Errorf("%s: event %d\ngot  %s\nwant %s", capture, i, a, b)
		}
	}
}

// TestErrorsWordForWord: refusals are read by people and by routers; they are equal
// to the letter.
func TestErrorsWordForWord(t *testing.T) {
	r := tiny(t)
	f := func(capture, path, body string, header ...string) {
		t.Helper()
		want, got := captured(t, capture), ask(t, "POST", r.URL+path, body, header...)
		if got.status != want.status || string(got.body) != string(want.body) {
			t.Errorf("%s:\ngot  %d %s\nwant %d %s", capture, got.status, got.body, want.status, want.body)
		}
		if g, w := headerNames(got.header), headerNames(want.header); !slices.Equal(g, w) {
			t.Errorf("%s: headers %v, want %v", capture, g, w)
		}
	}
	ids := `{"model":"tiny","prompt":[` + strings.Repeat("300,", 4999) + `300]}`
	f("err-completion-json.txt", "/v1/completions", `{"model":"tiny",`)
	f("err-completion-model.txt", "/v1/completions", `{"model":"nope","prompt":"x"}`)
	f("err-completion-toolong.txt", "/v1/completions", ids)
	f("err-chat-stream-model.txt", "/v1/chat/completions", `{"model":"nope","messages":[{"role":"user","content":"x"}],"stream":true}`)
	f("tokenize-err-model.txt", "/tokenize", `{"model":"nope","prompt":"x"}`)
	f("tokenize-err-json.txt", "/tokenize", `{"model":"tiny",`)
	f("tokenize-err-nofield.txt", "/tokenize", `{"model":"tiny"}`)
	f("tokenize-list.txt", "/tokenize", `{"model":"tiny","prompt":["a","b"]}`)
	f("tokenize-err-ctype.txt", "/tokenize", `{"prompt":"x"}`, "content-type", "text/plain")
	f("lora-load-bad.txt", "/v1/load_lora_adapter", `{"lora_name":"x"}`)
}

// TestOneChunkPerEvent looks at the raw bytes of a stream.
func TestOneChunkPerEvent(t *testing.T) {
	r := tiny(t)
	c, err := net.Dial("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	body := `{"model":"tiny","prompt":"The as-","max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`
	_, _ = fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s", len(body), body)
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	_, raw, _ := bytes.Cut(all, []byte("\r\n\r\n"))
	want, err := os.ReadFile("../testdata/completions-stream-raw-chunks.txt")
	if err != nil {
		t.Fatal(err)
	}
	g, w := chunks(t, raw), chunks(t, want)
	if len(g) != len(w) {
		t.Fatalf("%d chunks, want %d:\n%s", len(g), len(w), raw)
	}
	for i := range w {
		if strings.HasPrefix(w[i], "data: {") != strings.HasPrefix(g[i], "data: {") || !strings.HasSuffix(g[i], "}\n\n") && g[i] != w[i] {
			t.Errorf("chunk %d is %q, want one like %q", i, g[i], w[i])
		}
	}
}

// chunks undoes chunked encoding.
func chunks(t *testing.T, raw []byte) (list []string) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("chunk size: %v", err)
		}
		var n int
		if _, err := fmt.Sscanf(line, "%x", &n); err != nil {
			t.Fatalf("chunk size %q: %v", line, err)
		}
		if n == 0 {
			return list
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			t.Fatal(err)
		}
		list = append(list, string(b[:n]))
	}
}

// TestHeadComesBeforePrefill: a slow prompt does not hold back the head of its stream.
func TestHeadComesBeforePrefill(t *testing.T) {
	r := replicatest.Start(t, node.Options{Engine: engine.Config{PrefillRate: 50}}) // 2 s for 100 tokens
	ids := strings.Repeat("300,", 99) + "300"
	start := time.Now()
	resp, err := http.Post(r.URL+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":[`+ids+`],"max_tokens":1,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	head := time.Since(start)
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if first := time.Since(start); head > time.Second || first < 1900*time.Millisecond {
		t.Errorf("head after %v, first event after %v; want the head at once and the event after 2 s", head, first)
	}
}

// TestQueueFull compares the refusal of a full queue.
func TestQueueFull(t *testing.T) {
	r := replicatest.Start(t, node.Options{Engine: engine.Config{MaxSeqs: 1, MaxQueued: 1, PrefillRate: 10}})
	for i := range 2 {
		go func() {
			resp, err := http.Post(r.URL+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":[%d,300,300,300,300,300]}`, i)))
			if err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	waitFor(t, "one request to run and one to wait", func() bool {
		page := string(ask(t, "GET", r.URL+"/metrics", "").body)
		return strings.Contains(page, `num_requests_waiting{engine="0",model_name="tiny"} 1.0`)
	})
	got := ask(t, "POST", r.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"stream":true}`)
	want, err := os.ReadFile("../testdata/err-queue-full-503.json")
	if err != nil {
		t.Fatal(err)
	}
	if got.status != 503 || string(got.body) != strings.TrimSpace(string(want)) || got.header.Get("Retry-After") != "" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
	page := string(ask(t, "GET", r.URL+"/metrics", "").body)
	if !strings.Contains(page, `admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 1.0`) {
		t.Error("the refusal was not counted")
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("no %s within 5 s", what)
}
