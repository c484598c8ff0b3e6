package openai

const (
	// textBuffer is how much text is gathered before the sink gets it;
	// canonical runs of more than directRun bytes go there untouched.
	textBuffer = 2048
	directRun  = 256
	// slack is the free room a buffer has at least when bytes are added.
	slack = 64
)

// Scanner reads the body of one request at a time. Its memory does not depend
// on the body; it makes no garbage. The zero value is ready after Reset.
type Scanner struct {
	sink Sink
	ids  IDSink // the sink, if it takes ids too
	req  Request

	// JSON: where in the text the scanner is.
	state state
	mode  mode
	depth uint
	nest  [maxDepth/64 + 1]uint64 // a bit per level, 1 for an object
	seen  int64                   // bytes in earlier chunks
	at    int64                   // offset of the byte being looked at
	lit   literal                 // the literal being read
	num   number                  // the number being read
	esc   escape                  // the escape being read

	// Requests: what the value at this place is for.
	where    place
	member   member
	key      uint64 // sum of the member's key
	from, to int64  // where the string value at hand begins and ends in the body
	values   tree   // a value that counts by its digest only
	list     place  // what the list of parts belongs to: a message, or the body
	message  uint64 // sum of the members of the message but for its content
	item     item
	parts    place  // the list that the part is in
	part     uint64 // sum of the members of the part but for its text
	body     body
	prompt   prompt
	head     head

	outer      uint64 // part and parts of the part around the one at hand
	outerParts place

	upload upload

	word    gather // keys and values that count by their digest, if not taken at once
	textLen int
	text    [textBuffer]byte // canonical bytes the sink does not have yet
}

// Reset makes s ready for another request, whose prompt goes to sink. It
// resets the sink.
func (s *Scanner) Reset(kind Kind, sink Sink) {
	s.sink = sink
	s.ids = nil
	if kind == Completions || kind == Embeddings {
		s.ids, _ = sink.(IDSink)
	}
	s.req.reset(kind)
	s.state, s.mode, s.depth = atStart, modeKey, 0
	s.seen, s.at = 0, 0
	s.esc = escape{}
	s.where, s.member = atRoot, memberOther
	s.values.depth = 0
	s.body = body{}
	s.body.maxTokens, s.body.maxCompletion = -1, -1
	s.prompt = prompt{}
	s.head.clear(sink)
	s.upload.size = 0
	s.word.reset()
	s.textLen = 0
	sink.Reset()
}

func (r *Request) reset(kind Kind) {
	r.Kind = kind
	r.Model.clear()
	r.User.clear()
	r.Session.clear()
	r.Previous.clear()
	r.ModelAt, r.ModelEnd, r.OptionsEnd, r.BodyEnd = -1, -1, -1, -1
	r.Stream, r.StreamIncludeUsage = false, false
	r.MaxTokens, r.N = -1, 1
	r.Salt, r.Tools, r.Template, r.Head, r.Rest = 0, 0, 0, 0, 0
	r.PromptTokens, r.PromptBytes, r.HeadBytes, r.BodyBytes, r.AsideBytes = 0, 0, 0, 0, 0
	r.Prompts, r.OtherParts, r.Untold = 0, 0, false
	r.Malformed = Malformed{}
}

// Request returns what is known so far: all of it after Close.
func (s *Scanner) Request() *Request { return &s.req }

// Close ends the body and returns the verdict over it, which the Request holds
// as well. Close may be called once for each Reset.
func (s *Scanner) Close() Malformed {
	s.req.BodyBytes = s.seen
	if s.state != dead && s.state != atEnd {
		s.at = s.seen
		if s.state == atStart {
			s.fail(Empty)
		} else {
			s.fail(Truncated)
		}
	}
	if s.req.Malformed.Fault == NoFault {
		s.req.Malformed = s.prompt.verdict(s.req.Kind)
	}
	s.body.settle(&s.req)
	s.req.Prompts = s.prompt.parts
	s.req.Head, s.req.HeadBytes = s.head.sum(), s.head.bytes
	if s.body.previous != 0 {
		s.req.Head = pair(s.req.Head, s.body.previous)
	}
	s.req.AsideBytes += s.prompt.aside + s.head.bytes*max(s.prompt.parts, 1)
	return s.req.Malformed
}

// fail ends the scan: nothing after this byte can be trusted.
func (s *Scanner) fail(f Fault) {
	s.state = dead
	s.req.Malformed = Malformed{Fault: f, Offset: s.at}
}
