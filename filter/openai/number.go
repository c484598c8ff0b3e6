package openai

import "math"

// number is a number as far as it was read.
type number struct {
	value    uint64 // its digits before the point, if they fit
	over     bool   // they do not
	negative bool
	fraction bool
	power    bool
}

// fits is the bound under which one more decimal digit does not overflow.
const fits = math.MaxInt64/10 - 1

func isDigit(c byte) bool { return c-'0' < 10 }

func (s *Scanner) beginNumber() {
	s.state = numFirst
	s.mode = modeValue
	s.num = number{}
	s.word.reset()
}

// number reads from chunk[i:], which lies inside of a number, and returns
// where the number or the chunk ends.
func (s *Scanner) number(chunk []byte, i int) int {
	from := i
	for ; i < len(chunk); i++ {
		if s.state == numInt && isDigit(chunk[i]) {
			s.num.shift(chunk[i])
			continue
		}
		next := s.num.next(s.state, chunk[i])
		if next == wantNext || next == dead {
			s.at = s.seen + int64(i)
			s.word.add(chunk[from:i])
			s.state = next
			if next == dead {
				s.fail(Syntax)
				return i
			}
			s.endNumber()
			return i
		}
		s.state = next
	}
	s.word.add(chunk[from:i])
	return i
}

// next takes one more byte of a number that is in a state and returns the
// state after it: wantNext if the number ended before c, dead if c is wrong.
func (n *number) next(st state, c byte) state {
	switch {
	case isDigit(c):
		return n.digit(st, c)
	case st == numFirst && c == '-':
		n.negative = true
		return numMinus
	case st == numFirst, st == numMinus, st == numDot, st == numSign:
		return dead
	case st == numExp:
		if c == '+' || c == '-' {
			return numSign
		}
		return dead
	case c == '.' && (st == numZero || st == numInt):
		n.fraction = true
		return numDot
	case c|0x20 == 'e' && st != numPower:
		n.power = true
		return numExp
	}
	return wantNext
}

func (n *number) digit(st state, c byte) state {
	switch st {
	case numFirst, numMinus, numInt:
		n.shift(c)
		if st != numInt && c == '0' {
			return numZero
		}
		return numInt
	case numZero: // 01 is two numbers, and so a fault
		return wantNext
	case numDot, numFrac:
		return numFrac
	}
	return numPower
}

func (n *number) shift(c byte) {
	if n.value > fits {
		n.over = true
		return
	}
	n.value = n.value*10 + uint64(c-'0')
}

// count returns the number as a count: MaxInt64 if it may be larger than
// that, -1 if it is negative. A fraction is cut off.
func (n *number) count() int64 {
	switch {
	case n.negative && (n.value > 0 || n.fraction || n.power):
		return -1
	case n.over || n.power:
		return math.MaxInt64
	}
	return int64(n.value)
}

// token returns the number as a token id.
func (n *number) token() (id uint32, ok bool) {
	ok = !n.negative && !n.over && !n.fraction && !n.power && n.value <= math.MaxUint32
	return uint32(n.value), ok
}
