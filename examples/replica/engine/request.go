package engine

import "time"

// Spec is what an engine is asked to do.
type Spec struct {
	Model      string // part of what the answer depends on
	Prompt     []Token
	MaxTokens  int // tokens to generate; 0: until the answer ends by itself
	Space      Space
	Session    string // published with the blocks, otherwise unused
	ReportFull bool   // publish reused blocks as if they were new

	// Deliver receives each token as its step ends. It runs inside Advance and
	// must neither block nor call the engine.
	Deliver func(Output)
}

// Output is one generated token.
type Output struct {
	Request *Request
	Token   Token
	Text    string
	Index   int           // tokens of this answer so far, this one included
	At      time.Duration // when the step ended
	Finish  Finish        // set with the last token
}

// Finish is why an answer ended, "" while it goes on.
type Finish string

// The reasons for which an engine ends an answer.
const (
	FinishLength Finish = "length"
	FinishStop   Finish = "stop"
)

// phase is where a request is on its way.
type phase uint8

const (
	phaseNew phase = iota
	phaseWaiting
	phaseRunning
	phaseDone
)

// Request is one sequence on its way through an engine.
type Request struct {
	spec   Spec
	answer answer
	hasher *hasher

	phase    phase
	aborted  bool
	tokens   []Token // prompt and answer so far
	hashes   []Hash  // of the full blocks of tokens, as far as they were needed
	blocks   []*block
	computed int // tokens whose keys and values lie in blocks
	stored   int // blocks that were published or reused

	cached    int // prompt tokens reused when it first ran
	ran       bool
	preempted int
	arrived   time.Duration
	started   time.Duration
	first     time.Duration
	last      time.Duration
}

// NewRequest prepares a request: it hashes the prompt's blocks, which is the
// costly part and touches nothing of the engine that changes, so it may run
// beside other calls.
func (e *Engine) NewRequest(s Spec) *Request {
	r := &Request{
		spec:   s,
		answer: newAnswer(s.Prompt, s.Model+s.Space.Adapter, s.MaxTokens > 0, e.cfg.AnswerTokens),
		hasher: newHasher(e.seed, s.Space, e.cfg.BlockSize),
	}
	room := min(max(s.MaxTokens, e.cfg.AnswerTokens), e.cfg.MaxModelLen)
	r.tokens = append(make([]Token, 0, len(s.Prompt)+min(room, 1024)), s.Prompt...)
	r.hashes = r.hasher.extend(make([]Hash, 0, len(s.Prompt)/e.cfg.BlockSize+4), r.tokens)
	return r
}

// PromptTokens is the length of the prompt.
func (r *Request) PromptTokens() int { return len(r.spec.Prompt) }

// CachedTokens is how many prompt tokens came from the cache, known once the
// first output is there.
func (r *Request) CachedTokens() int { return r.cached }

// CreatedTokens is how many prompt tokens went into new whole blocks.
func (r *Request) CreatedTokens(blockSize int) int {
	return len(r.spec.Prompt)/blockSize*blockSize - r.cached
}

// TTFT is the time from arrival to the first token, 0 before it is there.
func (r *Request) TTFT() time.Duration {
	if r.first == 0 {
		return 0
	}
	return r.first - r.arrived
}

// output is how many tokens were generated.
func (r *Request) output() int { return len(r.tokens) - len(r.spec.Prompt) }

// reusable are the blocks a prompt may take from the cache: the last token must
// be computed in any case, since the first answer token comes from it.
func (r *Request) reusable(size int) []Hash {
	return r.hashes[:min(len(r.hashes), (len(r.tokens)-1)/size)]
}
