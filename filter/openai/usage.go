package openai

// Usage is what an engine says a request took, in tokens; -1 is not said. An
// engine may say it several times, as running totals: the last word on each
// number counts.
type Usage struct {
	Prompt, Completion int64
	Cached             int64 // of the prompt; vLLM says it with --enable-prompt-tokens-details
}

var noUsage = Usage{-1, -1, -1}

// Has says whether the engine has said what the prompt took.
func (u *Usage) Has() bool { return u.Prompt >= 0 }

// maxTokenCount bounds what is believed of a count of tokens.
const maxTokenCount = 1 << 30

// Finish is why an engine stopped, over all dialects.
type Finish uint8

// The reasons. From Abort on the answer is not what was asked for; such a
// reason is not overruled by another choice's better one.
const (
	NoFinish   Finish = iota // not said
	Stop                     // the model was done
	Length                   // max_tokens
	ToolCalls                // the client is to call a tool
	OtherCause               // such as a content filter
	Abort                    // the engine gave up, as vLLM does when told to end
	Failure                  // the engine failed
)

var finishNames = [...]string{"", "stop", "length", "tool_calls", "other", "abort", "error"}

func (f Finish) String() string { return finishNames[f] }

// finishOf knows the words for a finish reason, a stop reason and an incomplete
// response's reason.
func finishOf(word []byte) Finish {
	switch string(word) {
	case "":
		return NoFinish
	case "stop", "end_turn", "stop_sequence":
		return Stop
	case "length", "max_tokens", "max_output_tokens":
		return Length
	case "tool_calls", "function_call", "tool_use":
		return ToolCalls
	case "abort", "cancelled":
		return Abort
	case "error", "failed":
		return Failure
	}
	return OtherCause
}

// statusOf knows the states of a response; an incomplete one gives its reason
// elsewhere.
func statusOf(word []byte) Finish {
	switch string(word) {
	case "completed":
		return Stop
	case "failed", "cancelled":
		return finishOf(word)
	}
	return NoFinish
}

// said is what one document says: an event's data or a whole answer.
type said struct {
	usage         Usage
	read, written int64 // Anthropic's: of the prompt, and not in usage.Prompt
	finish        Finish
	output        bool
	failed, ended bool
}

var nothingSaid = said{usage: noUsage, read: -1, written: -1}

// tell adds a document to what was said before it.
func (s *said) tell(f *Facts) {
	u := s.usage
	if u.Prompt >= 0 && (s.read >= 0 || s.written >= 0) {
		u.Prompt += max(s.read, 0) + max(s.written, 0)
	}
	if s.read >= 0 {
		u.Cached = s.read
	}
	keep(&f.Usage.Prompt, u.Prompt)
	keep(&f.Usage.Completion, u.Completion)
	keep(&f.Usage.Cached, u.Cached)
	if s.finish != NoFinish && (f.Finish < Abort || s.finish > f.Finish) {
		f.Finish = s.finish
	}
	f.Failed = f.Failed || s.failed
	f.Ended = f.Ended || s.ended
	if s.output && !f.Failed {
		f.Outputs++
	}
}

func keep(old *int64, count int64) {
	if count >= 0 {
		*old = count
	}
}
