package lab

import (
	"fmt"

	"github.com/warmlane/warmlane/filter/exchange"
)

// headers walks a list of pairs as an exchange wants it.
type headers struct{ rest [][2][]byte }

func headersOf(pairs ...string) *headers {
	h := &headers{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.rest = append(h.rest, [2][]byte{[]byte(pairs[i]), []byte(pairs[i+1])})
	}
	return h
}

// Next implements exchange.Headers.
func (h *headers) Next() (name, value []byte, ok bool) {
	if len(h.rest) == 0 {
		return nil, nil, false
	}
	pair := h.rest[0]
	h.rest = h.rest[1:]
	return pair[0], pair[1], true
}

var _ exchange.Headers = (*headers)(nil)

func requestHead() *headers {
	return headersOf(":method", "POST", ":path", "/v1/chat/completions", "content-type", "application/json")
}

// answerHead is the head of a stream. An engine does not report its load with
// it, as vLLM does not.
func answerHead() *headers {
	return headersOf(":status", "200", "content-type", "text/event-stream; charset=utf-8", "x-envoy-attempt-count", "1")
}

// firstEvents are the first events of a stream: the role, then a token.
var firstEvents = []byte(`data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}

`)

// lastEvents are the last events of a stream, with the usage.
func lastEvents(f *flight) []byte {
	return fmt.Appendf(nil, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}

data: [DONE]

`, f.Tokens, f.Tokens+f.Output, f.Output, f.job.CachedTokens())
}
