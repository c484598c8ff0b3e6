package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
)

// bytesPerToken is how text is counted in tokens where nobody has counted
// them; it is the estimate of every router of this field.
const bytesPerToken = 4

// decide ends the reading: which pool, which replica.
func (e *Exchange) decide(v *Verdict) {
	w := e.worker
	e.sentAt = w.env.Now()
	request := e.read()
	if w.sequence == 0 {
		w.adopt()
	}
	model := request.Model.Bytes()
	p, found := w.poolOf(model)
	e.pool, e.series = p, p.series.of(model)
	if p.precise == nil {
		e.drop()
	}
	if !found && w.config.UnknownModel == "reject" && w.knowsModels() {
		e.refuse(v, 404, UnknownModel, "The model `"+string(model)+"` does not exist.", "model")
		return
	}
	if p.precise != nil && e.prepare(request) {
		e.ask(v)
		return
	}
	e.place(v)
}

// place chooses a replica and names it.
func (e *Exchange) place(v *Verdict) {
	r := e.scanner.Request()
	e.choose(r)
	if e.pool.precise != nil && !e.teaches(r) {
		e.drop()
	}
	if e.choice.N == 0 && e.worker.config.NoReplica == "reject" {
		e.refuse(v, 503, NoReplica, "No replica is known to be healthy.", "")
		return
	}
	e.name(v)
	e.explained = e.head.explain && e.worker.config.Piggyback.Explain
}

// read closes the scanner and counts what was wrong with the body. That is the
// replica's to refuse; here it only means that there is no prompt to match.
func (e *Exchange) read() *openai.Request {
	request := e.scanner.Request()
	bad := e.scanner.Close()
	readable := e.head.dialect != byLoad && !e.head.encoded
	e.tree = readable && bad.Fault == openai.NoFault && request.PromptBytes > 0 &&
		request.PromptBytes+request.HeadBytes <= e.worker.config.Routing.MaxPromptBytes
	if readable && bad.Fault != openai.NoFault {
		e.worker.tally.add(e.worker.metrics.scanErrors[bad.Fault], 1)
	}
	return request
}

// choose weighs what the index knows against what the replicas owe.
func (e *Exchange) choose(request *openai.Request) {
	matched := e.lookUp(request)
	q := route.Query{
		Model: request.Model.Bytes(), Matched: matched, Tree: e.tree, Stream: request.Stream,
	}
	if p := e.pool.precise; p != nil && e.solve(request, matched) {
		e.youngest(matched)
		p.merge(e.pool.router, &e.known, matched, e.sentAt)
		q.Precise, q.Prompt = true, e.known.prompt
	} else {
		for slot := range matched {
			matched[slot] /= bytesPerToken
		}
		q.Prompt = e.promptTokens(request)
	}
	if e.tree {
		q.Ring = e.ring()
	}
	e.route(&q)
	e.choice.N = min(e.choice.N, e.worker.config.Routing.Candidates)
	if e.choice.N > 0 {
		e.named = int(e.choice.Order[0])
		e.record(e.named)
		if q.Precise {
			e.known.claimed = e.pool.precise.slots[e.named].held
		}
	}
	e.count()
}

// route has the router choose. If a worker with newer state has written the
// ledger meanwhile, that state is taken over, for this request only if it
// could not be placed without.
func (e *Exchange) route(q *route.Query) {
	w, p := e.worker, e.pool
	p.router.Choose(q, e.sentAt, w.env.Dice(), &e.choice, &e.ticket)
	if !p.behind(e.choice.Generation) {
		return
	}
	w.adopt()
	if e.choice.N == 0 {
		p.router.Choose(q, e.sentAt, w.env.Dice(), &e.choice, &e.ticket)
	}
}

// lookUp asks the text index how much of the prompt, in bytes, each replica was
// sent.
func (e *Exchange) lookUp(request *openai.Request) []uint32 {
	p := e.pool
	matched := p.matched[:min(len(p.matched), p.router.Slots())]
	clear(matched)
	if !e.tree {
		return nil
	}
	e.namespace = prefix.NamespaceOf(request.Model.Bytes()).
		With(request.Salt).With(request.Tools).With(request.Template).With(uint64(request.Kind))
	warm := p.warm[:len(matched)]
	for slot := range warm {
		warm[slot] = p.replica(slot)
	}
	if request.Head != 0 {
		e.lookUpOpening(request, warm)
	}
	if err := e.worker.index.Lookup(&e.prompt.Chain, e.namespace, warm, matched, e.sentAt); err != nil {
		clear(matched)
	}
	if request.Head != 0 {
		e.addOpening(request, matched)
	}
	return matched
}

