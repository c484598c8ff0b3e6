package openai

import "github.com/cespare/xxhash/v2"

const (
	// textBuffer is how much text with escapes is gathered before the sink
	// gets it; plain runs of more than directRun bytes go there
	// untouched. A name that is not too long is never such a run.
	textBuffer = 2048
	directRun  = maxName
	// slack is the free room a buffer has at least when bytes are added.
	slack = 64
)

// Scanner reads the body of one request at a time. Its memory does not depend
// on the body; it makes no garbage. The zero value is ready after Reset.
type Scanner struct {
	sink Sink
	req  Request

	// JSON: where in the text the scanner is.
	state state
	mode  mode
	depth int
	nest  [maxDepth/64 + 1]uint64 // a bit per level, 1 for an object
	seen  int64                   // bytes in earlier chunks
	at    int64                   // offset of the byte being looked at
	lit   literal                 // the literal being read
	num   number                  // the number being read
	esc   escape                  // the escape being read

	// Requests: what the value at this place is for.
	where   place
	member  member
	key     uint64 // hash of the member's key, if member is memberOther
	values  tree   // a value that counts by its digest only
	message uint64 // sum of the members of the message but for its content
	part    uint64 // sum of the members of the part but for its text
	body    body
	prompt  prompt

	word    gather // keys, and strings that count by their digest
	textLen int
	text    [textBuffer]byte // canonical bytes the sink does not have yet
}

// Reset makes s ready for another request, whose prompt goes to sink. It
// resets the sink.
func (s *Scanner) Reset(kind Kind, sink Sink) {
	s.sink = sink
	s.req.reset(kind)
	s.state, s.mode, s.depth = atStart, modeKey, 0
	s.seen, s.at = 0, 0
	s.esc = escape{}
	s.where, s.member = atRoot, memberOther
	s.values.depth = 0
	s.body = body{maxTokens: -1, maxCompletion: -1}
	s.prompt = prompt{}
	s.word.reset()
	s.textLen = 0
	sink.Reset()
}

func (r *Request) reset(kind Kind) {
	r.Kind = kind
	r.Model.clear()
	r.User.clear()
	r.Stream, r.StreamIncludeUsage = false, false
	r.MaxTokens, r.N = -1, 1
	r.Salt, r.Tools, r.Template, r.Rest = 0, 0, 0, 0
	r.PromptTokens, r.PromptBytes, r.BodyBytes, r.AsideBytes = 0, 0, 0, 0
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
	s.req.AsideBytes += s.prompt.aside
	return s.req.Malformed
}

// fail ends the scan: nothing after this byte can be trusted.
func (s *Scanner) fail(f Fault) {
	s.state = dead
	s.req.Malformed = Malformed{Fault: f, Offset: s.at}
}

// gather holds a short string, or feeds a long one to a hash.
type gather struct {
	buf     [maxName + slack]byte
	n       int
	size    int64 // bytes hashed
	spilled bool
	digest  xxhash.Digest
}

func (g *gather) reset() { g.n, g.size, g.spilled = 0, 0, false }

// spill makes room by hashing what is held.
func (g *gather) spill() {
	if !g.spilled {
		g.digest.Reset()
		g.spilled = true
	}
	_, _ = g.digest.Write(g.buf[:g.n]) // never fails
	g.size += int64(g.n)
	g.n = 0
}

// add appends b.
func (g *gather) add(b []byte) {
	if g.n+len(b) <= maxName {
		g.n += copy(g.buf[g.n:], b)
		return
	}
	g.spill()
	_, _ = g.digest.Write(b)
	g.size += int64(len(b))
}

// take returns what is held: all of the string if it is whole.
func (g *gather) take() (b []byte, whole bool) { return g.buf[:g.n], !g.spilled }

// length is the length of a whole string w, or else of what went to g.
func (g *gather) length(w []byte, whole bool) int64 {
	if whole {
		return int64(len(w))
	}
	return g.size + int64(g.n)
}

// sum is the hash of a whole string w, or else of what went to g.
func (g *gather) sum(w []byte, whole bool) uint64 {
	if whole {
		return xxhash.Sum64(w)
	}
	g.spill()
	return g.digest.Sum64()
}
