package exchange

import (
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
)

// A job is a call that learns the blocks of a prompt whose request has left.
// Nobody waits for it.
type job struct {
	pool *pool // nil = free
	mark prefix.Mark
	text uint64
	root uint64
	at   int64
}

const (
	maxJobs = 16
	// learnMS is how long such a call may take.
	learnMS = 5_000
	// strayMS is how long bodies are kept after a prompt whose tag led nowhere.
	strayMS = 10_000
)

// keeps says whether the body of a request may have to be sent to /tokenize, and
// then how much of it at most is kept. The pool is not known yet.
func (w *Worker) keeps(session bool, now int64) (most int64) {
	for _, p := range w.pools {
		if p.precise != nil && p.precise.mayCall(session, now) {
			most = max(most, p.precise.config.Budget.MaxBytes)
		}
	}
	return most
}

func (p *precise) mayCall(session bool, now int64) bool {
	switch {
	case !p.indexed || p.rest.resting(now):
		return false
	case p.config.Tokenize == tokenizeAsk:
		return true
	}
	stray := p.strayAt != 0 && now-p.strayAt < strayMS
	return (!p.tagged || session || stray) && p.mayLearn(now)
}

// mayLearn says whether the budget allows a call that learns a prompt.
func (p *precise) mayLearn(now int64) bool {
	return p.config.Tokenize == tokenizeLearned && p.config.Cluster != "" &&
		p.calls < p.config.Budget.InFlight && !p.rest.resting(now) && p.budget.has(now)
}

// teaches says whether a call can learn the prompt's blocks and nothing else will
// tell them: no engine's events carry our tags, the client's own session stands
// in their place, or the tag has not led anywhere the last time.
func (e *Exchange) teaches(r *openai.Request) bool {
	k := &e.known
	return e.body != nil && int64(len(e.body)) <= e.pool.precise.config.Budget.MaxBytes && k.source == sourceLearned && !k.solved && k.text != 0 &&
		r.Prompts == 0 && !r.Untold && r.OtherParts == 0 &&
		(!e.pool.precise.tagged || k.own || e.head.session)
}

// learn asks for the prompt's tokens if that is worth it and the budget has it.
func (e *Exchange) learn(v *Verdict, r *openai.Request, now int64) {
	k, p := &e.known, e.pool.precise
	if !e.teaches(r) || !p.mayLearn(now) {
		return
	}
	m, _ := e.prompt.Mark(e.textNamespace(), 0)
	for i := range e.worker.tier2.jobs {
		if j := &e.worker.tier2.jobs[i]; j.pool == nil {
			*j = job{pool: e.pool, mark: m, text: k.text, root: k.root, at: now}
			p.calls++
			p.budget.take()
			v.Call = e.newCall(uint32(i+1), learnMS)
			return
		}
	}
}

// Tokenized takes the answer to a call that is nobody's, by the number of its job.
// status 0 says that none came.
func (w *Worker) Tokenized(id uint32, status int, answer []byte) {
	if id == 0 || id > maxJobs || w.tier2 == nil || w.tier2.jobs[id-1].pool == nil {
		return
	}
	t := w.tier2
	j := t.jobs[id-1]
	t.jobs[id-1] = job{}
	p := j.pool.precise
	p.calls--
	if !w.tokenized(j.pool, status, answer, w.env.Now()-j.at, learnMS) || len(p.sizes) == 0 {
		return
	}
	n, bytes := uint32(len(t.tokens)), uint32(min(j.mark.Bytes, 1<<32-1))
	t.chain.Reset(j.root, int(p.sizes[0]))
	t.chain.Add(t.tokens)
	// What cannot be written is asked for again.
	_ = t.learned.Remember(j.text, p.sizes[0], n, t.chain.Keys())
	_ = t.learned.Note(j.mark.Key, kvindex.Border{Text: j.text, At: bytes, Of: bytes, Tokens: n})
}
