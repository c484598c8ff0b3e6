package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// embeddings is the dialect of /v1/embeddings and of /pooling: a vector for each
// prompt. The engine computes the prompt and one token, which nobody sees.
type embeddings struct {
	idPrefix, object, key string
}

func (s *Server) embeddings(x *exchange) {
	x.generate(embeddings{"embd-", "embedding", "embedding"}, x.fields(decodeEmbeddings))
}

func (s *Server) pooling(x *exchange) {
	x.generate(embeddings{"pooling-", "pooling", "data"}, x.fields(decodeEmbeddings))
}

// decodeEmbeddings reads the body of both paths, which has input or messages.
func decodeEmbeddings(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.onlyPrompt()
	d.base64 = last(root, "encoding_format").String() == "base64"
	input := last(root, "input")
	switch {
	case input.Exists():
		d.readPrompts("input", input)
	case d.hasChat:
		d.readMessages(d.chat)
	default:
		for _, form := range []string{"input", "messages", "messages", "messages", "input", "messages", "input"} {
			d.missing(form) // each of the forms that vLLM tries has its own complaint
		}
	}
	if n := last(root, "dimensions"); n.Type != gjson.Null && len(d.problems) == 0 {
		return nil, badRequest("Model '"+d.model+"' does not support Matryoshka embeddings; dimensions must be unset"+
			" (received dimensions="+n.Raw+").", "")
	}
	return d.done()
}

// onlyPrompt makes a call one whose answer is not read.
func (d *decoder) onlyPrompt() { d.limit, d.copies, d.stream, d.options = 1, 1, false, false }

func (d embeddings) prefix() string { return d.idPrefix }

func (d embeddings) whole(b []byte, g *generation, choices []choice) []byte {
	b = g.appendList(b)
	for i, prompt := range g.call.prompts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = append(b, `,"object":"`+d.object+`","`+d.key+`":`...)
		if v := embed(prompt); g.call.base64 {
			b = appendBase64(b, v)
		} else {
			b = appendFloats(b, v)
		}
		b = append(b, '}')
	}
	return g.appendListEnd(b)
}

// appendList opens the list that these paths answer with.
func (g *generation) appendList(b []byte) []byte {
	b = appendJSON(append(b, `{"id":`...), g.id)
	b = strconv.AppendInt(append(b, `,"object":"list","created":`...), g.created, 10)
	b = appendJSON(append(b, `,"model":`...), g.model)
	return append(b, `,"data":[`...)
}

// appendListEnd closes it with the usage, in which there are no details.
func (g *generation) appendListEnd(b []byte) []byte {
	g.x.entry.CompletionTokens = 0
	b = g.usage().appendCounts(append(b, `],"usage":`...))
	return append(b, `,"prompt_tokens_details":null,"completion_tokens_details":null}}`...)
}

// dimensions is the length of a vector.
const dimensions = 64

// vector is of length 1.
type vector [dimensions]float64

// embed adds up the vectors of tokens, so that texts with equal words are near
// each other.
func embed(tokens []engine.Token) (v vector) {
	for _, t := range tokens {
		x := uint64(t)
		for i := range v {
			x = (x ^ x>>29 + 1) * 0x9e3779b97f4a7c15
			v[i] += float64(int32(x>>32)) / (1 << 31)
		}
	}
	length := math.Sqrt(v.dot(&v))
	for i := range v {
		v[i] /= length
	}
	return v
}

func (v *vector) dot(w *vector) (sum float64) {
	for i := range v {
		sum += v[i] * w[i]
	}
	return sum
}

// appendFloats writes a vector of 32-bit numbers as Python would.
func appendFloats(b []byte, v vector) []byte {
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, pyFloat(float64(float32(x)))...)
	}
	return append(b, ']')
}

// appendBase64 writes the same numbers in 4 bytes each, little end first.
func appendBase64(b []byte, v vector) []byte {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
	}
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), raw), '"')
}
