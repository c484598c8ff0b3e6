package wire

import (
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// responses is the dialect of /v1/responses: an answer is a response with one
// item, and a stream has events with names and numbers.
type responses struct{}

func (s *Server) responses(x *exchange) { x.generate(responses{}, x.fields(decodeResponses)) }

// decodeResponses reads the body of a response. previous_response_id is taken
// for the session; no conversation is kept, so it brings no messages.
func decodeResponses(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.limit, d.copies, d.options = 0, 1, false // not of this path
	d.count(&d.limit, "max_output_tokens", last(root, "max_output_tokens"))
	d.string(&d.session, "previous_response_id", last(root, "previous_response_id"))
	if v := last(root, "instructions"); v.Type != gjson.Null {
		var text string
		d.string(&text, "instructions", v)
		d.messages = []engine.Message{{Role: "system", Parts: []engine.Part{{Text: text}}}}
	}
	d.readInput(last(root, "input"))
	return d.done()
}

// last is the value of a key in an object. Of two equal keys the last one counts.
func last(object gjson.Result, key string) (value gjson.Result) {
	object.ForEach(func(k, v gjson.Result) bool {
		if k.String() == key {
			value = v
		}
		return true
	})
	return value
}

// readInput takes over a text or a list of items.
func (d *decoder) readInput(v gjson.Result) {
	switch {
	case !v.Exists():
		d.missing("input")
	case v.Type == gjson.String:
		d.messages = append(d.messages, engine.Message{Role: "user", Parts: []engine.Part{{Text: v.Str}}})
	case v.IsArray():
		i := 0
		v.ForEach(func(_, item gjson.Result) bool {
			d.messages = append(d.messages, d.item("input."+strconv.Itoa(i), item))
			i++
			return len(d.problems) == 0 && i < maxMessages
		})
		if i == 0 || i >= maxMessages {
			d.wrong("list_length", "input", "List should have 1 to "+strconv.Itoa(maxMessages-1)+" items", v)
		}
	default:
		d.wrong("string_type", "input", "Input should be a valid string", v)
		d.wrong("list_type", "input", "Input should be a valid list", v)
	}
}

// item reads a message, a call of a tool or what the tool had to say; whatever
// else there is stands for itself.
func (d *decoder) item(loc string, v gjson.Result) engine.Message {
	switch kind := v.Get("type").String(); kind {
	case "", "message":
		return d.message(loc, v)
	case "function_call":
		return engine.Message{Role: "assistant", Extra: toolCall(v)}
	case "function_call_output":
		return engine.Message{Role: "tool", Parts: d.content(loc+".output", v.Get("output"))}
	default:
		return engine.Message{Role: kind, Parts: []engine.Part{{Opaque: []byte(compact(v))}}}
	}
}

func (responses) prefix() string { return "resp_" }

func (r responses) whole(b []byte, g *generation, choices []choice) []byte {
	return r.appendResponse(b, g, string(choices[0].text), choices[0].finish)
}

// inProgress is the finish of a response that has not ended.
const inProgress engine.Finish = "in_progress"

// appendResponse writes the response, with what the request said of it.
func (r responses) appendResponse(b []byte, g *generation, text string, finish engine.Finish) []byte {
	echo := func(b []byte, key, absent string) []byte {
		v := last(g.call.root, key)
		b = append(append(append(b, `,"`...), key...), `":`...)
		if v.Type == gjson.Null {
			return append(b, absent...)
		}
		return append(b, compact(v)...)
	}
	b = appendJSON(append(b, `{"id":`...), g.id)
	b = strconv.AppendInt(append(b, `,"created_at":`...), g.created, 10)
	b = append(b, `,"incomplete_details":`...)
	if finish == engine.FinishLength {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, `null`...)
	}
	b = echo(echo(b, "instructions", "null"), "metadata", "null")
	b = appendJSON(append(b, `,"model":`...), g.model)
	b = append(b, `,"object":"response","output":[`...)
	if finish != inProgress {
		b = r.appendItem(b, g, text, "completed")
	}
	b = echo(echo(append(b, ']'), "parallel_tool_calls", "true"), "temperature", "1.0")
	choice := `"none"`
	if g.call.tools != "" {
		choice = `"auto"`
	}
	b = echo(echo(echo(b, "tool_choice", choice), "tools", "[]"), "top_p", "1.0")
	b = append(b, `,"background":false,"max_output_tokens":`...)
	b = strconv.AppendInt(b, int64(g.room()), 10)
	b = echo(echo(b, "max_tool_calls", "null"), "previous_response_id", "null")
	b = echo(echo(b, "prompt", "null"), "reasoning", "null")
	b = append(b, `,"service_tier":"auto","status":"`...)
	b = append(append(b, status(finish)...), '"')
	b = append(echo(b, "text", "null"), `,"top_logprobs":null,"truncation":"disabled","usage":`...)
	if finish == inProgress {
		b = append(b, `null`...)
	} else {
		b = r.appendUsage(b, g.usage())
	}
	b = append(echo(b, "user", "null"), `,"presence_penalty":0.0,"frequency_penalty":0.0,"kv_transfer_params":null,`...)
	return append(b, `"ec_transfer_params":null,"input_messages":null,"output_messages":null}`...)
}

