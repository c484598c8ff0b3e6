package wire

import (
	"strconv"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// wording is the dialect of chat completions and of completions: the constant
// pieces of JSON between what varies, in vLLM's order of keys.
type wording struct {
	idPrefix    string
	object      string // of an answer in one piece
	chunk       string // of an event
	choiceOpen  string // a choice, up to its text
	choiceClose string // from the text to the finish reason
	tail        string // from the finish reason to the end of the choice
	rest        string // the last keys of the answer
	role        string // choice of the first event; "" if there is none
	roleEnd     string // the last keys of the first event
	deltaOpen   string // a choice of an event, up to its text
	deltaEnd    string // from the text to the finish reason
	more        string // from the finish reason to the end, answer goes on
	last        string // the same, answer ends
	created     bool   // usage says created_cache_tokens
}

var chatDialect = &wording{
	idPrefix:    "chatcmpl-",
	object:      "chat.completion",
	chunk:       "chat.completion.chunk",
	choiceOpen:  `"message":{"role":"assistant","content":`,
	choiceClose: `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":`,
	tail:        `,"stop_reason":null,"token_ids":null,"routed_experts":null}`,
	rest:        `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
	role:        `"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
	roleEnd:     `,"prompt_token_ids":null,"prompt_text":null}`,
	deltaOpen:   `"delta":{"content":`,
	deltaEnd:    `},"logprobs":null,"finish_reason":`,
	more:        `,"token_ids":null}`,
	last:        `,"stop_reason":null,"token_ids":null}`,
	created:     true,
}

var completionDialect = &wording{
	idPrefix:    "cmpl-",
	object:      "text_completion",
	chunk:       "text_completion",
	choiceOpen:  `"text":`,
	choiceClose: `,"logprobs":null,"finish_reason":`,
	tail:        `,"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`,
	rest:        `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`,
	deltaOpen:   `"text":`,
	deltaEnd:    `,"logprobs":null,"finish_reason":`,
	more:        `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}`,
	last:        `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}`,
}

func (d *wording) prefix() string { return d.idPrefix }

func (d *wording) whole(b []byte, g *generation, choices []choice) []byte {
	g.x.orca()
	b = g.appendHead(b, d.object)
	for i := range choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendIndex(b, i), d.choiceOpen...)
		b = appendJSON(b, string(choices[i].text))
		b = append(b, d.choiceClose...)
		b = append(appendFinish(b, choices[i].finish), d.tail...)
	}
	b = append(b, `],"service_tier":null,"system_fingerprint":"`...)
	b = append(b, g.x.s.fingerprint...)
	b = append(b, `","usage":`...)
	b = d.appendWhole(b, g, g.usage())
	return append(b, d.rest...)
}

// begin sends nothing: the first event comes with the first token.
func (d *wording) begin(*events) bool { return true }

func (d *wording) delta(e *events, l *letter, finish engine.Finish) bool {
	b := append(appendIndex(d.start(e), l.choice), d.deltaOpen...)
	b = appendJSON(b, l.out.Text)
	b = appendFinish(append(b, d.deltaEnd...), finish)
	if finish == "" {
		b = append(b, d.more...)
	} else {
		b = append(b, d.last...)
	}
	b = appendRunning(append(b, ']'), e, l.choice, l.out.Index)
	return e.send(append(b, '}'))
}

// open sends the first event of each choice, which only names the role.
func (d *wording) open(e *events) bool {
	if d.role == "" {
		return true
	}
	for i := range e.g.reqs {
		b := append(appendIndex(d.start(e), i), d.role...)
		b = appendRunning(append(b, ']'), e, i, 0)
		if !e.send(append(b, d.roleEnd...)) {
			return false
		}
	}
	return true
}

// start begins a chunk in the stream's buffer.
func (d *wording) start(e *events) []byte {
	if e.prefix == nil {
		e.prefix = e.g.appendHead([]byte("data: "), d.chunk)
	}
	return append(e.buf[:0], e.prefix...)
}

// appendRunning adds the usage so far to an event, if that was asked for.
func appendRunning(b []byte, e *events, choice, completion int) []byte {
	if !e.running {
		return b
	}
	u := usage{prompt: e.g.reqs[choice].PromptTokens(), completion: completion}
	b = u.appendCounts(append(b, `,"usage":`...))
	return append(b, `,"completion_tokens_details":null}`...)
}

// end sends the usage event and the end mark.
func (d *wording) end(e *events) {
	if e.usage {
		b := append(d.start(e), `],"usage":`...)
		b = d.appendLast(b, e.g, e.g.usage())
		b = append(b, `,"system_fingerprint":"`...)
		b = append(b, e.g.x.s.fingerprint...)
		if !e.send(append(b, `"}`...)) {
			return
		}
	}
	e.write([]byte("data: [DONE]\n\n"))
}

func (d *wording) broken(e *events) {
	b := engineDead.append(append(e.buf[:0], "data: "...), false)
	if e.write(append(b, "\n\n"...)) {
		e.write([]byte("data: [DONE]\n\n"))
	}
}

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
func (d *wording) appendWhole(b []byte, g *generation, u usage) []byte {
	b = u.appendCounts(b)
	b = append(b, `,"prompt_tokens_details":`...)
	if g.x.s.cfg.NoDetails {
		return append(b, `null,"completion_tokens_details":null}`...)
	}
	b = append(b, `{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	b = append(b, `,"created_cache_tokens":`...)
	if d.created {
		b = strconv.AppendInt(b, int64(u.created), 10)
	} else {
		b = append(b, "null"...)
	}
	return append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
}

// appendLast writes the usage of a stream's last event. Keys without a value are
// left out there.
func (d *wording) appendLast(b []byte, g *generation, u usage) []byte {
	b = u.appendCounts(b)
	if g.x.s.cfg.NoDetails {
		return append(b, '}')
	}
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.cached), 10)
	if d.created {
		b = append(b, `,"created_cache_tokens":`...)
		b = strconv.AppendInt(b, int64(u.created), 10)
	}
	return append(b, `}}`...)
}
