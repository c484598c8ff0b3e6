//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// piped hides the length of a body, so that it goes chunked.
func piped(b []byte, piece int) io.Reader {
	r, w := io.Pipe()
	go func() {
		for len(b) > 0 {
			n := min(piece, len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return
			}
			b = b[n:]
		}
		w.Close()
	}()
	return r
}

// TestBodiesArriveUnchanged sends bodies of many sizes, chunked and not, and
// compares what the replica got.
func TestBodiesArriveUnchanged(t *testing.T) {
	list := backends(t, 2)
	h := start(t, "-replicas", addresses(list), "-workers", "2")
	for _, size := range []int{1, 1000, 80_000, 1 << 20, 3_000_000, 8 << 20} {
		body := message(strings.Repeat("x\n\"é", size/6+1))
		for name, reader := range map[string]io.Reader{
			"whole": bytes.NewReader(body), "chunked": piped(body, 64<<10), "odd chunks": piped(body, 9973),
		} {
			r := send(kept, h.url+"/v1/chat/completions", reader, "x-warmlane-explain", "1")
			if !bytes.Contains(r.body, []byte(sumOf(body))) {
				t.Fatalf("%d bytes %s: status %d %v, another body arrived: %.100s", len(body), name, r.status, r.err, r.body)
			}
			if r.header.Get("x-warmlane-decision") == "" {
				t.Errorf("%d bytes %s: not decided", len(body), name)
			}
		}
	}
	for _, b := range list {
		for _, a := range b.arrivals() {
			if length := a.header.Get("content-length"); length != "" && a.chunked {
				t.Errorf("two framings: content-length %s and chunked", length)
			}
		}
	}
	h.settled()
}

// TestAnswersArriveUnchanged compares a large and a streamed answer.
func TestAnswersArriveUnchanged(t *testing.T) {
	list := backends(t, 1)
	big := bytes.Repeat([]byte(`{"a":"b"},`), 100_000)
	list[0].answer = func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("content-type", "application/json")
		w.Write(big)
	}
	h := start(t, "-replicas", addresses(list), "-workers", "1")
	if r := post(kept, h.url+"/v1/chat/completions", message("x")); !bytes.Equal(r.body, big) {
		t.Errorf("status %d, %v, %d bytes of %d", r.status, r.err, len(r.body), len(big))
	}
	var want bytes.Buffer
	list[0].answer = func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("content-type", "text/event-stream")
		want.Reset()
		for i := range 200 {
			event := fmt.Appendf(nil, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
			want.Write(event)
			w.Write(event[:i%len(event)])
			w.(http.Flusher).Flush()
			w.Write(event[i%len(event):])
			w.(http.Flusher).Flush()
		}
	}
	if r := post(kept, h.url+"/v1/chat/completions", message("x")); !bytes.Equal(r.body, want.Bytes()) {
		t.Errorf("stream: status %d, %v, %d bytes of %d", r.status, r.err, len(r.body), want.Len())
	}
}

// TestBodyOverTheLimit gets 413 in OpenAI's shape, at once, and harms nobody.
func TestBodyOverTheLimit(t *testing.T) {
	list := backends(t, 1)
	h := start(t, "-replicas", addresses(list), "-workers", "1", "-max-body", "1000000")
	for _, reader := range []func([]byte) io.Reader{
		func(b []byte) io.Reader { return bytes.NewReader(b) },
		func(b []byte) io.Reader { return piped(b, 32<<10) },
	} {
		r := send(fresh, h.url+"/v1/chat/completions", reader(message(strings.Repeat("x", 3_000_000))))
		if r.err == nil && (r.status != 413 || !bytes.Contains(r.body, []byte(`"error"`))) {
			t.Errorf("status %d: %.200s", r.status, r.body)
		}
		next := post(fresh, h.url+"/v1/chat/completions", message("small"))
		next.where(t)
	}
	h.settled()
}

// TestHostileBodies sends what should break a parser, then normal requests.
func TestHostileBodies(t *testing.T) {
	list := backends(t, 2)
	h := start(t, "-replicas", addresses(list), "-workers", "1")
	hostile := []string{
		`{"model":"m","messages":{}}`, `{"model":"m","messages":[null]}`, `{"model":"m","messages":[{"role":"user","content":5}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}`, strings.Repeat("[", 20000),
		`{"` + strings.Repeat("k", 1<<20) + `":1}`, `{"model":"m","messages":[{"role":"user","content":"\ud83d"}]}`, `{"model":"`,
		"\xef\xbb\xbf" + string(message("hi")), "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}", "\x00\x01",
		`{"model":null,"messages":[]}`, `{"model":42,"messages":[]}`, `[]`, `"`, `{"model":"m","model":"big","messages":[]}`,
	}
	for _, body := range hostile {
		r := post(kept, h.url+"/v1/chat/completions", []byte(body))
		if r.status != 200 || !bytes.Contains(r.body, []byte(sumOf([]byte(body)))) {
			t.Errorf("%.60q: status %d, %v", body, r.status, r.err)
		}
	}
	for i := range 100 {
		r := post(kept, h.url+"/v1/chat/completions", message(fmt.Sprint("normal ", i)))
		r.where(t)
	}
	if n := h.series("warmlane_panics_total"); n != 0 {
		t.Errorf("%v panics", n)
	}
	h.eventually(5e9, "scan errors counted", func() bool { return h.series("warmlane_scan_errors_total") >= 6 })
	h.settled()
}
