package openai

import "bytes"

// refrain is how the events of a stream repeat: all that carry one text and
// nothing else are the same bytes but for the text. An event that is so spelled
// need not be read.
type refrain struct {
	head, tail []byte // of an event, around its text; no head = none known
}

// maxRefrain bounds what is kept of an event on either side of its text.
const maxRefrain = 1 << 10

// learn takes an event whose text is from its byte from on up to its byte to.
func (r *refrain) learn(event []byte, from, to int) {
	if from > maxRefrain || len(event)-to > maxRefrain {
		return
	}
	r.head = append(r.head[:0], event[:from]...)
	r.tail = append(r.tail[:0], event[to:]...)
}

// match is the length of the event that b begins with if it is the refrain with
// a text that is not empty, else 0.
func (r *refrain) match(b []byte) int {
	from := len(r.head)
	if from == 0 || !bytes.HasPrefix(b, r.head) {
		return 0
	}
	to := from
	for {
		to += textRun(b[to:])
		if to+1 >= len(b) {
			return 0
		}
		if b[to] != '\\' {
			break
		}
		if b[to+1] < ' ' {
			return 0
		}
		to += 2
	}
	if to == from || !bytes.HasPrefix(b[to:], r.tail) {
		return 0
	}
	return to + len(r.tail)
}
