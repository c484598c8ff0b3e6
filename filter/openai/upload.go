package openai

import "bytes"

// maxBoundary is how long a boundary may be (RFC 2046, section 5.1.1).
const maxBoundary = 70

// Boundary returns the boundary that a content-type of multipart/form-data names,
// as a part of it; nil if it is another type or names none of 1 to 70 bytes.
func Boundary(contentType []byte) []byte {
	kind, params, _ := bytes.Cut(contentType, []byte(";"))
	if !bytes.EqualFold(bytes.TrimSpace(kind), []byte("multipart/form-data")) {
		return nil
	}
	for len(params) > 0 {
		var key, value []byte
		if key, value, params = nextParam(params); bytes.EqualFold(key, []byte("boundary")) {
			if len(value) == 0 || len(value) > maxBoundary {
				return nil
			}
			return value
		}
	}
	return nil
}

// nextParam reads the first of key=value; key="value"; ... and returns what is
// behind it. Escapes in a quoted value stay as they are.
func nextParam(b []byte) (key, value, rest []byte) {
	b = bytes.TrimLeft(b, "; \t")
	n := bytes.IndexAny(b, "=;")
	switch {
	case n < 0:
		return nil, nil, nil
	case b[n] == ';':
		return nil, nil, b[n:]
	}
	key, b = bytes.TrimSpace(b[:n]), bytes.TrimLeft(b[n+1:], " \t")
	if len(b) == 0 || b[0] != '"' {
		value, rest, _ = bytes.Cut(b, []byte(";"))
		return key, bytes.TrimSpace(value), rest
	}
	n = 1
	for n < len(b) && b[n] != '"' {
		if b[n] == '\\' {
			n++
		}
		n++
	}
	return key, b[1:min(n, len(b))], b[min(n+1, len(b)):]
}

// upload is a body of multipart/form-data as far as it was read:
//
//	--BOUNDARY CRLF headers CRLF content CRLF --BOUNDARY ... CRLF --BOUNDARY--
type upload struct {
	state   uploadState
	mark    [4 + maxBoundary]byte // CRLF --BOUNDARY
	size    int                   // of the mark; 0 = the body is JSON
	matched int                   // how much of the mark was read
	field   member                // what the content is for
}

type uploadState uint8

const (
	inField  uploadState = iota // in the content of a part, or before the first one
	atMarked                    // after the mark
	atDash                      // after the mark and a dash
	inPad                       // in the rest of the mark's line
	inHeader                    // in a line of a part's head
	atFormEnd
)

// ResetForm makes s ready for a body of multipart/form-data, such as the
// recordings that /v1/audio/transcriptions takes, with a boundary of 1 to 70
// bytes, none of them a line end. What comes out is a Request of kind Other with the fields model, user
// and stream. It resets the sink, which gets nothing.
func (s *Scanner) ResetForm(boundary []byte, sink Sink) {
	s.Reset(Other, sink)
	u := &s.upload
	u.size = copy(u.mark[:], "\r\n--")
	u.size += copy(u.mark[u.size:], boundary)
	u.state, u.field, u.matched = inField, memberOther, 2 // the first mark has no line before it
}

// form scans the next bytes of a form.
func (s *Scanner) form(chunk []byte) {
	u := &s.upload
	for i := 0; i < len(chunk) && u.state != atFormEnd; {
		s.state = wantNext // neither at the start nor at the end
		switch u.state {
		case inField:
			i = s.content(chunk, i)
		case inHeader:
			i = s.headerBytes(chunk, i)
		default:
			s.markByte(chunk[i])
			i++
		}
	}
	if u.state == atFormEnd {
		s.state = atEnd
	}
	s.seen += int64(len(chunk))
}

// markByte takes a byte after a mark: --  ends the form, a line end the mark.
func (s *Scanner) markByte(c byte) {
	u := &s.upload
	switch {
	case c == '\n':
		u.state, u.field = inHeader, memberOther
		s.word.reset()
	case c == '-' && u.state == atMarked:
		u.state = atDash
	case c == '-' && u.state == atDash:
		u.state = atFormEnd
	default:
		u.state = inPad
	}
}

// headerBytes reads from chunk[i:], which lies in a line of a part's head, and
// returns where the line or the chunk ends.
func (s *Scanner) headerBytes(chunk []byte, i int) int {
	n := bytes.IndexByte(chunk[i:], '\n')
	if n < 0 {
		s.word.add(chunk[i:])
		return len(chunk)
	}
	s.word.add(chunk[i : i+n])
	w, size, _ := s.word.take()
	s.word.reset()
	if size == 0 || size == 1 && w[0] == '\r' {
		s.upload.state, s.from = inField, s.seen+int64(i+n+1)
	} else if f := fieldOf(w); f != memberOther {
		s.upload.field = f
	}
	return i + n + 1
}

// fieldOf finds the field in a header of a part. w is nil if the header is too
// long to be one of ours.
func fieldOf(w []byte) member {
	name, params, _ := bytes.Cut(w, []byte(":"))
	if !bytes.EqualFold(bytes.TrimSpace(name), []byte("content-disposition")) {
		return memberOther
	}
	_, params, _ = bytes.Cut(params, []byte(";"))
	field := memberOther
	for len(params) > 0 {
		var key, value []byte
		switch key, value, params = nextParam(params); {
		case len(key) >= 8 && bytes.EqualFold(key[:8], []byte("filename")):
			return memberOther // a file, whatever its name
		case !bytes.EqualFold(key, []byte("name")):
		case string(value) == "model":
			field = memberModel
		case string(value) == "user":
			field = memberUser
		case string(value) == "stream":
			field = memberStream
		}
	}
	return field
}

// content reads from chunk[i:], which lies in the content of a part, and returns
// where the mark after it or the chunk ends. A mark has no line end but at its
// beginning, so after a byte that does not fit nothing but a new mark can begin.
func (s *Scanner) content(chunk []byte, i int) int {
	u := &s.upload
	for i < len(chunk) {
		switch {
		case u.matched == 0:
			n := bytes.IndexByte(chunk[i:], '\r')
			if n < 0 {
				s.fieldBytes(chunk[i:])
				return len(chunk)
			}
			s.fieldBytes(chunk[i : i+n])
			i += n + 1
			u.matched = 1
		case chunk[i] != u.mark[u.matched]:
			s.fieldBytes(u.mark[:u.matched])
			u.matched = 0
		default:
			i++
			if u.matched++; u.matched == u.size {
				s.endField(s.seen + int64(i-u.size))
				return i
			}
		}
	}
	return i
}

func (s *Scanner) fieldBytes(b []byte) {
	if s.upload.field != memberOther {
		s.word.add(b)
	}
}

// endField takes the content of a part, which ends at an offset. Of two fields of
// one name the last counts.
func (s *Scanner) endField(at int64) {
	u, r := &s.upload, &s.req
	w, size, _ := s.word.take()
	switch u.field {
	case memberModel:
		r.Model.put(w, size)
		r.ModelAt, r.ModelEnd = s.from, at
	case memberUser:
		r.User.put(w, size)
	case memberStream:
		r.Stream = isTrue(w)
	}
	u.state, u.matched = atMarked, 0
}

// isTrue knows the words that engines take for true in a form.
func isTrue(w []byte) bool {
	for _, word := range [...]string{"true", "1", "on", "yes", "t", "y"} {
		if bytes.EqualFold(w, []byte(word)) {
			return true
		}
	}
	return false
}
