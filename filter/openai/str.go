package openai

// mode is what the bytes of a string are for.
type mode uint8

const (
	modeKey   mode = iota // a key: gathered in word
	modeValue             // counts by its digest: gathered in word
	modeText              // canonical bytes: gathered in text
)

// escape is an escape sequence cut by the end of a chunk, or a surrogate that
// waits for its pair.
type escape struct {
	unit int32 // the hexadecimal digits read
	read uint8 // how many
	high int32 // a high surrogate, or 0
}

const replacement = 0xFFFD

// str reads from chunk[i:], which lies inside of a string, and returns where
// the string, an odd escape, or the chunk ends.
func (s *Scanner) str(chunk []byte, i int) int {
	if s.esc.high != 0 && i < len(chunk) {
		if chunk[i] == '\\' {
			return s.stop('\\', i)
		}
		s.flushHigh()
	}
	for {
		if n := canonicalRun(chunk[i:]); n > 0 {
			s.put(chunk[i : i+n])
			i += n
		}
		if i == len(chunk) {
			return i
		}
		if c := chunk[i]; c != '\\' {
			return s.stop(c, i)
		}
		written, read := respell(s.room(), chunk[i:])
		if read == 0 {
			return s.stop('\\', i)
		}
		s.grow(written)
		i += read
	}
}

// stop takes the byte at i, which is not canonical text, and returns
// where to go on.
func (s *Scanner) stop(c byte, i int) int {
	s.at = s.seen + int64(i)
	switch c {
	case '"':
		s.endString()
	case '\\':
		s.state = inEscape
	default:
		s.fail(Syntax)
	}
	return i + 1
}

// put takes bytes in canonical spelling. A long run of text goes to the sink as
// it is.
func (s *Scanner) put(b []byte) {
	switch {
	case s.mode != modeText:
		s.word.add(b)
	case len(b) > directRun:
		s.flush()
		s.req.PromptBytes += int64(len(b))
		s.sink.Text(b)
	default:
		if len(s.text)-s.textLen < len(b) {
			s.flush()
		}
		s.textLen += copy(s.text[s.textLen:], b)
	}
}

// room returns the free part of the buffer of the running string, at least
// slack bytes.
func (s *Scanner) room() []byte {
	if s.mode == modeText {
		if len(s.text)-s.textLen < slack {
			s.flush()
		}
		return s.text[s.textLen:]
	}
	if len(s.word.buf)-s.word.n < slack {
		s.word.spill()
	}
	return s.word.buf[s.word.n:]
}

// grow says that n bytes of room were written.
func (s *Scanner) grow(n int) {
	if s.mode == modeText {
		s.textLen += n
	} else {
		s.word.n += n
	}
}

func (s *Scanner) put1(c byte) {
	s.room()[0] = c
	s.grow(1)
}

// putEscaped takes the character after a backslash.
func (s *Scanner) putEscaped(c byte) {
	if c != '/' {
		s.put1('\\')
	}
	s.put1(c)
}

func (s *Scanner) putUnit(u int32) {
	s.grow(putUnit((*[3]byte)(s.room()), u))
}

// flush gives the sink what text was gathered.
func (s *Scanner) flush() {
	if s.textLen > 0 {
		s.req.PromptBytes += int64(s.textLen)
		s.sink.Text(s.text[:s.textLen])
		if s.ids != nil && s.prompt.firstIDs() {
			s.ids.IDs(s.text[:s.textLen])
		}
		s.textLen = 0
	}
}

// escapeByte reads an escape byte by byte: one that is cut, or that has to do
// with surrogates.
func (s *Scanner) escapeByte(c byte) {
	switch {
	case s.state == inHex:
		s.hexByte(c)
	case c == 'u':
		s.state = inHex
		s.esc.unit, s.esc.read = 0, 0
	case c == '/', escaped[c] != 0:
		s.flushHigh()
		s.putEscaped(c)
		s.state = inString
	default:
		s.fail(Syntax)
	}
}

func (s *Scanner) hexByte(c byte) {
	v := hexValue[c]
	if v > 0xF {
		s.fail(Syntax)
		return
	}
	s.esc.unit = s.esc.unit<<4 | int32(v)
	s.esc.read++
	if s.esc.read == 4 {
		s.state = inString
		s.codeUnit(s.esc.unit)
	}
}

// codeUnit takes a UTF-16 code unit; a surrogate without its pair is U+FFFD.
func (s *Scanner) codeUnit(u int32) {
	if s.esc.high != 0 && isLow(u) {
		putPair((*[4]byte)(s.room()), s.esc.high, u)
		s.grow(4)
		s.esc.high = 0
		return
	}
	s.flushHigh()
	switch {
	case isLow(u):
		s.putUnit(replacement)
	case isSurrogate(u):
		s.esc.high = u
	default:
		s.putUnit(u)
	}
}

// flushHigh gives up waiting for the pair of a high surrogate.
func (s *Scanner) flushHigh() {
	if s.esc.high != 0 {
		s.esc.high = 0
		s.putUnit(replacement)
	}
}
