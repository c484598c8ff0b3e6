package state

import "strconv"

// Path is where control answers requests for state.
const Path = "/v1/state"

// MaxDoubts bounds the replicas that one request casts doubt on.
const MaxDoubts = 64

// Request is what a poll asks for. Epoch and Gen say what the asker holds; 0
// and 0 ask for the whole. To and Page, if Page is not 0, ask for a later page
// of the answer that leads from Gen to To. Pools are the pools wanted, none
// for all.
//
// Doubts are the slots of replicas whose KV index keeps being wrong, by the
// numbers of Epoch: control should read it anew. At most MaxDoubts are sent.
type Request struct {
	Epoch, Gen, To uint64
	Page           uint32
	Pools          []string
	Doubts         []uint16
}

// Path returns the request as path and query:
// /v1/state?epoch=E&gen=G[&to=T&page=N][&pool=NAME]...[&doubt=SLOT]...
func (q *Request) Path() string {
	b := append(make([]byte, 0, 128), Path...)
	b = append(b, "?epoch="...)
	b = strconv.AppendUint(b, q.Epoch, 10)
	b = append(b, "&gen="...)
	b = strconv.AppendUint(b, q.Gen, 10)
	if q.Page > 0 {
		b = append(b, "&to="...)
		b = strconv.AppendUint(b, q.To, 10)
		b = append(b, "&page="...)
		b = strconv.AppendUint(b, uint64(q.Page), 10)
	}
	for _, pool := range q.Pools {
		b = append(b, "&pool="...)
		b = appendEscaped(b, pool)
	}
	for _, slot := range q.Doubts[:min(len(q.Doubts), MaxDoubts)] {
		b = append(b, "&doubt="...)
		b = strconv.AppendUint(b, uint64(slot), 10)
	}
	return string(b)
}

// appendEscaped percent-encodes all but the characters that never need it.
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; unreserved(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
