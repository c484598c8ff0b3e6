package wire

import (
	"strconv"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// dialect is how one of the generating paths writes its answers: the constant
// pieces of JSON between what varies, in vLLM's order of keys.
type dialect struct {
	idPrefix string
	object   string // of an answer in one piece
	chunk    string // of an event
	open     string // a choice, up to its text
	close    string // from the text to the finish reason
	tail     string // from the finish reason to the end of the choice
	end      string // the last keys of the answer
	role     string // choice of the first event; "" if there is none
	roleEnd  string // the last keys of the first event
	delta    string // a choice of an event, up to its text
	deltaEnd string // from the text to the finish reason
	more     string // from the finish reason to the end, answer goes on
	last     string // the same, answer ends
	created  bool   // usage says created_cache_tokens
}

var chatDialect = dialect{
	idPrefix: "chatcmpl-",
	object:   "chat.completion",
	chunk:    "chat.completion.chunk",
	open:     `"message":{"role":"assistant","content":`,
	close:    `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":`,
	tail:     `,"stop_reason":null,"token_ids":null,"routed_experts":null}`,
	end:      `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
	role:     `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
	roleEnd:  `,"prompt_token_ids":null,"prompt_text":null}`,
	delta:    `"delta":{"content":`,
	deltaEnd: `},"logprobs":null,"finish_reason":`,
	more:     `,"token_ids":null}`,
	last:     `,"stop_reason":null,"token_ids":null}`,
	created:  true,
}

var completionDialect = dialect{
	idPrefix: "cmpl-",
	object:   "text_completion",
	chunk:    "text_completion",
	open:     `"text":`,
	close:    `,"logprobs":null,"finish_reason":`,
	tail:     `,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`,
	end:      `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
	delta:    `"text":`,
	deltaEnd: `,"logprobs":null,"finish_reason":`,
	more:     `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}`,
	last:     `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}`,
}

// finishAbort is the reason vLLM gives when it is stopped under way.
const finishAbort engine.Finish = "abort"

// appendHead writes the keys all bodies and events begin with.
func (g *generation) appendHead(b []byte, object string) []byte {
	b = append(b, `{"id":`...)
	b = appendJSON(b, g.id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, g.created, 10)
	b = append(b, `,"model":`...)
	b = appendJSON(b, g.model)
	return append(b, `,"choices":[`...)
}

func appendIndex(b []byte, i int) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(i), 10)
	return append(b, ',')
}

func appendFinish(b []byte, f engine.Finish) []byte {
	if f == "" {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = append(b, f...)
	return append(b, '"')
}

// usage is the account of an answer.
type usage struct{ prompt, completion, cached, created int }

// usage sums up the choices; a prompt counts once, whatever its number of choices.
func (g *generation) usage() (u usage) {
	u.completion = g.x.entry.CompletionTokens
	u.prompt = g.x.entry.PromptTokens
	u.cached = g.cached()
	for i := 0; i < len(g.reqs); i += g.call.copies {
		u.created += g.reqs[i].CreatedTokens(g.x.s.cfg.Engine.BlockSize)
	}
	return u
}

// appendCounts opens a usage object with its numbers.
func (u usage) appendCounts(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.prompt), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.prompt+u.completion), 10)
	b = append(b, `,"completion_tokens":`...)
	return strconv.AppendInt(b, int64(u.completion), 10)
}

// appendWhole writes the usage of an answer in one piece.
func (g *generation) appendWhole(b []byte, u usage) []byte {
	b = u.appendCounts(b)
	b = append(b, `,"prompt_tokens_details":`...)
	if g.x.s.cfg.NoDetails {
		return append(b, `null,"completion_tokens_details":null}`...)
	}
	b = append(b, `{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `,"created_cache_tokens":`...)
	if g.dialect.created {
		b = strconv.AppendInt(b, int64(u.created), 10)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
}

// appendLast writes the usage of a stream's last event. Keys without a value are
// left out there.
func (g *generation) appendLast(b []byte, u usage) []byte {
	b = u.appendCounts(b)
	if g.x.s.cfg.NoDetails {
		return append(b, '}')
	}
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	if g.dialect.created {
		b = append(b, `,"created_cache_tokens":`...)
		b = strconv.AppendInt(b, int64(u.created), 10)
	}
	return append(b, `}}`...)
}
