package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/route"
)

// Call is a request that the host makes for us: a POST of JSON. Its contents are
// valid until the worker's next event.
type Call struct {
	// Job says whose it is. 0: the exchange waits for it, whose request the host
	// holds; [Exchange.Tokenized] takes the answer. Others: nobody waits, and
	// [Worker.Tokenized] takes it.
	Job       uint32
	Cluster   string
	Path      string
	Replica   []byte // the address to ask, for x-gateway-destination-endpoint; empty: any
	Body      []byte
	TimeoutMS int64
}

const (
	tokenizePath = "/tokenize"
	// MaxAnswer is how much of an answer of /tokenize is looked at.
	MaxAnswer = 4 << 20
	// maxScratch is how many tokens' memory is kept for the next prompt.
	maxScratch = 1 << 20
)

// newCall fills in a call to /tokenize.
func (e *Exchange) newCall(job uint32, timeout int64) *Call {
	w, p := e.worker, e.pool
	c := &w.tier2.call
	*c = Call{Job: job, Cluster: p.precise.config.Cluster, Path: tokenizePath, Body: e.body, TimeoutMS: timeout}
	if slot := p.router.Quietest(e.scanner.Request().Model.Bytes(), w.env.Dice()); slot >= 0 {
		c.Replica = p.router.Address(slot)
	}
	return c
}

// ask holds the request until a replica has told the prompt's tokens.
func (e *Exchange) ask(v *Verdict) {
	e.phase, e.askedAt, e.sentAt = asking, e.sentAt, 0
	v.Call = e.newCall(0, e.pool.precise.config.TokenizeTimeoutMS)
}

// Tokenized takes the answer to the call of the verdict that ended the request.
// status 0 says that none came. The verdict is the decision.
func (e *Exchange) Tokenized(status int, answer []byte) *Verdict {
	w := e.worker
	v := &w.verdict
	v.reset()
	if e.phase != asking {
		return v
	}
	e.phase, e.sentAt = sent, w.env.Now()
	e.askMS = e.sentAt - e.askedAt
	k, p := &e.known, e.pool.precise
	if w.tokenized(e.pool, status, answer, e.askMS, p.config.TokenizeTimeoutMS) {
		k.source = sourceAsked
	} else {
		k.fallback = route.FallbackTokenizeFailed
	}
	v.property(lengthProperty, w.scratch.lengthOf(e.scanner.Request().BodyBytes))
	e.place(v)
	return v
}

// The outcomes of a call to /tokenize.
const (
	callOK = iota
	callTimeout
	callError
	callOutcomes
)

var callOutcomeNames = [callOutcomes]string{"ok", "timeout", "error"}

// tokenized reads an answer of /tokenize into the worker's tokens, and counts it.
// It reports whether it could be read.
func (w *Worker) tokenized(p *pool, status int, answer []byte, ms, timeout int64) bool {
	t := w.tier2
	if cap(t.tokens) > maxScratch {
		t.tokens = nil
	}
	outcome := callError
	var err error
	switch {
	case status == 200 && len(answer) <= MaxAnswer:
		if t.tokens, err = openai.AppendTokens(t.tokens[:0], answer); err == nil {
			outcome = callOK
		}
	case status == 504 || status == 0 && ms >= timeout:
		outcome = callTimeout
	}
	p.precise.rest.note(outcome == callOK, w.env.Now())
	w.tally.add(p.series.tokenize[outcome], 1)
	w.tally.observe(p.series.tokenizeMS[outcome], ms)
	return outcome == callOK
}
