package exchange

import (
	"encoding/binary"

	"github.com/warmlane/warmlane/filter/prefix"
)

// prompt takes from the scanner what the prompt is: the chain of its text and,
// if it is given as token ids, those.
type prompt struct {
	prefix.Chain
	keep *keeper
	ids  []byte // 4-byte little-endian words
	full bool   // there are more than are kept
}

// maxIDs bounds the ids kept of a prompt. What is looked up is then its
// beginning, which is as good.
const maxIDs = 256 << 10

// Reset implements openai.Sink.
func (p *prompt) Reset() {
	p.Chain.Reset()
	p.drop()
}

func (p *prompt) drop() {
	if p.ids != nil {
		p.keep.release(p.ids)
	}
	p.ids, p.full = nil, false
}

// IDs implements openai.IDSink.
func (p *prompt) IDs(words []byte) {
	if p.full {
		return
	}
	if room := 4*maxIDs - len(p.ids); len(words) > room {
		words, p.full = words[:room], true
	}
	ids, ok := p.keep.append(p.ids, words, 4*maxIDs)
	p.ids, p.full = ids, p.full || !ok
}

// appendIDs appends the ids to dst.
func (p *prompt) appendIDs(dst []uint32) []uint32 {
	for w := p.ids; len(w) >= 4; w = w[4:] {
		dst = append(dst, binary.LittleEndian.Uint32(w))
	}
	return dst
}
