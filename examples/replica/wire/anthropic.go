package wire

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// anthropic is the dialect of /v1/messages. vLLM makes a chat completion of the
// request and a message of the answer, whose id it keeps.
type anthropic struct{}

func (s *Server) messages(x *exchange) {
	x.anthropic = true
	x.generate(anthropic{}, x.fields(decodeMessages))
}

// countTokens tells how long the prompt of a message is.
func (s *Server) countTokens(x *exchange) {
	x.anthropic = true
	if !x.read() {
		return
	}
	c, refusal := x.decode(decodeCount)
	if refusal == nil {
		_, _, refusal = s.resolve(c.model)
	}
	if refusal != nil {
		x.refuse(refusal)
		return
	}
	x.entry.PromptTokens = len(engine.Chat(nil, c.tools, c.messages, true))
	n := strconv.Itoa(x.entry.PromptTokens)
	x.json(http.StatusOK, []byte(`{"input_tokens":`+n+`,"context_management":{"original_input_tokens":`+n+`}}`))
}

// decodeMessages reads the body of a message.
func decodeMessages(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.readConversation()
	if !last(root, "max_tokens").Exists() {
		d.missing("max_tokens")
	}
	return d.done()
}

// decodeCount reads the body of /v1/messages/count_tokens.
func decodeCount(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.readConversation()
	return d.done()
}

// readConversation reads what both paths have: the model, system, the messages.
func (d *decoder) readConversation() {
	d.copies, d.options = 1, false // not of these paths
	if !last(d.root, "model").Exists() {
		d.missing("model")
	}
	if system := d.content("system", last(d.root, "system")); len(system) > 0 {
		d.messages = []engine.Message{{Role: "system", Parts: system}}
	}
	first := len(d.messages)
	if !d.chat.Exists() {
		d.missing("messages")
		return
	}
	d.readMessages(d.chat)
	for i, m := range d.messages[first:] {
		d.speaker(i, m.Role)
	}
}

// speaker refuses roles that a message cannot have.
func (d *decoder) speaker(i int, role string) {
	const roles = "'user', 'assistant' or 'system'"
	if len(d.problems) > 0 || slices.Contains([]string{"user", "assistant", "system"}, role) {
		return
	}
	d.problems = append(d.problems, problem{kind: "literal_error", loc: "body.messages." + strconv.Itoa(i) + ".role",
		msg: "Input should be " + roles, input: "'" + clip(role) + "'", tail: `, 'ctx': {'expected': "` + roles + `"}`})
}

// appendAnthropic writes an error as Anthropic's clients know it.
func (e *apiError) appendAnthropic(b []byte, kind string) []byte {
	b = appendJSON(append(b, `{"type":"error","error":{"type":`...), kind)
	b = appendJSON(append(b, `,"message":`...), e.message)
	return append(b, `}}`...)
}

func (anthropic) prefix() string { return chatDialect.idPrefix }

func (a anthropic) whole(b []byte, g *generation, choices []choice) []byte {
	b = appendJSON(append(b, `{"id":`...), g.id)
	b = append(b, `,"type":"message","role":"assistant","content":[{"type":"text","text":`...)
	b = appendJSON(b, string(choices[0].text))
	b = appendJSON(append(b, `}],"model":`...), g.model)
	if reason := stopReason(choices[0].finish); reason != "null" {
		b = append(b, `,"stop_reason":`+reason...)
	}
	b = a.appendUsage(append(b, `,"usage":`...), g)
	return append(b, '}')
}

// stopReason is Anthropic's word, as JSON, for why an answer ended; it has none
// for one that was aborted.
func stopReason(f engine.Finish) string {
	switch f {
	case engine.FinishLength:
		return `"max_tokens"`
	case engine.FinishStop:
		return `"end_turn"`
	}
	return "null"
}

// appendUsage writes the usage, in which the three counts of input add up to the
// prompt. Without details all of it is input.
func (anthropic) appendUsage(b []byte, g *generation) []byte {
	u := g.usage()
	if g.x.s.cfg.NoDetails {
		return append(appendInOut(b, u.prompt, u.completion), '}')
	}
	b = appendInOut(b, max(u.prompt-u.cached-u.created, 0), u.completion)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(u.created), 10)
	b = strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(u.cached), 10)
	return append(b, '}')
}

func appendInOut(b []byte, in, out int) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(in), 10)
	return strconv.AppendInt(append(b, `,"output_tokens":`...), int64(out), 10)
}

// begin sends nothing: the first event comes with the first token.
func (anthropic) begin(*events) bool { return true }

func (anthropic) delta(e *events, l *letter, finish engine.Finish) bool {
	e.finished = finish
	if l.out.Text == "" {
		return true // the token that ends an answer
	}
	b := append(e.named("content_block_delta"), `{"type":"content_block_delta","delta":{"type":"text_delta","text":`...)
	return e.send(append(appendJSON(b, l.out.Text), `},"index":0}`...))
}

// open begins the message and its only block. What was cached is not told yet.
func (anthropic) open(e *events) bool {
	b := append(e.named("message_start"), `{"type":"message_start","message":{"id":`...)
	b = append(appendJSON(b, e.g.id), `,"type":"message","role":"assistant","content":[],"model":`...)
	b = append(appendJSON(b, e.g.model), `,"stop_reason":null,"stop_sequence":null,"usage":`...)
	if !e.send(append(appendInOut(b, e.g.x.entry.PromptTokens, 0), `}}}`...)) {
		return false
	}
	return e.send(append(e.named("content_block_start"),
		`{"type":"content_block_start","content_block":{"type":"text","text":""},"index":0}`...))
}

func (a anthropic) end(e *events) {
	if !e.send(append(e.named("content_block_stop"), `{"type":"content_block_stop","index":0}`...)) {
		return
	}
	b := append(e.named("message_delta"), `{"type":"message_delta","delta":{"stop_reason":`...)
	b = append(append(b, stopReason(e.finished)...), `,"stop_sequence":null},"usage":`...)
	if !e.send(append(a.appendUsage(b, e.g), '}')) {
		return
	}
	e.send(append(e.named("message_stop"), `{"type":"message_stop"}`...))
}

// broken sends Anthropic's error event, the last one then.
func (anthropic) broken(e *events) {
	b := engineDead.appendAnthropic(e.named("error"), "internal_error")
	e.write(append(b, "\n\n"...))
}
