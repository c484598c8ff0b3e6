package json

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

func escaped(b []byte) bool { return bytes.IndexByte(b, '\\') >= 0 }

var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendUnescaped appends what the inside of a checked string stands for.
func appendUnescaped(dst, b []byte) []byte {
	for len(b) > 0 {
		switch {
		case b[0] != '\\':
			dst, b = append(dst, b[0]), b[1:]
		case b[1] != 'u':
			dst, b = append(dst, simple[b[1]]), b[2:]
		default:
			r, size := surrogates(b)
			dst, b = utf8.AppendRune(dst, r), b[size:]
		}
	}
	return dst
}

// surrogates reads one \u escape, or two that make a pair.
func surrogates(b []byte) (r rune, size int) {
	r, _ = hex4(b[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		low, _ := hex4(b[8:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
