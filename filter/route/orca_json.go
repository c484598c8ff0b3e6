package route

// json reads an object of numbers in which some values are such objects
// again. It takes what it can and counts as bad what it cannot, so it needs no
// more of the grammar than where values end.
func (p *reportParser) json(b []byte) {
	s := jsonScan{b: b}
	depth := 0
	for {
		switch c := s.next(); c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return
			}
		case ',':
		case '"':
			if !p.jsonMember(&s) {
				p.bad++
				return
			}
		default:
			p.bad++
			return
		}
	}
}

// jsonMember reads a name, and its value unless that is an object.
func (p *reportParser) jsonMember(s *jsonScan) bool {
	name, ok := s.str()
	if !ok || s.next() != ':' {
		return false
	}
	switch s.peek() {
	case 0:
		return false
	case '{':
		return true
	case '"':
		s.next()
		value, ok := s.str()
		p.number(name, value)
		return ok
	case '[':
		return s.skipList()
	}
	p.number(name, s.word())
	return true
}

type jsonScan struct {
	b  []byte
	at int
}

// peek is the next byte that is not white space, 0 at the end.
func (s *jsonScan) peek() byte {
	for ; s.at < len(s.b); s.at++ {
		if c := s.b[s.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func (s *jsonScan) next() byte {
	c := s.peek()
	if c != 0 {
		s.at++
	}
	return c
}

// str is what is left of a string after its opening quote, as written: no
// name or number of ours needs an escape.
func (s *jsonScan) str() ([]byte, bool) {
	from := s.at
	for ; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.b[from : s.at-1], true
		}
	}
	s.at = len(s.b)
	return nil, false
}

// word is a number or a bare word.
func (s *jsonScan) word() []byte {
	from := s.at
	for ; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return s.b[from:s.at]
		}
	}
	return s.b[from:]
}

// skipList passes over a list, whatever is in it.
func (s *jsonScan) skipList() bool {
	depth := 0
	for {
		switch s.next() {
		case 0:
			return false
		case '"':
			if _, ok := s.str(); !ok {
				return false
			}
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return true
			}
		}
	}
}
