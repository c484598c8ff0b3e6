package exchange

import (
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
)

// A prompt that no replica has seen cannot be cached anywhere, so it needs no
// tokens. What one has seen is known by its borders. The key of a border is that
// of the text of a prompt that ended there, so it finds what control knows of one
// that went by any proxy; and this proxy remembers for each border a prompt that
// passed through it. The deepest border that leads to blocks decides.

const (
	// lastMarks is how many of the last borders are asked for: this very prompt;
	// what an edited question leaves; the end of the turn before, since when
	// there came an answer and a question, or a call and up to three results.
	lastMarks = 5
	// marks are those and the first border, the end of the system prompt.
	marks = lastMarks + 1
	// turnMarks is where those begin at which a turn before can have ended.
	turnMarks = 2
	// maxReads bounds the reads of a look-up in a prompt of up to 2,000 blocks: for
	// the head of the index, for borders and texts, and for the nodes of the
	// path that is found. Longer prompts have no fewer for borders and texts.
	maxReads = 24
	minReads = 6
)

// mark is the i-th border to ask for, deepest first.
func (e *Exchange) mark(ns prefix.Namespace, i int) (m prefix.Mark, ok bool) {
	if i < lastMarks {
		return e.prompt.Mark(ns, i)
	}
	m, after := e.prompt.FirstMark(ns)
	return m, after >= lastMarks
}

// recall finds the blocks of the deepest border of the prompt that leads to some.
// If there is none, tier 2 can still decide that nobody has seen the prompt,
// which is so if the text index says the same.
func (e *Exchange) recall(r *openai.Request, text []uint32) bool {
	k := &e.known
	ns := e.textNamespace()
	left := max(maxReads-2-e.pool.precise.nodes(k.prompt), minReads)
	for i := 0; i < marks && left > 0; i++ {
		m, ok := e.mark(ns, i)
		if !ok {
			continue
		}
		if i == 0 {
			k.text = textKey(m)
		}
		reads, ok := e.try(i, m, r)
		if ok {
			k.solved = i == 0
			return true
		}
		k.strange |= 1 << i
		left -= reads
	}
	if k.own {
		e.pool.precise.strayAt = e.sentAt
	}
	if sentSome(text) {
		k.fallback = route.FallbackTokenizeFailed
		return false
	}
	return true
}

// try asks for the i-th border and says how many reads that took.
func (e *Exchange) try(i int, m prefix.Mark, r *openai.Request) (reads int, ok bool) {
	b, known := e.worker.tier2.learned.Border(m.Key)
	if known {
		e.known.own = e.known.own || i == 0
		return 2, e.follow(&b, true, r)
	}
	if i < turnMarks || i >= lastMarks {
		return 1, false
	}
	at := uint32(min(m.Bytes, 1<<32-1))
	return 2, e.follow(&kvindex.Border{Text: textKey(m), At: at, Of: at}, false, r)
}

// textKey is the key of the text of a prompt that ends at a border.
func textKey(m prefix.Mark) uint64 { return max(m.Key, 1) }

// follow looks up the blocks of a prompt that shares its beginning with this one,
// up to where they part. Where that lies in tokens is in proportion to the
// bytes, unless it is the prompt's end. Of a border that is not known here only
// control may know more.
func (e *Exchange) follow(b *kvindex.Border, known bool, r *openai.Request) bool {
	k := &e.known
	if b.Of == 0 || b.At > b.Of {
		return false
	}
	tokens := float32(b.Tokens)
	if b.Tokens == 0 {
		tokens = float32(b.Of) * k.perByte
	}
	shared := uint32(tokens * (float32(b.At) / float32(b.Of)))
	if b.At == b.Of && b.Tokens > 0 {
		shared = b.Tokens
	}
	whole := b.Tokens > 0 && b.At == b.Of && int64(b.At) == r.PromptBytes
	if !e.tagged(b.Text, shared) && !(known && e.asked(b.Text, shared)) && !(whole && e.pool.precise.tiny(shared)) {
		return false
	}
	k.perByte = tokens / float32(b.Of)
	rest := float32(max(r.PromptBytes-int64(b.At), 0)) * k.perByte
	k.prompt, k.exact = shared+uint32(rest), whole
	return true
}

// tagged looks up the first tokens of a prompt by the key of its text, if an
// engine has told what blocks it made of it.
func (e *Exchange) tagged(text uint64, tokens uint32) bool {
	p, t := e.pool.precise, e.worker.tier2
	if !p.tagged {
		return false
	}
	for _, size := range p.sizes {
		depth, has, ok := t.blocks.LookupText(text, tokens/size, p.runs)
		if ok && has == size {
			p.take(size, depth)
			return depth > 0
		}
	}
	return false
}

// asked does the same if a replica was asked for the tokens of the prompt.
func (e *Exchange) asked(text uint64, tokens uint32) bool {
	p, t := e.pool.precise, e.worker.tier2
	keys, size, _, ok := t.learned.Keys(text, t.keys[:0])
	t.keys = keys
	if !ok || size == 0 {
		return false
	}
	keys = keys[:min(len(keys), int(tokens/size))]
	if err := t.blocks.Lookup(keys, p.runs); err != nil {
		return false
	}
	p.take(size, uint32(len(keys)))
	return len(keys) > 0
}

// remember notes the borders of a prompt that an engine has taken in, as far as
// they were not known.
func (e *Exchange) remember(tokens uint32) {
	k, t := &e.known, e.worker.tier2
	if k.source != sourceLearned || k.text == 0 {
		return
	}
	ns := e.textNamespace()
	end, _ := e.prompt.Mark(ns, 0)
	of := uint32(min(end.Bytes, 1<<32-1))
	if !k.exact && tokens > 0 {
		k.strange |= 1 // what is known of the prompt itself is not how many tokens it has
	}
	for i := 0; k.strange>>i != 0; i++ {
		m, ok := e.mark(ns, i)
		if !ok || k.strange>>i&1 == 0 {
			continue
		}
		// A border that cannot be written is not known next time either.
		_ = t.learned.Note(m.Key, kvindex.Border{Text: k.text, At: uint32(min(m.Bytes, int64(of))), Of: of, Tokens: tokens})
	}
}
