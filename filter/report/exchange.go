package report

import (
	"bytes"

	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/route"
)

// Names of the headers that are read and written.
const (
	WorkHeader   = route.WorkHeader
	ReportHeader = "endpoint-load-metrics"
	BinaryHeader = "endpoint-load-metrics-bin"
)

// bytesPerToken is how requests are counted whose work nobody announced.
const bytesPerToken = 4

// silent is how many bytes of a stream may pass in which no output is seen
// before it is taken to be of a dialect that is not known.
const silent = 64 << 10

// Headers walks a header map. Names are lower-case, as HTTP/2 has them, and
// name and value are valid until the next call.
type Headers interface {
	Next() (name, value []byte, ok bool)
}

// Exchange is one request and its answer. It may be used again after Reset.
type Exchange struct {
	reporter *Reporter
	ticket   route.Ticket
	phase    phase
	body     int64         // bytes of the request's body so far, if its length was not said
	answer   openai.Answer // until the first token
	answered int           // bytes of it
}

// phase is how far an exchange is.
type phase uint8

const (
	idle     phase = iota
	counting       // the body, to know how much it is
	entered        // in the ledger
	awaiting       // its first token
	ended
)

// NewExchange returns an exchange that is ready for its first event.
func (r *Reporter) NewExchange() *Exchange { return &Exchange{reporter: r} }

// Reset makes e ready for another request and keeps its memory.
func (e *Exchange) Reset() {
	e.ticket, e.phase, e.body, e.answered = route.Ticket{}, idle, 0, 0
}

// RequestHeaders is the first event; end says that no body follows. strip says
// that [WorkHeader] is there, which is not for the engine.
func (e *Exchange) RequestHeaders(h Headers, now int64, end bool) (strip bool) {
	head := e.read(h)
	switch {
	case !head.post || !head.counts || end:
	case head.announced:
		e.enter(now, head.prompt, head.uncached)
	case head.length >= 0:
		e.estimate(now, head.length)
	default:
		e.phase = counting
	}
	return head.work
}

// requestHead is what the headers of a request say about it.
type requestHead struct {
	post, counts     bool
	length           int64 // of the body; -1 = not said
	work             bool  // the work header is there ...
	announced        bool  // ... and can be read
	prompt, uncached uint32
}

func (e *Exchange) read(h Headers) requestHead {
	r := requestHead{length: -1}
	for {
		name, value, ok := h.Next()
		if !ok {
			return r
		}
		switch string(name) {
		case ":method":
			r.post = string(value) == "POST"
		case ":path":
			r.counts = e.reporter.env.Counts(value)
		case "content-length":
			r.length = parseLength(value)
		case WorkHeader:
			r.work = true
			r.prompt, r.uncached, r.announced = route.ParseWork(value)
		}
	}
}

// parseLength reads a length; -1 if it is none.
func parseLength(b []byte) int64 {
	if len(b) == 0 || len(b) > 15 {
		return -1
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// CountsRequest says whether the size of the body is wanted.
func (e *Exchange) CountsRequest() bool { return e.phase == counting }

// RequestBody tells of the next bytes of the body; end says that they are the
// last.
func (e *Exchange) RequestBody(size int, now int64, end bool) {
	if e.phase != counting {
		return
	}
	if e.body += int64(size); end {
		e.estimate(now, e.body)
	}
}

// maxEstimate bounds what is made of a body's length, in tokens: large ones
// hold pictures and sound.
const maxEstimate = 1 << 20

// estimate enters a request of which only the length is known. As much of it
// is taken to be resident as lately was of all prompts.
func (e *Exchange) estimate(now, length int64) {
	prompt := uint32(min(length/bytesPerToken, maxEstimate))
	uncached := prompt
	if v, ok := e.reporter.engine(now); ok && v.Hit == v.Hit {
		uncached -= min(uint32(float32(prompt)*v.Hit), prompt)
	}
	e.enter(now, prompt, uncached)
}

// enter puts the request into the ledger.
func (e *Exchange) enter(now int64, prompt, uncached uint32) {
	r := e.reporter
	r.held[0] = prompt - uncached
	q := route.Query{Prompt: prompt, Matched: r.held[:]}
	r.books.Choose(&q, now, 0, &r.choice, &e.ticket)
	e.phase = entered
}

// ResponseHeaders takes the answer's head and gives the value of
// [ReportHeader], which is to replace what is there; it is valid until the
// reporter's next event. bin says that [BinaryHeader] is there and to be
// removed. end says that no body follows.
func (e *Exchange) ResponseHeaders(h Headers, now int64, end bool) (stamp []byte, bin bool) {
	r := e.reporter
	r.response = route.NoReport()
	stream, encoded := false, false
	for {
		name, value, ok := h.Next()
		if !ok {
			break
		}
		switch string(name) {
		case "content-type":
			stream = bytes.HasPrefix(value, []byte("text/event-stream"))
		case "content-encoding":
			encoded = len(value) > 0 && !bytes.EqualFold(value, []byte("identity"))
		case ReportHeader:
			route.ParseReport(value, &r.response)
		case BinaryHeader:
			bin = true
			route.ParseReportBin(value, &r.response)
		}
	}
	switch {
	case end:
		e.phase = ended
	case stream && e.phase == entered:
		e.await(encoded)
	}
	return r.report(now, &r.response), bin
}

// await turns the request into one that waits for its first token. In bytes
// that cannot be read the first one stands for it.
func (e *Exchange) await(encoded bool) {
	e.phase = awaiting
	e.reporter.books.Streams(&e.ticket)
	e.answer.Reset(true)
	e.answered = 0
	if encoded {
		e.answered = silent
	}
}

// ReadsResponse says whether the answer's bytes are wanted.
func (e *Exchange) ReadsResponse() bool { return e.phase == awaiting }

// ResponseBody takes the next bytes of the answer.
func (e *Exchange) ResponseBody(chunk []byte, now int64) {
	if e.phase != awaiting || len(chunk) == 0 {
		return
	}
	e.answer.Write(chunk)
	if e.answered += len(chunk); e.answer.Outputs > 0 || e.answered > silent {
		e.reporter.books.FirstToken(&e.ticket, now)
		e.phase = entered
	}
}

// ResponseEnd says that the answer is complete.
func (e *Exchange) ResponseEnd() { e.phase = ended }

// Settle ends the exchange, on whatever way out: it takes the request out of
// the ledger, for all workers to see at once. A second call does nothing.
func (e *Exchange) Settle(now int64) {
	if !e.ticket.Open() {
		return
	}
	how := route.Cancelled
	if e.phase == ended {
		how = route.OK
	}
	e.reporter.books.Settle(&e.ticket, now, how)
	e.reporter.books.Tick(now)
}
