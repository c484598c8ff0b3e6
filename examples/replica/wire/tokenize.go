package wire

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// tokenize serves both forms of /tokenize. The tokens of messages are those the
// same chat completion is served with. The length of the prompt is not limited.
func (s *Server) tokenize(x *exchange) {
	if !x.read() || x.tokenizeFault() {
		return
	}
	c, refusal := x.decode(decodeTokenize)
	if refusal == nil {
		_, _, refusal = s.resolve(c.model)
	}
	if refusal != nil {
		x.refuse(refusal)
		return
	}
	var tokens []engine.Token
	var pieces []string
	if c.messages != nil {
		tokens = engine.Chat(nil, c.tools, c.messages, c.generate)
		pieces = make([]string, len(tokens)) // frames are no text
	} else {
		tokens = c.prompts[0]
		pieces = engine.Pieces(c.text)
		s.pieces.learn(tokens, pieces)
	}
	if !c.strings {
		pieces = nil
	}
	x.entry.PromptTokens = len(tokens)
	x.json(http.StatusOK, s.appendTokens(nil, tokens, pieces))
}

// appendTokens writes the reply; token_strs is null without pieces.
func (s *Server) appendTokens(b []byte, tokens []engine.Token, pieces []string) []byte {
	b = append(b, `{"count":`...)
	b = strconv.AppendInt(b, int64(len(tokens)), 10)
	b = append(b, `,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.cfg.Engine.MaxModelLen), 10)
	b = append(b, `,"tokens":[`...)
	for i, t := range tokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(t), 10)
	}
	if pieces == nil {
		return append(b, `],"token_strs":null}`...)
	}
	b = append(b, `],"token_strs":[`...)
	for i, p := range pieces {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, visible(p))
	}
	return append(b, `]}`...)
}

// visible writes blanks as byte-level tokenizers show them.
func visible(piece string) string {
	return strings.NewReplacer(" ", "Ġ", "\n", "Ċ", "\t", "ĉ", "\r", "č").Replace(piece)
}

// tokenizeFault carries out a fault of this path.
func (x *exchange) tokenizeFault() bool {
	f := x.s.cfg.Faults.Get().Tokenize
	if f == "" {
		return false
	}
	x.entry.Outcome = OutcomeFault
	switch f {
	case "error":
		x.refuse(engineDead)
	case "garbage":
		x.json(http.StatusOK, []byte(`{"count":3,"tokens":[1,`))
	case "hang":
		x.wait()
	}
	return true
}

// dictionary knows the text of tokens, which their ids do not tell: those that
// /tokenize gave out. There are at most engine.Vocabulary of them. The zero value
// is empty; it is safe for concurrent use.
type dictionary struct {
	mu     sync.Mutex
	pieces map[engine.Token]string
}

func (d *dictionary) learn(tokens []engine.Token, pieces []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pieces == nil {
		d.pieces = map[engine.Token]string{}
	}
	for i, t := range tokens {
		d.pieces[t] = pieces[i]
	}
}

// text joins the pieces of tokens; those that are not known are left out, as vLLM
// leaves out ids that its vocabulary does not have.
func (d *dictionary) text(tokens []engine.Token) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b []byte
	for _, t := range tokens {
		b = append(b, d.pieces[t]...)
	}
	return string(b)
}

// detokenize turns tokens that /tokenize gave out back into their text.
func (s *Server) detokenize(x *exchange) {
	if !x.read() {
		return
	}
	c, refusal := x.decode(decodeDetokenize)
	if refusal == nil {
		_, _, refusal = s.resolve(c.model)
	}
	if refusal != nil {
		x.refuse(refusal)
		return
	}
	x.json(http.StatusOK, append(appendJSON([]byte(`{"prompt":`), s.pieces.text(c.prompts[0])), '}'))
}

// decodeDetokenize reads the body of /detokenize.
func decodeDetokenize(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	v := last(root, "tokens")
	switch {
	case !v.Exists():
		d.missing("tokens")
	case !v.IsArray():
		d.wrong("list_type", "tokens", "Input should be a valid list", v)
	default:
		d.prompts = [][]engine.Token{d.ids("tokens", v)}
	}
	return d.done()
}
