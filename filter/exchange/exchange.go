package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
)

// phase is how far an exchange is; see the drawing in doc.go.
type phase uint8

const (
	idle phase = iota
	passing
	reading
	asking
	sent
	answering
	settled
)

// Exchange is one request and its answer. It may be used again after Reset.
type Exchange struct {
	worker *Worker
	phase  phase
	head   requestHead
	answer responseHead

	scanner openai.Scanner
	prompt  prompt
	opening prefix.Chain // what the engine renders before the prompt, if that stands apart

	known    knowledge // of the prompt's tokens, if the pool has KV events
	keep     int64     // how much of the body is kept at most
	body     []byte    // as far as it is kept; nil = not
	overflow bool      // it was too much to be kept
	said     openai.Answer
	reads    bool // the answer's body can be read

	pool             *pool
	series           *modelSeries
	namespace        prefix.Namespace // of the prompt in the text index
	apart            bool             // the opening has a chain of its own ...
	openingNamespace prefix.Namespace // ... in this namespace
	tree             bool             // the prompt has a chain
	choice           route.Choice
	ticket           route.Ticket
	named            int // slot in the header's first place, -1 if none
	replied          bool

	sentAt, firstAt int64 // ms; 0 = not yet; firstAt is the first token's ...
	lastAt          int64 // ... and lastAt the last one's
	askedAt, askMS  int64 // when the tokens were asked for, and how long that took
	ended           bool
	explained       bool
	reason          Reason
	answeredBy      [64]byte // the upstream's address
	answeredLen     int
}

// NewExchange returns an exchange that is ready for its first event.
func (w *Worker) NewExchange() *Exchange {
	e := &Exchange{worker: w}
	if w.tier2 != nil {
		e.prompt.keep = &w.tier2.kept
	}
	e.Reset()
	return e
}

// Reset makes e ready for another request and keeps its memory.
func (e *Exchange) Reset() {
	e.phase, e.named, e.pool, e.series = idle, -1, nil, nil
	e.tree, e.apart, e.replied, e.ended, e.explained = false, false, false, false, false
	e.ticket, e.choice.N = route.Ticket{}, 0 // Choose fills in the rest
	e.sentAt, e.firstAt, e.lastAt, e.answeredLen = 0, 0, 0, 0
	e.answer, e.reason = responseHead{}, NoReason
	e.known, e.reads = knowledge{}, false
	e.said.Reset(false)
	e.askedAt, e.askMS = 0, 0
	e.drop()
}

// drop gives back what was kept of the request.
func (e *Exchange) drop() {
	e.prompt.drop()
	if e.body != nil {
		e.worker.tier2.kept.release(e.body)
		e.body = nil
	}
}

// RequestHeaders is the first event. end says that no body follows.
func (e *Exchange) RequestHeaders(h Headers, end bool) *Verdict {
	w := e.worker
	v := &w.verdict
	v.reset()
	if e.phase != idle {
		return v
	}
	e.head.read(h, &w.config.Headers, v)
	if e.head.dialect == notOurs || end {
		e.phase = passing
		return v
	}
	if w.config.Piggyback.LoadReports && !e.head.askedLoad {
		v.add(askLoadHeader, textFormat)
	}
	e.phase = reading
	e.keep, e.overflow = 0, false
	e.readPrompt(w.indexed())
	if w.indexed() && e.head.dialect.tokenized() && !e.head.encoded {
		e.keep = w.keeps(e.head.session, w.env.Now())
	}
	return v
}

var textFormat = []byte("TEXT")

// readPrompt readies the scanner; ids says that the tokens of a prompt that is
// given as such are wanted.
func (e *Exchange) readPrompt(ids bool) {
	var sink openai.Sink = &e.prompt.Chain
	if ids {
		sink = &e.prompt
	}
	switch d := e.head.dialect; {
	case d == byLoad && e.head.markLen > 0:
		e.scanner.ResetForm(e.head.mark[:e.head.markLen], sink)
	case d == responses, d == messages, d == rerank:
		e.scanner.Reset(d.kind(), sink)
		e.scanner.SetHead(&e.opening)
	default:
		e.scanner.Reset(d.kind(), sink)
	}
}

// ReadsRequest says whether the body's bytes are wanted.
func (e *Exchange) ReadsRequest() bool { return e.phase == reading }

// RequestBody takes the next bytes of the body, which may be none; end says
// that they are the last. At the end the verdict is the decision.
func (e *Exchange) RequestBody(chunk []byte, end bool) *Verdict {
	v := &e.worker.verdict
	v.reset()
	if e.phase != reading {
		return v
	}
	if len(chunk) > 0 && !e.head.encoded {
		e.scanner.Write(chunk)
		if e.keep > 0 {
			e.keepBody(chunk)
		}
	}
	if end {
		e.phase = sent
		e.decide(v)
	}
	return v
}

// keepBody adds to the body that may have to be sent to /tokenize.
func (e *Exchange) keepBody(chunk []byte) {
	var ok bool
	if e.body, ok = e.worker.tier2.kept.append(e.body, chunk, int(e.keep)); !ok {
		e.keep, e.overflow = 0, true
	}
}

