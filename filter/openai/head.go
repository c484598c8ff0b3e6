package openai

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// head takes the canonical bytes of what the engine renders before the prompt.
// It may stand before or after the prompt in the body, so it is hashed apart.
type head struct {
	main   Sink // of the prompt
	more   Sink // that wants the head too; nil = none
	open   bool // the head is being read
	digest xxhash.Digest
	bytes  int64 // of a head that is whole

	from    int64 // PromptBytes before the head
	text    int64 // PromptBytes before the text of the part at hand
	dropped bool  // that text is not the engine's to see
}

// Text implements Sink.
func (h *head) Text(b []byte) {
	_, _ = h.digest.Write(b) // never fails
	if h.more != nil {
		h.more.Text(b)
	}
}

// Border implements Sink.
func (h *head) Border() {
	if h.more != nil {
		h.more.Border()
	}
}

// Reset implements Sink.
func (h *head) Reset() {
	h.digest.Reset()
	h.bytes = 0
	if h.more != nil {
		h.more.Reset()
	}
}

func (h *head) clear(main Sink) {
	h.main, h.more, h.open, h.bytes, h.dropped = main, nil, false, 0, false
}

// sum is the hash of the head, 0 if there is none.
func (h *head) sum() uint64 {
	if h.bytes == 0 {
		return 0
	}
	return mix(h.digest.Sum64())
}

// SetHead names the sink of the head's canonical bytes, which the scanner only
// hashes otherwise. It is called after Reset and resets the sink.
func (s *Scanner) SetHead(sink Sink) {
	s.head.more = sink
	sink.Reset()
}

// beginHead turns the text that follows to the head, instead of an earlier one
// if the body has two. It returns true.
func (s *Scanner) beginHead() bool {
	s.flush()
	s.head.Reset()
	s.head.open, s.head.from = true, s.req.PromptBytes
	s.sink = &s.head
	return true
}

func (s *Scanner) endHead() {
	s.flush()
	h := &s.head
	if h.bytes = s.req.PromptBytes - h.from; h.bytes > 0 {
		h.Border()
	}
	s.req.PromptBytes = h.from
	h.open = false
	s.sink = h.main
}

// oddHead takes a head that is neither text nor a list.
func (s *Scanner) oddHead(k valueKind, sum uint64) {
	s.beginHead()
	if k != kindNull {
		s.putDigest(markPart, sum)
	}
	s.endHead()
}

// billing is what the first part of system begins with when Claude Code sends it.
// It has a hash that is new in each request, so vLLM leaves such a part out of
// the prompt. Only short ones are known, as longer text has left for the sink
// when it ends.
const (
	billing    = "x-anthropic-billing-header"
	maxBilling = directRun
)

// beginText is where the text of a part begins. It returns true.
func (s *Scanner) beginText() bool {
	if s.head.open {
		s.flush()
		s.head.text = s.req.PromptBytes
	}
	return true
}

// dropBilling forgets the text of the part that ends here if the engine does.
func (s *Scanner) dropBilling() {
	if s.head.open && s.req.Kind == Messages && s.req.PromptBytes == s.head.text &&
		s.textLen <= maxBilling && bytes.HasPrefix(s.text[:s.textLen], []byte(billing)) {
		s.textLen = 0
		s.head.dropped = true
	}
}
