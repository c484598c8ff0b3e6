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

// partMember takes a member of a part; its text has gone to the sink already.
func (s *Scanner) partMember(k valueKind, h uint64) {
	if k == kindNull || s.member == memberType && h == textType {
		return
	}
	s.part += pair(s.key, h)
}

func (s *Scanner) endPart() {
	if s.part == 0 {
		s.putMark(markText)
		return
	}
	s.req.OtherParts++
	s.putDigest(markPart, s.part)
}

func (s *Scanner) endMessage() {
	s.putDigest(markMessage, s.message)
	s.border()
}

// border ends a message or a prompt.
func (s *Scanner) border() {
	s.flush()
	s.sink.Border()
}