// ReadsResponse says whether the answer's head is wanted.
func (e *Exchange) ReadsResponse() bool {
	return e.phase == reading || e.phase == asking || e.phase == sent
}

// ResponseHeaders takes the answer's head. upstream gives the address of the
// replica that answered, as Envoy prints it, empty when Envoy or a filter
// answered; it is asked for only where that is in doubt. end says that no body
// follows.
func (e *Exchange) ResponseHeaders(h Headers, upstream func() []byte, end bool) *Verdict {
	v := &e.worker.verdict
	v.reset()
	if !e.ReadsResponse() {
		return v
	}
	decided := e.phase == sent
	e.phase = answering
	e.answer.read(h)
	e.ended = end
	if decided {
		e.takeHead(v, upstream)
	}
	return v
}

// takeHead learns from the head who answered and how loaded it is.
func (e *Exchange) takeHead(v *Verdict, upstream func() []byte) {
	if !e.head.askedLoad {
		e.answer.strip(v)
	}
	address := e.address()
	if e.named < 0 || e.pool.doubts(&e.answer, e.sentAt) {
		address = upstream()
	}
	e.answeredLen = copy(e.answeredBy[:], address)
	if len(address) > 0 {
		e.takeUpstream(e.answeredBy[:e.answeredLen])
		e.takeReport()
	}
	e.answer.report = nil
	if e.explained {
		v.add(decisionHeader, e.worker.scratch.decisionOf(e))
		if load := e.worker.scratch.loadOf(e); len(load) > 0 {
			v.add(loadHeader, load)
		}
	}
	if e.answer.status != 200 {
		return
	}
	if e.reads = !e.ended && !e.answer.encoded; e.reads {
		e.said.Reset(e.answer.stream)
	}
	if e.pool.indexed() {
		e.takeIn(v)
	}
}

// takeIn is about a request that a replica has taken in: its tokens may be worth
// a call.
func (e *Exchange) takeIn(v *Verdict) {
	e.learn(v, e.scanner.Request(), e.worker.env.Now())
	if e.body != nil {
		e.worker.tier2.kept.spend(e.body)
		e.body = nil
	}
}

// address is that of the replica named first.
func (e *Exchange) address() []byte {
	if e.named < 0 {
		return nil
	}
	return e.pool.router.Address(e.named)
}

// takeUpstream corrects the account and the index if another replica answered
// than the one named first, and if the answer is a refusal.
func (e *Exchange) takeUpstream(upstream []byte) {
	r := e.pool.router
	slot := r.Slot(upstream)
	if slot != e.named {
		if e.named >= 0 {
			e.worker.tally.add(e.pool.series.misses, 1)
			e.withdraw(e.named)
			e.pool.missedAt = e.sentAt
		}
		r.Move(&e.ticket, e.worker.env.Now(), slot, e.uncachedAt(slot), e.named >= 0)
		e.record(slot)
	}
	if e.answer.status >= 400 {
		e.withdraw(slot)
	}
}

// uncachedAt is the part of the prompt, in tokens, that the look-up did not
// find at a slot.
func (e *Exchange) uncachedAt(slot int) uint32 {
	if slot < 0 || slot >= len(e.pool.matched) || slot != e.named {
		return e.choice.Prompt
	}
	return e.choice.Uncached
}

// takeReport takes what the replica says of its load. It counts from now on:
// for a stream that is long before the first token, and what is sent there
// meanwhile is not in it.
func (e *Exchange) takeReport() {
	if !e.answer.reported {
		return
	}
	w := e.worker
	w.report = route.NoReport()
	if e.answer.binary {
		route.ParseReportBin(e.answer.report, &w.report)
	} else {
		route.ParseReport(e.answer.report, &w.report)
	}
	e.pool.router.Note(&e.ticket, w.env.Now(), &w.report)
}

// ReadsResponseBody says whether the answer's bytes are wanted. All of a stream
// are: its end says what it took, and whether it is what it seems.
func (e *Exchange) ReadsResponseBody() bool {
	return e.phase == answering && e.reads && e.said.Reads()
}

// ResponseBody takes the next bytes of the answer.
func (e *Exchange) ResponseBody(chunk []byte) {
	if e.ReadsResponseBody() {
		e.said.Write(chunk)
		e.clock(e.said.Finish != openai.NoFinish || e.said.Ended)
	}
}

// ResponseEnd says that the answer is complete.
func (e *Exchange) ResponseEnd() {
	if e.phase != answering {
		return
	}
	e.ended = true
	if e.reads {
		e.said.End()
		e.clock(true)
	}
}

// clock notes when a stream's first token came, and its last.
func (e *Exchange) clock(last bool) {
	if e.said.Outputs == 0 {
		return
	}
	if e.firstAt == 0 {
		e.firstAt = e.worker.env.Now()
		e.pool.router.FirstToken(&e.ticket, e.firstAt)
		e.worker.tally.observe(e.series.ttft, e.firstAt-e.sentAt)
	}
	if last && e.lastAt == 0 {
		e.lastAt = e.worker.env.Now()
	}
}
