package wire

import (
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// readMessages takes over a list of messages.
func (d *decoder) readMessages(list gjson.Result) {
	if !list.IsArray() {
		d.wrong("list_type", "messages", "Input should be a valid list", list)
		return
	}
	i := 0
	list.ForEach(func(_, m gjson.Result) bool {
		d.messages = append(d.messages, d.message("messages."+strconv.Itoa(i), m))
		i++
		return len(d.problems) == 0 && i < maxMessages
	})
	if i == 0 || i >= maxMessages {
		d.wrong("list_length", "messages", "List should have 1 to "+strconv.Itoa(maxMessages-1)+" items", list)
	}
}

// message reads one turn. Content may be text, a list of parts, null or absent.
func (d *decoder) message(loc string, m gjson.Result) (out engine.Message) {
	if !m.IsObject() {
		d.wrong("dict_type", loc, "Input should be a valid dictionary", m)
		return out
	}
	var role, content, calls gjson.Result
	m.ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "role":
			role = v
		case "content":
			content = v
		case "tool_calls":
			calls = v
		}
		return true
	})
	if role.Type == gjson.Null {
		d.wrong("missing", loc+".role", "Field required", m)
	}
	d.string(&out.Role, loc+".role", role)
	out.Parts = d.content(loc+".content", content)
	out.Extra = toolCalls(calls)
	return out
}

func (d *decoder) content(loc string, v gjson.Result) (parts []engine.Part) {
	switch {
	case v.Type == gjson.Null:
	case v.Type == gjson.String:
		parts = []engine.Part{{Text: v.Str}}
	case v.IsArray():
		v.ForEach(func(_, p gjson.Result) bool {
			parts = append(parts, d.part(loc+"."+strconv.Itoa(len(parts)), p))
			return len(d.problems) == 0
		})
	default:
		d.wrong("string_type", loc, "Input should be a valid string", v)
	}
	return parts
}

// part reads a piece of content; whatever is not text stands for itself.
func (d *decoder) part(loc string, p gjson.Result) (out engine.Part) {
	if p.Type == gjson.String {
		return engine.Part{Text: p.Str}
	}
	if !p.IsObject() {
		d.wrong("dict_type", loc, "Input should be a valid dictionary", p)
		return out
	}
	text := p.Get("text")
	switch p.Get("type").String() {
	case "text", "input_text", "output_text":
	case "thinking":
		return engine.Part{Text: p.Get("thinking").String()}
	case "tool_use":
		return engine.Part{Text: toolCall(p)}
	case "tool_result":
		return engine.Part{Text: said(p.Get("content"))}
	default:
		return engine.Part{Opaque: []byte(compact(p))}
	}
	if text.Type == gjson.Null {
		d.wrong("missing", loc+".text", "Field required", p)
	}
	d.string(&out.Text, loc+".text", text)
	return out
}

// toolCalls prints the calls of an assistant turn as a template would: names and
// arguments, not the ids, which no model sees.
func toolCalls(calls gjson.Result) string {
	var b []byte
	calls.ForEach(func(_, c gjson.Result) bool {
		b = append(b, toolCall(c.Get("function"))...)
		return true
	})
	return string(b)
}

// toolCall prints one call, which has arguments or, with Anthropic, input.
func toolCall(f gjson.Result) string {
	arguments := f.Get("arguments").String()
	if input := f.Get("input"); input.Exists() {
		arguments = compact(input)
	}
	return "\n<tool_call>" + f.Get("name").String() + " " + arguments
}

// said is what a tool had to say: a text or a list of blocks, of which those
// without text stand as they are.
func said(v gjson.Result) string {
	if !v.IsArray() {
		return v.String()
	}
	var b []byte
	v.ForEach(func(_, p gjson.Result) bool {
		if text := p.Get("text"); text.Type == gjson.String {
			b = append(b, text.Str...)
		} else {
			b = append(b, compact(p)...)
		}
		return true
	})
	return string(b)
}
