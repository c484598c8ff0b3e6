package openai

import "strconv"

// Fault is a kind of malformed body. Its String is a metric label.
type Fault uint8

// The faults. Those after NotObject leave the JSON itself in order.
const (
	NoFault     Fault = iota
	Empty             // no body, or white space only
	Truncated         // the body ends inside a value
	Syntax            // not JSON
	TooDeep           // more than 10,000 levels of nesting
	NotObject         // the body is another JSON value
	NoPrompt          // messages or prompt is absent or null
	PromptShape       // messages or prompt is not built as the API says
)

var faultWords = [...]string{"none", "empty", "truncated", "syntax", "too_deep", "not_object", "no_prompt", "prompt_shape"}

// String returns one word in lower case.
func (f Fault) String() string {
	if int(f) < len(faultWords) {
		return faultWords[f]
	}
	return "unknown"
}

// Malformed is the verdict over a body: what is wrong and at which byte of the
// body. The zero value says that nothing is.
type Malformed struct {
	Fault  Fault
	Offset int64
}

// Error makes a Malformed usable as an error.
func (m Malformed) Error() string {
	return "request body: " + m.Fault.String() + " at byte " + strconv.FormatInt(m.Offset, 10)
}
