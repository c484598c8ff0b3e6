package openai

import "encoding/binary"

// Marks in the canonical bytes; none occurs in UTF-8.
const (
	markText    = 0xFF // end of a part of type text; between prompts
	markPart    = 0xFE // end of another part
	markMessage = 0xFD // end of a message
)

// textType is the digest of the type that needs no mention.
var textType = stringDigest("text")

// Digests of what a client of /v1/responses may say or leave out.
var (
	messageType    = stringDigest("message")
	referenceType  = stringDigest("item_reference")
	inputTextType  = stringDigest("input_text")
	outputTextType = stringDigest("output_text")
	userRole       = pair(sumOf([]byte("role")), stringDigest("user"))
)

// streamed stands for the value of a member that is in the canonical bytes.
const streamed = uint64(kindString)

func stringDigest(v string) uint64 {
	return scalar(kindString, sumOf([]byte(v)))
}

func (s *Scanner) putMark(mark byte) {
	s.mode = modeText
	s.put1(mark)
}

func (s *Scanner) putDigest(mark byte, sum uint64) {
	s.mode = modeText
	dst := s.room()
	dst[0] = mark
	binary.LittleEndian.PutUint64(dst[1:], sum)
	s.grow(9)
}

// openContent enters the list of parts that a message has.
func (s *Scanner) openContent() (place, bool) {
	s.list = inMessage
	return inContent, s.member == memberContent || s.member == memberStreamed && s.streams(&s.message)
}

// streams notes that the member at hand streams into the canonical bytes and that
// it is another than usual. It returns true.
func (s *Scanner) streams(sum *uint64) bool {
	*sum += pair(s.key, streamed)
	return true
}

// messageMember takes a member of a message; its content has gone to the sink
// already.
func (s *Scanner) messageMember(k valueKind, h uint64) {
	switch {
	case k == kindNull, s.member == memberIgnored:
	case s.member == memberID:
		s.item.id = pair(s.key, h)
	case s.member == memberType && h == messageType:
	case s.member == memberType && h == referenceType:
		s.item.reference = true
		fallthrough
	default:
		s.message += pair(s.key, h)
	}
}

// partMember takes a member of a part; its text has gone to the sink already.
func (s *Scanner) partMember(k valueKind, h uint64) {
	switch {
	case k == kindNull, s.member == memberIgnored:
	case s.member == memberType && s.isTextType(h):
	default:
		s.part += pair(s.key, h)
	}
}

func (s *Scanner) isTextType(h uint64) bool {
	return h == textType || s.req.Kind == Responses && (h == inputTextType || h == outputTextType)
}

func (s *Scanner) endPart() {
	switch {
	case s.head.dropped:
		s.head.dropped = false
	case s.part == 0:
		s.putMark(markText)
	default:
		s.otherPart()
	}
}

func (s *Scanner) otherPart() {
	if !s.head.open {
		s.req.OtherParts++
	}
	s.putDigest(markPart, s.part)
}

// item is what is known of an item of /v1/responses but for its digest.
type item struct {
	id        uint64 // of the item, which counts only if there is nothing else ...
	reference bool   // ... or if it is what the item is about
}

func (s *Scanner) beginMessage() place {
	s.message, s.item = 0, item{}
	return inMessage
}

// openResult enters the list of parts that a part has: what a tool has to say.
// Parts go no deeper than that; the rest counts by its digest.
func (s *Scanner) openResult() (place, bool) {
	if s.member != memberStreamed || s.parts == inResult {
		return 0, false
	}
	s.streams(&s.part)
	s.outer, s.outerParts = s.part, s.parts
	return inResult, true
}

func (s *Scanner) closeResult() {
	s.part, s.parts = s.outer, s.outerParts
	s.where = inPart
}

// closePart leaves a part for the list it is in. A document is one of several
// prompts.
func (s *Scanner) closePart() {
	s.where = s.parts
	switch {
	case s.where != inPrompt:
		s.endPart()
		return
	case s.part != 0:
		s.otherPart()
	}
	s.border()
}

func (s *Scanner) endMessage() {
	if s.item.reference || s.message == 0 {
		s.message += s.item.id
	}
	s.putDigest(markMessage, s.message)
	s.border()
}

// border ends a message or a prompt.
func (s *Scanner) border() {
	s.flush()
	s.sink.Border()
}
