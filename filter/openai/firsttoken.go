package openai

import (
	"bytes"

	"github.com/warmlane/warmlane/filter/json"
)

// FirstToken watches an event stream for the first event that carries output:
// text, reasoning, a refusal or a tool call. Comments, the role-only delta,
// empty text, usage and errors are not output. It looks at passing chunks,
// however they are cut, and never holds one back. The zero value is ready.
//
// Events are framed as the HTML standard's server-sent events (section
// 9.2.6): lines end with CR, LF or CRLF, a blank line ends the event, the
// space after the colon is optional.
type FirstToken struct {
	line []byte // the unfinished line, up to maxLine bytes of it
	data []byte // the data of the unfinished event
	seen bool
	cr   bool // the last byte was a CR, so an LF now ends nothing
}

// maxLine bounds what is kept of an event before the first token. A longer
// event holds more than a role or a usage and is taken for output.
const maxLine = 16 << 10

// Reset makes f ready for another stream and keeps its memory.
func (f *FirstToken) Reset() {
	*f = FirstToken{line: f.line[:0], data: f.data[:0]}
}

// Write looks at the next bytes of the stream and reports whether a token
// has been seen by their end. Once it has, Write returns at once.
func (f *FirstToken) Write(chunk []byte) bool {
	for !f.seen && len(chunk) > 0 {
		if f.cr && chunk[0] == '\n' {
			chunk = chunk[1:]
		}
		f.cr = false
		i := bytes.IndexAny(chunk, "\r\n")
		if i < 0 {
			f.keep(chunk)
			break
		}
		f.keep(chunk[:i])
		f.cr = chunk[i] == '\r'
		chunk = chunk[i+1:]
		f.endLine()
	}
	return f.seen
}

func (f *FirstToken) keep(part []byte) {
	if len(f.line)+len(f.data)+len(part) > maxLine {
		f.seen = true
		return
	}
	f.line = append(f.line, part...)
}

func (f *FirstToken) endLine() {
	line := f.line
	f.line = f.line[:0]
	if len(line) == 0 {
		f.seen = f.seen || carriesOutput(f.data)
		f.data = f.data[:0]
		return
	}
	value, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	if len(f.data) > 0 {
		f.data = append(f.data, '\n')
	}
	f.data = append(f.data, bytes.TrimPrefix(value, []byte(" "))...)
}

// outputKeys are the members of a delta or choice that hold output.
var outputKeys = []string{"content", "text", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"}

func carriesOutput(data []byte) bool {
	event, err := json.Parse(data)
	if err != nil {
		return false
	}
	found := false
	event.Get("choices").Each(func(_, choice json.Value) bool {
		found = hasOutput(choice.Get("delta")) || hasOutput(choice)
		return !found
	})
	return found
}

func hasOutput(v json.Value) bool {
	for _, key := range outputKeys {
		if !v.Get(key).Empty() {
			return true
		}
	}
	return false
}
