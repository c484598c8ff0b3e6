package openai

// state is where in the JSON text the scanner is.
type state uint8

const (
	atMark       state = iota // after the first byte of a byte order mark
	atMark2                   // after the second
	atStart                   // before the body's value and its mark
	wantRoot                  // after the mark
	wantValue                 // after a colon or a comma
	wantFirst                 // after [: a value or ]
	wantFirstKey              // after {: a key or }
	wantKey                   // after a comma
	wantColon                 // after a key
	wantNext                  // after a value: a comma or the end of its container
	atEnd                     // after the body's value

	inString // all states before this one are between tokens
	inEscape // after a backslash
	inHex    // after a backslash and u
	inLiteral

	numFirst // all states from here on are inside of a number
	numMinus
	numZero
	numInt
	numDot
	numFrac
	numExp
	numSign
	numPower
	dead
)

// maxDepth is how deep values nest; encoding/json has the same bound.
const maxDepth = 10000

// Write scans the next bytes of the body. The scanner keeps no reference to
// them. After a fault it only counts.
func (s *Scanner) Write(chunk []byte) {
	if s.upload.size > 0 {
		s.form(chunk)
		return
	}
	i := 0
	for i < len(chunk) && s.state != dead {
		switch {
		case s.state < inString:
			i = s.tokens(chunk, i)
		case s.state == inString:
			i = s.str(chunk, i)
		case s.state > inLiteral:
			i = s.number(chunk, i)
		case s.state == inLiteral:
			i = s.literal(chunk, i)
		default:
			s.at = s.seen + int64(i)
			s.escapeByte(chunk[i])
			i++
		}
	}
	s.seen += int64(len(chunk))
}

// tokens reads from chunk[i:] what lies between strings, numbers and literals,
// and returns where to go on when one of these begins or the chunk ends. The
// tokens of every member of every object pass here, so the common ones are
// handled on the spot.
func (s *Scanner) tokens(chunk []byte, i int) int {
	for i < len(chunk) && s.state < inString {
		c := chunk[i]
		if c <= ' ' && isSpace(c) && s.state > atMark2 {
			i++
			continue
		}
		s.at = s.seen + int64(i)
		switch {
		case c == '"':
			i = s.quote(chunk, i+1)
			continue
		case s.state == wantNext:
			s.next(c)
		case s.state == wantColon && c == ':':
			s.state = wantValue
		case c == '{' && (s.state == wantValue || s.state == wantFirst):
			s.push(true)
		case s.state == wantValue && isDigit(c):
			if n := s.bulkIDs(chunk[i:]); n > 0 {
				i += n
				continue
			}
			s.beginNumber()
			return i
		default:
			if !s.token(c) {
				return i
			}
		}
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// token takes a byte that is no white space. It returns false if a number
// begins, which c is part of.
func (s *Scanner) token(c byte) (taken bool) {
	switch {
	case s.state == wantFirstKey && c == '}':
		s.pop(true)
	case s.state == wantFirst && c == ']':
		s.pop(false)
	case s.state == wantValue || s.state == wantFirst:
		return s.beginValue(c)
	case s.state <= wantRoot || s.state == atEnd:
		s.outside(c)
	default:
		s.fail(Syntax)
	}
	return true
}

// next takes the byte after a value that is in a container.
func (s *Scanner) next(c byte) {
	switch {
	case c == ',':
		s.state = wantValue
		if s.inObject() {
			s.state = wantKey
		}
	case c == '}' || c == ']':
		s.pop(c == '}')
	default:
		s.fail(Syntax)
	}
}

// outside takes a byte outside of the body's value.
func (s *Scanner) outside(c byte) {
	switch {
	case s.state == atStart && c == 0xEF && s.at == 0:
		s.state = atMark
	case s.state == atMark && c == 0xBB:
		s.state = atMark2
	case s.state == atMark2 && c == 0xBF:
		s.state = wantRoot
	case s.state == atMark || s.state == atMark2 || s.state == atEnd:
		s.fail(Syntax)
	case c == '{':
		s.push(true)
	case c == '[' || c == '"' || c == '-' || isDigit(c) || c == 't' || c == 'f' || c == 'n':
		s.fail(NotObject)
	default:
		s.fail(Syntax)
	}
}

// quote reads a string that begins with chunk[i:], where its quote is behind,
// and returns where to go on. A short word that chunk has all of is taken at
// once, and the colon after a key with it.
func (s *Scanner) quote(chunk []byte, i int) int {
	switch s.state {
	case wantKey, wantFirstKey:
		s.mode = modeKey
	case wantValue, wantFirst:
		s.mode = s.beginString()
		if s.mode == modeText {
			s.state = inString
			return s.str(chunk, i)
		}
	default:
		s.token('"')
		return i
	}
	n, sum := quoted(chunk[i:])
	if n < 0 {
		s.word.reset()
		s.state = inString
		return i
	}
	w := chunk[i : i+n]
	i += n + 1
	if s.mode == modeValue {
		s.to = s.at + 1 + int64(n)
		s.endValue(w, int64(n), sum)
		return i
	}
	s.endKey(w, sum)
	if i < len(chunk) && chunk[i] == ':' {
		s.state = wantValue
		i++
	}
	return i
}

// beginValue takes the first byte of a value, but of a number.
func (s *Scanner) beginValue(c byte) (taken bool) {
	switch c {
	case '[':
		s.push(false)
	case 't', 'f', 'n':
		s.lit = literalOf(c)
		s.state = inLiteral
	default:
		s.beginNumber()
		return false
	}
	return true
}

func (s *Scanner) inObject() bool {
	return s.nest[s.depth/64]>>(s.depth%64)&1 != 0
}

func (s *Scanner) push(object bool) {
	if s.depth == maxDepth {
		s.fail(TooDeep)
		return
	}
	s.depth++
	bit := uint64(1) << (s.depth % 64)
	if object {
		s.nest[s.depth/64] |= bit
		s.state = wantFirstKey
	} else {
		s.nest[s.depth/64] &^= bit
		s.state = wantFirst
	}
	s.open(object)
}

func (s *Scanner) pop(object bool) {
	if object != s.inObject() {
		s.fail(Syntax)
		return
	}
	s.depth--
	s.state = wantNext
	if s.depth == 0 {
		s.state = atEnd
	}
	s.close()
}

// literal is a word of JSON and how much of it was read.
type literal struct {
	word string
	read int
	kind valueKind
}

func literalOf(first byte) literal {
	switch first {
	case 't':
		return literal{word: "true", read: 1, kind: kindTrue}
	case 'f':
		return literal{word: "false", read: 1, kind: kindFalse}
	}
	return literal{word: "null", read: 1, kind: kindNull}
}

// literal reads from chunk[i:], which lies inside of a literal, and returns
// where the literal or the chunk ends.
func (s *Scanner) literal(chunk []byte, i int) int {
	for ; i < len(chunk) && s.lit.read < len(s.lit.word); i++ {
		if chunk[i] != s.lit.word[s.lit.read] {
			s.at = s.seen + int64(i)
			s.fail(Syntax)
			return i
		}
		s.lit.read++
	}
	if s.lit.read == len(s.lit.word) {
		s.at = s.seen + int64(i)
		s.state = wantNext
		s.value(s.lit.kind, uint64(s.lit.kind))
	}
	return i
}
