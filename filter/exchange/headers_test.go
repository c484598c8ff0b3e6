package exchange

import (
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/openai"
)

func TestDialectOfPath(t *testing.T) {
	f := func(path string, want dialect, kind openai.Kind) {
		t.Helper()
		if got := dialectOf([]byte(path)); got != want || got.kind() != kind {
			t.Errorf("%s is dialect %d of kind %d, want %d, %d", path, got, got.kind(), want, kind)
		}
	}
	f("/v1/chat/completions", chat, openai.Chat)
	f("/v1/completions?x=/v1/responses", completions, openai.Completions)
	f("/v1/responses", responses, openai.Responses)
	f("/v1/messages?beta=true", messages, openai.Messages)
	for _, path := range []string{"/v1/embeddings", "/pooling", "/classify"} {
		f(path, embeddings, openai.Embeddings)
	}
	for _, path := range []string{"/v1/rerank", "/rerank", "/v2/rerank", "/v1/score", "/score"} {
		f(path, rerank, openai.Rerank)
	}
	for _, path := range []string{
		"/tokenize", "/detokenize", "/v1/messages/count_tokens", "/v2/embed",
		"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech",
	} {
		f(path, byLoad, openai.Other)
	}
	for _, path := range []string{"", "/", "/v1/models", "/health", "/v1/responses/resp_1", "/v1/chat/completions/", "/V1/COMPLETIONS"} {
		f(path, notOurs, openai.Other)
	}
}

// readHead reads a head that strips nothing.
func readHead(h map[string]string) requestHead {
	var r requestHead
	var v Verdict
	r.read(headersOf(h), &HeaderConfig{}, &v)
	return r
}

func TestFormIsKnownByItsType(t *testing.T) {
	f := func(contentType, boundary string) {
		t.Helper()
		r := readHead(map[string]string{":method": "POST", ":path": "/v1/audio/translations", "content-type": contentType})
		if got := string(r.mark[:r.markLen]); got != boundary || r.dialect != byLoad {
			t.Errorf("%s: boundary %q, dialect %d", contentType, got, r.dialect)
		}
	}
	f("multipart/form-data; boundary=abc", "abc")
	f("multipart/form-data; boundary="+strings.Repeat("x", 70), strings.Repeat("x", 70))
	f("application/json", "")
}

// decided plays a request up to its decision.
func (h *native) decided(t *testing.T, path, body string, headers ...string) *Exchange {
	t.Helper()
	head := map[string]string{":method": "POST", ":path": path}
	for i := 0; i+1 < len(headers); i += 2 {
		head[headers[i]] = headers[i+1]
	}
	h.now += 50
	e := h.worker.NewExchange()
	e.RequestHeaders(headersOf(head), false)
	for at := 0; e.ReadsRequest(); at += 1000 {
		e.RequestBody([]byte(body[at:min(at+1000, len(body))]), at+1000 >= len(body))
	}
	return e
}

// TestOpening: what stands before the prompt counts as its beginning.
func TestOpening(t *testing.T) {
	system, question := strings.Repeat("be nice ", 500), strings.Repeat("why? ", 400)
	message := func(system, text string) string {
		return `{"model":"m","messages":[{"role":"user","content":"` + text + `"}],"system":"` + system + `"}`
	}
	h := newNative(t, 3, "")
	f := func(body string, same *Exchange, least, most uint32) *Exchange {
		t.Helper()
		e := h.decided(t, "/v1/messages", body)
		if m := e.choice.Matched; m < least || m > most || same != nil && e.named != same.named {
			t.Errorf("replica %d, %d tokens of %d matched, want %d to %d", e.named, m, e.choice.Prompt, least, most)
		}
		return e
	}
	first := f(message(system, question), nil, 0, 0)
	if n := tokensIn(len(system) + len(question)); first.choice.Prompt < n || first.choice.Prompt > n+5 {
		t.Errorf("prompt of %d tokens, want %d and little more", first.choice.Prompt, n)
	}
	// The index is exact to a sixteenth.
	f(message(system, question), first, 1400, 1502)
	f(message(system, "something else"), first, 937, 1000)
	f(message(system, strings.Repeat("why not? ", 300)), first, 937, 1000)
	f(message(strings.Repeat("be rude ", 500), question), nil, 0, 0)
	f(`{"model":"m","messages":[{"role":"user","content":"`+question+`"}]}`, nil, 0, 0)

	// A refusal takes both back.
	refused := h.decided(t, "/v1/messages", message(strings.Repeat("be brief ", 500), question))
	refused.ResponseHeaders(headersOf(map[string]string{":status": "400"}), by(refused.address()), true)
	refused.Settle(noWord)
	f(message(strings.Repeat("be brief ", 500), question), nil, 0, 0)
}

// A short opening is not looked up, but tells prompts apart.
func TestShortOpening(t *testing.T) {
	question := strings.Repeat("why? ", 400)
	h := newNative(t, 3, "")
	f := func(opening string, least uint32) {
		t.Helper()
		e := h.decided(t, "/v1/responses", `{"model":"m","instructions":"`+opening+`","input":"`+question+`"}`)
		if m := e.choice.Matched; m < least || least == 0 && m > 0 {
			t.Errorf("%s: %d tokens matched, want %d", opening, m, least)
		}
		if e.apart {
			t.Errorf("%s: has a chain of its own", opening)
		}
	}
	f("be nice", 0)
	f("be nice", tokensIn(len(question)*7/8))
	f("be rude", 0)
}

// tokensIn is how many tokens so many canonical bytes count for.
func tokensIn(bytes int) uint32 { return uint32(bytes / bytesPerToken) }

func TestModelOfAForm(t *testing.T) {
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsql\r\n--b--\r\n"
	h := newNative(t, 2, "")
	e := h.decided(t, "/v1/audio/transcriptions", form, "content-type", "multipart/form-data; boundary=b")
	if got := string(e.scanner.Request().Model.Bytes()); got != "sql" || e.named < 0 {
		t.Errorf("model %q, replica %d", got, e.named)
	}
	e = h.decided(t, "/v1/chat/completions", `{"model":"m","messages":[]}`)
	if got := string(e.scanner.Request().Model.Bytes()); got != "m" {
		t.Errorf("model %q after a form", got)
	}
}
