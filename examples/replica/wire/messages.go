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
	if p.Get("type").String() != "text" {
		return engine.Part{Opaque: []byte(compact(p))}
	}
	text := p.Get("text")
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
		f := c.Get("function")
		b = append(b, "\n<tool_call>"...)
		b = append(b, f.Get("name").String()...)
		b = append(b, ' ')
		b = append(b, f.Get("arguments").String()...)
		return true
	})
	return string(b)
}
