package openai

import "encoding/binary"

// form is how a list of prompts is built.
type form uint8

const (
	formNone    form = iota
	formStrings      // ["one", "two"]
	formIDs          // [15, 27, 99]
	formLists        // [[15, 27], [99]]
)

// prompt is what is known of messages, prompt, input or documents, whichever the
// dialect has.
type prompt struct {
	present bool
	form    form
	parts   int64     // prompts in the list so far
	aside   int64     // bytes of strings in its messages, content aside
	shape   Malformed // the first thing that is not as the API says
}

// verdict judges the prompt of a body that is JSON.
func (p *prompt) verdict(k Kind) Malformed {
	if k != Other && !p.present {
		return Malformed{Fault: NoPrompt}
	}
	return p.shape
}

func (p *prompt) misshaped(at int64) {
	if p.shape.Fault == NoFault {
		p.shape = Malformed{Fault: PromptShape, Offset: at}
	}
}

// take reports whether the list may go on with an element of form f.
func (p *prompt) take(f form, at int64) bool {
	if p.form == formNone {
		p.form = f
	}
	if p.form != f {
		p.misshaped(at)
	}
	return p.form == f
}

// firstIDs says whether what is being read are ids of the first prompt. Its
// mark is what the text of a second one begins with.
func (p *prompt) firstIDs() bool {
	return p.form == formIDs || p.form == formLists && p.parts == 1
}

// newPrompt begins a prompt, instead of an earlier one if the body has two.
// It returns true.
func (s *Scanner) newPrompt() bool {
	if s.prompt.present || s.prompt.parts > 0 || s.req.PromptBytes > 0 {
		s.sink.Reset()
	}
	s.textLen = 0
	s.req.PromptBytes, s.req.PromptTokens, s.req.OtherParts = 0, 0, 0
	s.prompt = prompt{}
	s.prompt.present = true
	return true
}

// notAPrompt takes a prompt that is null or of a wrong kind.
func (s *Scanner) notAPrompt(k valueKind) {
	s.newPrompt()
	if k == kindNull {
		s.prompt.present = false
		return
	}
	s.prompt.misshaped(s.at)
}

// openPrompt enters a container in a list of prompts.
func (s *Scanner) openPrompt(object bool) (place, bool) {
	switch kind := s.req.Kind; {
	case !object:
		return inIDs, kind != Rerank && s.prompt.take(formLists, s.at) && s.separate()
	case kind == Rerank:
		s.part, s.parts = 0, inPrompt
		return inPart, s.prompt.take(formStrings, s.at) && s.separate()
	case kind == Embeddings && s.prompt.form == formNone: // a conversation
		return s.beginMessage(), true
	}
	return 0, false
}

// separate begins one of several prompts. It returns true.
func (s *Scanner) separate() bool {
	if s.prompt.parts > 0 {
		s.putMark(markText)
	}
	s.prompt.parts++
	return true
}

// putToken takes the number just read as the next token id.
func (s *Scanner) putToken() {
	id, ok := s.num.token()
	if !ok {
		s.prompt.misshaped(s.at)
		return
	}
	s.req.PromptTokens++
	s.mode = modeText
	binary.LittleEndian.PutUint32(s.room(), id)
	s.grow(4)
}

// bulkIDs takes the token ids that b begins with, if the scanner is in a list
// of them, and returns how many bytes that were: each id with its comma.
func (s *Scanner) bulkIDs(b []byte) int {
	if s.values.depth > 0 || s.where != inIDs && (s.where != inPrompt || s.prompt.form != formIDs) {
		return 0
	}
	s.mode = modeText
	total := 0
	for {
		written, read := tokenIDs(s.room(), b[total:])
		if read == 0 {
			return total
		}
		s.grow(written)
		s.req.PromptTokens += int64(written / 4)
		total += read
	}
}

// endPrompts ends the list of prompts; if it was one prompt, that too.
func (s *Scanner) endPrompts() {
	if s.prompt.form == formIDs {
		s.border()
	}
}