// defaultCapacity is the cache of a replica that has not said how large it is,
// in units of route.ClockUnit: half a million tokens.
const defaultCapacity = 31250

// replica is how the text index knows the replica in a slot.
func (p *pool) replica(slot int) prefix.Replica {
	capacity := p.router.Capacity(slot)
	if capacity == 0 {
		capacity = defaultCapacity
	}
	return prefix.Replica{Key: p.router.Key(slot), Clock: p.router.Clock(slot), Capacity: capacity}
}

func (e *Exchange) promptTokens(r *openai.Request) uint32 {
	n := (r.PromptBytes + r.AsideBytes) / bytesPerToken
	if r.PromptTokens > 0 {
		n = r.PromptTokens
	} else if !e.tree {
		n = r.BodyBytes / bytesPerToken
	}
	return uint32(min(n, 1<<30))
}

// record tells the index that a replica is about to hold the prompt. It is
// withdrawn if the answer says otherwise.
func (e *Exchange) record(slot int) {
	if e.tree && slot >= 0 && e.pool.router.Key(slot) != 0 {
		// An index that cannot be written costs a warm hit, not the request.
		_ = e.worker.index.Record(&e.prompt.Chain, e.namespace, e.pool.replica(slot))
		if e.apart {
			_ = e.worker.index.Record(&e.opening, e.openingNamespace, e.pool.replica(slot))
		}
	}
}

func (e *Exchange) withdraw(slot int) {
	if e.tree && slot >= 0 {
		_ = e.worker.index.Withdraw(&e.prompt.Chain, e.namespace, e.pool.router.Key(slot))
		if e.apart {
			_ = e.worker.index.Withdraw(&e.opening, e.openingNamespace, e.pool.router.Key(slot))
		}
	}
}

// name writes the decision where the native filters find it.
func (e *Exchange) name(v *Verdict) {
	s := &e.worker.scratch
	s.order = e.pool.router.AppendOrder(s.order[:0], &e.choice)
	if len(s.order) > 0 {
		v.property(destinationProperty, s.order)
	}
	s.work = route.AppendWork(s.work[:0], e.choice.Prompt, e.uncachedAt(e.named))
	v.property(workProperty, s.work)
	if e.known.text != 0 {
		s.session = appendSession(s.session[:0], e.known.text)
		v.property(sessionProperty, s.session)
	}
	if len(e.worker.config.Pools) > 0 { // routes may match it; nobody matches one that has no name
		v.property(poolProperty, e.pool.name)
	}
}

// count adds the decision to the metrics.
func (e *Exchange) count() {
	t, c, s := e.worker.tally, &e.choice, e.pool.series
	if e.known.fallback != route.NoHealthyWorker {
		t.add(e.series.decisions[1][e.known.fallback], 1)
	}
	t.add(e.series.decisions[e.tier()-1][c.Branch], 1)
	t.observe(s.candidates, int64(c.Candidates))
	for f, n := range c.Dropped {
		t.add(s.dropped[f], uint64(n))
	}
	if c.N == 0 {
		return
	}
	t.add(e.series.matched, uint64(c.Matched))
	for i, score := range [...]float32{c.Scores.Prefix, c.Scores.Owed, c.Scores.Busy, c.Scores.Foreign} {
		t.observe(s.scores[i], int64(score*1000))
	}
	if c.Load.At > 0 {
		t.observe(s.loadAge, max(e.sentAt-c.Load.At, 0))
	}
}

// tier is the one that decided.
func (e *Exchange) tier() int {
	if e.known.precise && e.choice.Branch != route.NoHealthyWorker {
		return 2
	}
	return 1
}

// appendSession writes the tag by which an engine's events name the prompt.
func appendSession(b []byte, text uint64) []byte {
	const hex = "0123456789abcdef"
	b = append(b, "wl1-"...)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hex[text>>shift&15])
	}
	return b
}

// refuse answers the client instead of a replica.
func (e *Exchange) refuse(v *Verdict, status int, why Reason, message, param string) {
	w := e.worker
	e.replied, e.reason = true, why
	w.scratch.body = openai.AppendError(w.scratch.body[:0], status, message, "", param, "")
	w.reply = Reply{Status: status, Reason: why, Body: w.scratch.body}
	v.Reply = &w.reply
}
