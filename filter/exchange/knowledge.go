package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
)

// source is where the tokens of a prompt come from.
type source uint8

const (
	sourceNone    source = iota // tier 1: no tokens
	sourceIDs                   // the request has them
	sourceAsked                 // a replica told
	sourceLearned               // an earlier prompt with the same beginning
)

var sourceNames = [...]string{"none", "ids", "asked", "learned"}

// knowledge is what tier 2 knows of a request's prompt.
type knowledge struct {
	source   source
	precise  bool         // tier 2 decides
	fallback route.Branch // why it does not; NoHealthyWorker = there is no tier 2

	root    uint64  // namespace of the prompt's blocks
	text    uint64  // key of the prompt's text, 0 = none
	prompt  uint32  // tokens of the prompt
	exact   bool    // prompt is a count and no estimate
	perByte float32 // tokens a canonical byte of this prompt makes
	strange uint8   // its borders that led nowhere, a bit for each mark
	own     bool    // its very last border was known
	solved  bool    // and so were its blocks
	claimed uint32  // tokens that the chosen replica's index says it holds
}

// cacheable is how many of n tokens an engine with blocks of a size can have
// cached: whole blocks, and the last token is always computed.
func cacheable(n, size uint32) uint32 {
	if n == 0 {
		return 0
	}
	if size == 0 {
		return n - 1
	}
	return (n - 1) / size * size
}

// prepare says how the tokens of the prompt can be had, and whether a replica has
// to be asked for them.
func (e *Exchange) prepare(r *openai.Request) (ask bool) {
	k, p := &e.known, e.pool.precise
	k.root = p.root(r.Model.Bytes(), r.Salt)
	ids, list := r.PromptTokens > 0, r.Prompts > 0 // /tokenize takes no list, not even of one
	switch tokenize := p.config.Tokenize; {
	case !p.indexed || !e.worker.tier2.blocks.Begin(e.sentAt):
		k.fallback = route.FallbackNoIndex
	case !e.tree, ids && (r.Untold || e.prompt.ids == nil), r.Prompts > 1:
		k.fallback = route.FallbackUnsupported
	case ids:
		k.source = sourceIDs
	case tokenize == tokenizeLearned:
		k.source = sourceLearned
	case tokenize == tokenizeOff, list, r.Untold, r.OtherParts > 0, e.overflow, int64(len(e.body)) > p.config.Budget.MaxBytes:
		k.fallback = route.FallbackUnsupported
	case e.body == nil, p.rest.resting(e.sentAt):
		k.fallback = route.FallbackTokenizeFailed
	default:
		return true
	}
	return false
}

// solve finds the blocks of the prompt and who holds them. text is, by slot, how
// many bytes of the prompt each replica was sent. It reports whether tier 2 can
// decide.
func (e *Exchange) solve(r *openai.Request, text []uint32) bool {
	k, p, t := &e.known, e.pool.precise, e.worker.tier2
	if k.source != sourceNone && (!p.indexed || !t.blocks.Begin(e.sentAt)) { // it may be gone while a request is held
		k.source, k.fallback = sourceNone, route.FallbackNoIndex
	}
	p.forget()
	k.perByte = p.perByte
	k.prompt = e.promptTokens(r)
	switch k.source {
	case sourceIDs:
		t.tokens = e.prompt.appendIDs(t.tokens[:0])
		k.precise = e.hold(t.tokens, uint32(min(r.PromptTokens, 1<<30)), r)
	case sourceAsked:
		k.precise = e.hold(t.tokens, uint32(len(t.tokens)), r)
	case sourceLearned:
		k.precise = e.recall(r, text)
	}
	return k.precise
}

// hold looks up a prompt whose first tokens are given and n in all.
func (e *Exchange) hold(tokens []uint32, n uint32, r *openai.Request) bool {
	k, p, t := &e.known, e.pool.precise, e.worker.tier2
	k.prompt, k.exact = n, true
	k.perByte = float32(n) / float32(r.PromptBytes)
	for _, size := range p.sizes {
		t.chain.Reset(k.root, int(size))
		t.chain.Add(tokens)
		keys := t.chain.Keys()
		if err := t.blocks.Lookup(keys, p.runs); err != nil {
			k.fallback = route.FallbackNoIndex
			return false
		}
		p.take(size, uint32(len(keys)))
	}
	return true
}

// textNamespace is that of the text keys: what makes other blocks of the same
// text makes another key.
func (e *Exchange) textNamespace() prefix.Namespace {
	return e.namespace.With(e.pool.precise.hash)
}

// sentSome says whether some replica was sent something.
func sentSome(text []uint32) bool {
	for _, n := range text {
		if n > 0 {
			return true
		}
	}
	return false
}

// youngest finds what of the text each replica was sent so lately that its index
// may not have it yet. It asks the text index again, whose buckets are at hand.
func (e *Exchange) youngest(text []uint32) {
	p := e.pool.precise
	young := p.young[:len(text)]
	clear(young)
	if !p.windows(e.pool.router, e.sentAt) || !sentSome(text) {
		return
	}
	warm := e.pool.warm[:len(young)]
	for slot := range warm {
		// An entry of the present moment has an age of one unit, so that a window
		// of none takes none.
		warm[slot].Clock++
		warm[slot].Capacity = min(warm[slot].Capacity, p.slots[slot].open)
	}
	if err := e.worker.index.Lookup(&e.prompt.Chain, e.namespace, warm, young, e.sentAt); err != nil {
		clear(young)
	}
}
