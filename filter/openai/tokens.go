package openai

import (
	"encoding/binary"
	"errors"
	"strconv"
)

// AppendTokens reads the answer of vLLM's /tokenize,
//
//	{"count":4,"max_model_len":4096,"tokens":[464,381,2586,466],"token_strs":null}
//
// and appends the token ids to dst. The answer is believed only if it is whole
// and count, if there, is the number of ids. On an error dst is as it was. Of
// other members no more is looked at than where they end.
func AppendTokens(dst []uint32, answer []byte) ([]uint32, error) {
	r := tokenReader{b: answer, ids: dst, count: -1}
	if err := r.read(); err != nil {
		return dst, err
	}
	if n := len(r.ids) - len(dst); r.count >= 0 && r.count != int64(n) {
		return dst, errors.New("tokenize: count says " + strconv.FormatInt(r.count, 10) + ", there are " + strconv.Itoa(n) + " tokens")
	}
	return r.ids, nil
}

// tokenReader walks the members of the answer once, from b[at:].
type tokenReader struct {
	b     []byte
	at    int
	ids   []uint32
	found bool // the tokens have been read
	count int64
}

func (r *tokenReader) fault(what string) error {
	return errors.New("tokenize: byte " + strconv.Itoa(r.at) + ": " + what)
}

// peek is the next byte that is no white space, 0 at the end.
func (r *tokenReader) peek() byte {
	for ; r.at < len(r.b); r.at++ {
		if c := r.b[r.at]; !isSpace(c) {
			return c
		}
	}
	return 0
}

// take steps over c if it is the next byte.
func (r *tokenReader) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

func (r *tokenReader) read() error {
	if !r.take('{') {
		return r.fault("not an object")
	}
	for !r.take('}') {
		if err := r.member(); err != nil {
			return err
		}
		if !r.take(',') && r.peek() != '}' {
			return r.fault("neither a comma nor the end of the object")
		}
	}
	if r.peek() != 0 || r.at < len(r.b) {
		return r.fault("text after the end")
	}
	if !r.found {
		return r.fault("no tokens")
	}
	return nil
}

func (r *tokenReader) member() error {
	if r.peek() != '"' {
		return r.fault("not a key")
	}
	from := r.at
	r.skipString()
	key := r.b[from:min(r.at, len(r.b))]
	if !r.take(':') {
		return r.fault("no colon after a key")
	}
	switch string(key) {
	case `"tokens"`:
		return r.tokens()
	case `"count"`:
		return r.counted()
	}
	return r.skipValue()
}

// counted reads the number of tokens.
func (r *tokenReader) counted() error {
	r.peek()
	from, n := r.at, int64(0)
	for ; r.at < len(r.b) && isDigit(r.b[r.at]) && n <= maxTokenCount; r.at++ {
		n = n*10 + int64(r.b[r.at]-'0')
	}
	if r.at == from {
		return r.fault("count is no number")
	}
	r.count = n
	return nil
}

// tokens reads the ids. Of two lists the second would be the one that counts;
// no engine sends two.
func (r *tokenReader) tokens() error {
	if r.found {
		return r.fault("tokens for the second time")
	}
	if !r.take('[') {
		return r.fault("tokens is no array")
	}
	r.found = true
	if r.take(']') {
		return nil
	}
	for {
		r.bulk()
		if err := r.token(); err != nil {
			return err
		}
		if r.take(']') {
			return nil
		}
		if !r.take(',') {
			return r.fault("neither a comma nor the end of the tokens")
		}
	}
}

// bulk reads ids as engines write them and stops before whatever is not so.
func (r *tokenReader) bulk() {
	for {
		var words [1024]byte
		written, read := tokenIDs(words[:], r.b[r.at:])
		if read == 0 {
			return
		}
		for w := words[:written]; len(w) >= 4; w = w[4:] {
			r.ids = append(r.ids, binary.LittleEndian.Uint32(w))
		}
		r.at += read
	}
}

// token reads one id of any form that JSON allows for it.
func (r *tokenReader) token() error {
	r.peek()
	from, n := r.at, uint64(0)
	for ; r.at < len(r.b) && isDigit(r.b[r.at]); r.at++ {
		if n = n*10 + uint64(r.b[r.at]-'0'); n > 1<<32-1 {
			return r.fault("token id is too large")
		}
	}
	if r.at == from || r.at > from+1 && r.b[from] == '0' {
		return r.fault("not a token id")
	}
	r.ids = append(r.ids, uint32(n))
	return nil
}

// skipString steps over the string that begins here, or to the end.
func (r *tokenReader) skipString() {
	for r.at++; r.at < len(r.b); r.at++ {
		switch r.b[r.at] {
		case '\\':
			r.at++
		case '"':
			r.at++
			return
		}
	}
}

// skipValue steps over a value by its brackets and strings.
func (r *tokenReader) skipValue() error {
	from := r.at
	for depth := 0; r.at < len(r.b); {
		switch c := r.b[r.at]; {
		case c == '"':
			r.skipString()
			continue
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}' || c == ',') && depth == 0:
			if r.at == from {
				return r.fault("no value")
			}
			return nil
		case c == ']' || c == '}':
			depth--
		}
		r.at++
	}
	return r.fault("a value that does not end")
}
