package openai

import (
	"bytes"

	"github.com/warmlane/warmlane/filter/json"
)

// Usage is what an engine says a request took, in tokens; -1 is not said.
type Usage struct {
	Prompt, Completion int64
	Cached             int64 // of the prompt; vLLM says it with --enable-prompt-tokens-details
}

// Tail keeps the end of an answer, of which every dialect has the usage near:
// a whole answer after its choices, a stream in the last event before [DONE].
// The zero value is ready and takes its memory with the first byte.
type Tail struct {
	buf []byte
}

// TailBytes is how much of the end is kept at least, and looked at.
const TailBytes = 4 << 10

// Reset makes t ready for another answer and keeps its memory.
func (t *Tail) Reset() { t.buf = t.buf[:0] }

// Write takes the next bytes of the answer.
func (t *Tail) Write(chunk []byte) {
	if t.buf == nil {
		t.buf = make([]byte, 0, 2*TailBytes)
	}
	if len(chunk) > TailBytes {
		chunk = chunk[len(chunk)-TailBytes:]
	}
	if len(t.buf)+len(chunk) > cap(t.buf) {
		n := copy(t.buf, t.buf[len(t.buf)-TailBytes:])
		t.buf = t.buf[:n]
	}
	t.buf = append(t.buf, chunk...)
}

// Usage reads the last usage object of what was kept; ok is false if there is
// none with a number of prompt tokens.
func (t *Tail) Usage() (u Usage, ok bool) {
	for end := len(t.buf); ; {
		at := bytes.LastIndex(t.buf[:end], usageKey)
		if at < 0 {
			return Usage{}, false
		}
		if at == 0 || t.buf[at-1] != '\\' { // else it stands inside of a string
			if u, ok = usageOf(t.buf[at+len(usageKey):]); ok {
				return u, true
			}
		}
		end = at
	}
}

var usageKey = []byte(`"usage":`)

// usageOf reads the object that b begins with.
func usageOf(b []byte) (u Usage, ok bool) {
	b = bytes.TrimLeft(b, " \t\r\n")
	n := objectEnd(b)
	if n == 0 {
		return Usage{}, false
	}
	v, err := json.Parse(b[:n])
	if err != nil {
		return Usage{}, false
	}
	u = Usage{
		Prompt:     countIn(v, "prompt_tokens"),
		Completion: countIn(v, "completion_tokens"),
		Cached:     countIn(v.Get("prompt_tokens_details"), "cached_tokens"),
	}
	return u, u.Prompt >= 0
}

// objectEnd is the length of the object b begins with, 0 if it begins with
// none or with only a part of one.
func objectEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 {
			if i < len(b) && b[i] == '}' {
				return i + 1
			}
			return 0
		}
	}
	return 0
}

// maxTokenCount bounds what is believed of a count of tokens.
const maxTokenCount = 1 << 30

// countIn is a member that is a whole number of tokens, -1 if there is none.
func countIn(v json.Value, key string) int64 {
	raw := v.Get(key)
	if raw.Kind != json.Number {
		return -1
	}
	n := int64(0)
	for _, c := range raw.Raw {
		if !isDigit(c) || n > maxTokenCount {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
