package openai

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// The runs of an answer: how many bytes go by until one must be looked at.

// textRun is how far b, which begins inside of a string, has neither a quote
// nor a backslash nor a control character.
func textRun(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if marks := special(binary.LittleEndian.Uint64(b[n:])); marks != 0 {
			return n + bits.TrailingZeros64(marks)>>3
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// bareRun is how far b, which begins outside of strings, has neither a quote
// nor a bracket nor a control character. It may stop early.
func bareRun(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		// Of all bytes only brackets, Y, y, _ and DEL become 0x7F by these bits.
		bracket := ((x | 0x26*ones) ^ 0x7F*ones) - ones
		control := (x ^ 0x02*ones) - 0x21*ones
		if marks := (bracket | control) &^ x & high; marks != 0 {
			return n + bits.TrailingZeros64(marks)>>3
		}
	}
	return n
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// lineRun is how far b has no line break.
func lineRun(b []byte) int {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		b = b[:n]
	}
	if n := bytes.IndexByte(b, '\r'); n >= 0 {
		return n
	}
	return len(b)
}