// room is how many tokens an answer may have.
func (g *generation) room() int {
	if g.call.limit > 0 {
		return g.call.limit
	}
	return g.x.s.cfg.Engine.MaxModelLen - g.x.entry.PromptTokens
}

// status is what a response says of its end. One that was aborted counts as
// completed, as in vLLM.
func status(finish engine.Finish) string {
	switch finish {
	case inProgress:
		return "in_progress"
	case engine.FinishLength:
		return "incomplete"
	}
	return "completed"
}

// appendItem writes the message that is the answer; without a status of
// completed it is empty.
func (r responses) appendItem(b []byte, g *generation, text, status string) []byte {
	b = appendJSON(append(b, `{"id":`...), r.item(g))
	b = append(b, `,"content":[`...)
	if status == "completed" && text != "" {
		b = appendPart(b, text, "null")
	}
	return append(b, `],"role":"assistant","status":"`+status+`","type":"message","phase":null}`...)
}

func (responses) item(g *generation) string { return "msg_" + g.id[len("resp_"):] }

func appendPart(b []byte, text, logprobs string) []byte {
	b = appendJSON(append(b, `{"annotations":[],"text":`...), text)
	return append(b, `,"type":"output_text","logprobs":`+logprobs+`}`...)
}

// appendUsage writes the usage. What was cached is always told, as in vLLM.
func (responses) appendUsage(b []byte, u usage) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
	b = strconv.AppendInt(append(b, `,"cache_write_tokens":`...), int64(u.created), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},"output_tokens":`...), int64(u.completion), 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":0,"tool_output_tokens":0,"output_tokens_per_turn":[],"tool_output_tokens_per_turn":[]}`...)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(u.prompt+u.completion), 10)
	return append(b, '}')
}

// begin tells that the response exists; vLLM does so before it computes anything.
func (r responses) begin(e *events) bool {
	for _, name := range []string{"response.created", "response.in_progress"} {
		b := append(e.named(name), `{"response":`...)
		if !r.send(e, r.appendResponse(b, e.g, "", inProgress), name) {
			return false
		}
	}
	return true
}

// send ends an event with its number, from 0, and its name.
func (responses) send(e *events, b []byte, name string) bool {
	b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(e.sent), 10)
	return e.send(append(b, `,"type":"`+name+`"}`...))
}

func (r responses) delta(e *events, l *letter, finish engine.Finish) bool {
	e.finished = finish
	e.text = append(e.text, l.out.Text...)
	const name = "response.output_text.delta"
	b := appendJSON(append(e.named(name), `{"content_index":0,"delta":`...), l.out.Text)
	b = appendJSON(append(b, `,"item_id":`...), r.item(e.g))
	return r.send(e, append(b, `,"logprobs":[],"output_index":0`...), name)
}

// open begins the item and its only part.
func (r responses) open(e *events) bool {
	const item, part = "response.output_item.added", "response.content_part.added"
	b := r.appendItem(append(e.named(item), `{"item":`...), e.g, "", "in_progress")
	if !r.send(e, append(b, `,"output_index":0`...), item) {
		return false
	}
	b = appendJSON(append(e.named(part), `{"content_index":0,"item_id":`...), r.item(e.g))
	b = appendPart(append(b, `,"output_index":0,"part":`...), "", "[]")
	return r.send(e, b, part)
}

func (r responses) end(e *events) {
	const done, part, item, completed = "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"
	text := string(e.text)
	b := appendJSON(append(e.named(done), `{"content_index":0,"item_id":`...), r.item(e.g))
	b = append(b, `,"logprobs":[],"output_index":0`...)
	b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(e.sent), 10)
	b = appendJSON(append(b, `,"text":`...), text)
	if !e.send(append(b, `,"type":"`+done+`"}`...)) {
		return
	}
	b = appendJSON(append(e.named(part), `{"content_index":0,"item_id":`...), r.item(e.g))
	b = appendPart(append(b, `,"output_index":0,"part":`...), text, "null")
	if !r.send(e, b, part) {
		return
	}
	b = r.appendItem(append(e.named(item), `{"item":`...), e.g, text, "completed")
	if !r.send(e, append(b, `,"output_index":0`...), item) {
		return
	}
	b = r.appendResponse(append(e.named(completed), `{"response":`...), e.g, text, e.finished)
	r.send(e, b, completed)
}

// broken cuts the connection: vLLM has no event for an engine that dies.
func (responses) broken(e *events) { e.g.x.reset() }
