package collect

import (
	"bytes"
	"errors"
)

var errLabels = errors.New("malformed labels")

// label is one name and value of a series. Both point into the text; the value
// has its escapes still.
type label struct {
	name, value []byte
	escaped     bool
}

// nextLabel cuts one label off b, which begins behind the opening brace or
// behind the label before. At the closing brace it returns ok false, and rest
// behind the brace.
func nextLabel(b []byte) (l label, rest []byte, ok bool, err error) {
	b = trimBlank(b)
	if len(b) > 0 && b[0] == '}' {
		return l, b[1:], false, nil
	}
	eq := bytes.IndexByte(b, '=')
	if eq <= 0 {
		return l, nil, false, errLabels
	}
	l.name = bytes.TrimRight(b[:eq], " \t")
	if nameLen(l.name) < len(l.name) {
		return l, nil, false, errLabels
	}
	b = trimBlank(b[eq+1:])
	if len(b) == 0 || b[0] != '"' {
		return l, nil, false, errLabels
	}
	end := closingQuote(b, &l.escaped)
	if end < 0 {
		return l, nil, false, errLabels
	}
	l.value = b[1:end]
	b = trimBlank(b[end+1:])
	if len(b) > 0 && b[0] == ',' {
		return l, b[1:], true, nil
	}
	if len(b) > 0 && b[0] == '}' {
		return l, b, true, nil
	}
	return l, nil, false, errLabels
}

// closingQuote returns where the string that begins at b[0] ends, or -1.
func closingQuote(b []byte, escaped *bool) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			*escaped = true
			i++
		case '"':
			return i
		}
	}
	return -1
}

func trimBlank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// text returns the value without escapes, as a string of its own.
func (l label) text() string {
	if !l.escaped {
		return string(l.value)
	}
	out := make([]byte, 0, len(l.value))
	for i := 0; i < len(l.value); i++ {
		c := l.value[i]
		if c == '\\' && i+1 < len(l.value) {
			i++
			switch c = l.value[i]; c {
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				out = append(out, '\\')
			}
		}
		out = append(out, c)
	}
	return string(out)
}
