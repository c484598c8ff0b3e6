package engine

import (
	"slices"
	"unicode/utf8"
)

// Token is the id of a piece of text.
type Token = uint32

// Ids below firstText are special. The tokenizer gives text ids in
// [firstText, Vocabulary).
const (
	tokenPad   Token = 0 // never made by the tokenizer
	tokenStart Token = 1 // <|im_start|>: a message begins
	tokenEnd   Token = 2 // <|im_end|>: a message or an answer ends
	firstText  Token = 256

	// Vocabulary is the number of token ids. Ids at or above it are refused.
	Vocabulary = 131072

	// maxPiece is the longest piece in bytes. With pieces that start at spaces it
	// makes English come to about four bytes per token.
	maxPiece = 6
)

// Tokenize appends the tokens of text to dst. A piece starts at each space or
// line end that follows something else and has at most six bytes; characters are
// not cut. So the tokens of a+b are those of a followed by those of b whenever b
// begins with a space, as every piece of an answer does: an answer that a client
// sends back is the same run of tokens the engine generated.
//
// Ids are a hash of the piece. Two pieces may share an id, which is harmless
// here: a block of sixteen equal ids from different text does not happen.
func Tokenize(dst []Token, text string) []Token {
	dst = slices.Grow(dst, len(text)/5)
	for len(text) > 0 {
		n := pieceLen(text)
		dst = append(dst, pieceID(text[:n]))
		text = text[n:]
	}
	return dst
}

// Pieces returns the pieces of text in the order of their tokens.
func Pieces(text string) []string {
	var out []string
	for len(text) > 0 {
		n := pieceLen(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// pieceLen is the length of the first piece of a text that is not empty.
func pieceLen(text string) int {
	n := 0
	for n < len(text) {
		c := text[n]
		if n > 0 && isSpace(c) && !isSpace(text[n-1]) {
			return n
		}
		size := 1
		if c >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(text[n:])
		}
		if n+size > maxPiece {
			return n
		}
		n += size
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// pieceID packs the bytes of a piece and its length into a word and mixes it.
func pieceID(piece string) Token {
	x := uint64(len(piece))
	for i := 0; i < len(piece); i++ {
		x = x<<8 | uint64(piece[i])
	}
	return firstText + Token(mix(x)%uint64(Vocabulary-firstText))
}

// mix is the finalizer of splitmix64: every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
