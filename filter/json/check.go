package json

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// check returns the end of the value that begins at i.
func check(b []byte, i, depth int) (end int, err error) {
	if i >= len(b) {
		return i, fault(i, "a value is missing")
	}
	switch c := b[i]; {
	case c == '{' || c == '[':
		if depth == maxDepth {
			return i, fault(i, "nested too deep")
		}
		return checkMembers(b, i, depth+1, c == '{')
	case c == '"':
		return checkString(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return checkNumber(b, i)
	}
	for _, word := range [...]string{"null", "true", "false"} {
		if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
			return end, nil
		}
	}
	return i, fault(i, "no value begins here")
}

func checkMembers(b []byte, i, depth int, object bool) (end int, err error) {
	closing := byte(']')
	if object {
		closing = '}'
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1, nil
	}
	for {
		if object {
			if i, err = checkKey(b, i); err != nil {
				return i, err
			}
		}
		if i, err = check(b, i, depth); err != nil {
			return i, err
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == closing:
			return i + 1, nil
		case i >= len(b) || b[i] != ',':
			return i, fault(i, "',' or the end is missing")
		}
		i = skipSpace(b, i+1)
	}
}

// checkKey returns where the member's value begins.
func checkKey(b []byte, i int) (begin int, err error) {
	if i >= len(b) || b[i] != '"' {
		return i, fault(i, "a key is missing")
	}
	if i, err = checkString(b, i); err != nil {
		return i, err
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return i, fault(i, "':' is missing")
	}
	return skipSpace(b, i+1), nil
}

func checkString(b []byte, i int) (end int, err error) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ':
			return i, fault(i, "a control character in a string")
		case c == '\\':
			if i, err = checkEscape(b, i); err != nil {
				return i, err
			}
		}
	}
	return i, fault(i, "a string has no end")
}

// checkEscape returns the last byte of the escape that begins at i.
func checkEscape(b []byte, i int) (last int, err error) {
	if i+1 >= len(b) {
		return i, fault(i, "a string has no end")
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		if _, ok := hex4(b[i+2:]); ok {
			return i + 5, nil
		}
	}
	return i, fault(i, "not an escape")
}

func checkNumber(b []byte, i int) (end int, err error) {
	if b[i] == '-' {
		i++
	}
	first := i
	if i = digits(b, i); i == first || b[first] == '0' && i > first+1 {
		return i, fault(i, "not a number")
	}
	if i < len(b) && b[i] == '.' {
		after := i + 1
		if i = digits(b, after); i == after {
			return i, fault(i, "a digit is missing")
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		after := i
		if i = digits(b, after); i == after {
			return i, fault(i, "a digit is missing")
		}
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// skip returns the end of the checked value that begins at i.
func skip(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\n', '\t', '\r':
			continue
		default:
			for i+1 < len(b) && plain(b[i+1]) {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// plain is a byte within a number or a literal.
func plain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '.' || c == '+' || c == '-' || c == 'E'
}
