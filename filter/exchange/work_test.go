package exchange

import (
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/route"
)

// announced is what a request's replica is told of its work.
func announced(t *testing.T, h *native, path, body string) (prompt, uncached uint32) {
	t.Helper()
	h.now += 50
	e := h.worker.NewExchange()
	e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": path}), false)
	for _, p := range e.RequestBody([]byte(body), true).Properties {
		if p.Name == workProperty {
			var ok bool
			if prompt, uncached, ok = route.ParseWork(p.Value); !ok {
				t.Errorf("%s: cannot be read: %q", path, p.Value)
			}
			return prompt, uncached
		}
	}
	t.Errorf("%s: nothing is announced", path)
	return 0, 0
}

// TestWorkIsAnnounced: with every decision, whether a replica was chosen or not.
func TestWorkIsAnnounced(t *testing.T) {
	text := strings.Repeat("warm words ", 400)
	body := string(chatBody(text, false))
	h := newNative(t, 1, "")
	prompt, uncached := announced(t, h, "/v1/chat/completions", body)
	if least := uint32(len(text) / bytesPerToken); prompt < least || prompt > least+50 || uncached != prompt {
		t.Errorf("a new prompt: %d tokens, %d uncached, want about %d and all", prompt, uncached, least)
	}
	again, rest := announced(t, h, "/v1/chat/completions", body)
	if again != prompt || rest >= prompt/4 {
		t.Errorf("a known prompt: %d tokens, %d uncached, want %d and few", again, rest, prompt)
	}
	if prompt, uncached = announced(t, h, "/tokenize", `{"prompt":"abcdefgh"}`); prompt == 0 || uncached != prompt {
		t.Errorf("a prompt that is not read: %d tokens, %d uncached", prompt, uncached)
	}
	nobody := newNative(t, 0, "")
	if prompt, uncached = announced(t, nobody, "/v1/chat/completions", body); prompt != again || uncached != prompt {
		t.Errorf("left to Envoy: %d tokens, %d uncached, want %d and all", prompt, uncached, again)
	}
}

// TestReportCountsFromTheHead: what the replicas' reporters say with the heads of
// streams counts before the streams' first tokens.
func TestReportCountsFromTheHead(t *testing.T) {
	h := newNative(t, 2, "")
	loads := []string{"owed_tokens=90000, named_metrics.in_flight=40", "owed_tokens=10, named_metrics.in_flight=1"}
	busy := -1
	for _, load := range loads {
		e := h.open(t, h.worker, chatBody(load, true))
		if busy < 0 {
			busy = e.named
		}
		e.ResponseHeaders(headersOf(map[string]string{
			":status": "200", "content-type": "text/event-stream", "endpoint-load-metrics": "TEXT named_metrics." + load,
		}), by(e.address()), false)
	}
	for _, text := range []string{"a", "b", "c", "d"} {
		if e := h.open(t, h.worker, chatBody(text, true)); e.named == busy {
			t.Errorf("%q was sent to the replica that others keep busy", text)
		}
	}
}
