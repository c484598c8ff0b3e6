package wire

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// generation is a call on its way through the engine.
type generation struct {
	x       *exchange
	dialect dialect
	call    *call
	model   string // as the answer names it
	id      string
	created int64
	reqs    []*engine.Request // one for each choice
	box     *mailbox
	left    int // choices that go on
	faults  Faults
}

func (s *Server) chatCompletions(x *exchange) { x.generate(chatDialect, x.fields(decodeChat)) }

func (s *Server) completions(x *exchange) { x.generate(completionDialect, x.fields(decodeCompletion)) }

// fields makes a reader of JSON bodies for generate.
func (x *exchange) fields(decode func(gjson.Result) (*call, *apiError)) func() (*call, *apiError) {
	return func() (*call, *apiError) { return x.decode(decode) }
}

// generate serves one of the paths whose prompts go through the engine. understand
// reads the body, which has arrived.
func (x *exchange) generate(d dialect, understand func() (*call, *apiError)) {
	s := x.s
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	if !x.read() {
		return
	}
	g := &generation{x: x, dialect: d, created: x.created(), box: newMailbox(), faults: s.cfg.Faults.take()}
	if g.failEarly() {
		return
	}
	var refusal *apiError
	if g.call, refusal = understand(); refusal == nil {
		refusal = g.prepare()
	}
	if refusal == nil {
		refusal = g.submit()
	}
	if refusal != nil {
		x.refuse(refusal)
		return
	}
	defer s.cfg.Runner.Abort(g.reqs...)
	g.answer()
}

// answer sends what the engine generates and then writes down the figures.
func (g *generation) answer() {
	defer g.note()
	if d, ok := g.dialect.(streamer); ok && g.call.stream {
		g.stream(d)
		return
	}
	g.whole()
}

// decode checks the media type and the JSON and reads the fields.
func (x *exchange) decode(decode func(gjson.Result) (*call, *apiError)) (*call, *apiError) {
	media, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return nil, wrongMediaType
	}
	root, refusal := parse(x.body)
	if refusal != nil {
		return nil, refusal
	}
	c, refusal := decode(root)
	if refusal != nil {
		return nil, refusal
	}
	if id := x.r.Header.Get("X-Session-Id"); id != "" && len(id) <= 1024 {
		c.session = id
	}
	x.entry.Model, x.entry.Stream = c.model, c.stream
	return c, nil
}

// failEarly carries out faults that come before any head.
func (g *generation) failEarly() bool {
	x := g.x
	switch f := g.faults; {
	case f.Status != 0:
		x.refuse(&apiError{f.Status, http.StatusText(f.Status), "This replica was told to fail.", ""})
	case f.Hang:
		x.entry.Outcome = OutcomeFault
		x.wait()
	case f.Reset:
		x.entry.Outcome = OutcomeFault
		x.reset()
	default:
		return false
	}
	x.entry.Outcome = OutcomeFault
	return true
}

// prepare turns the call into engine requests.
func (g *generation) prepare() *apiError {
	s, c := g.x.s, g.call
	space, name, refusal := s.resolve(c.model)
	if refusal != nil {
		return refusal
	}
	space.Salt = c.salt
	g.model = name
	g.name()
	if c.messages != nil {
		c.prompts = [][]engine.Token{engine.Chat(nil, c.tools, c.messages, true)}
	}
	for _, p := range c.prompts {
		if refusal := s.fits(len(p), c.limit); refusal != nil {
			return refusal
		}
		g.x.entry.PromptTokens += len(p)
		for range c.copies {
			g.add(p, space)
		}
	}
	return nil
}

// fits refuses a prompt that is empty or leaves no room for the answer.
func (s *Server) fits(prompt, answer int) *apiError {
	limit := s.cfg.Engine.MaxModelLen
	switch {
	case prompt == 0:
		return badRequest("The decoder prompt cannot be empty", "prompt")
	case prompt >= limit:
		return tooLong(limit, prompt)
	case answer > limit-prompt:
		return noRoom(limit, prompt, answer)
	}
	return nil
}

func (g *generation) add(prompt []engine.Token, space engine.Space) {
	choice, box := len(g.reqs), g.box
	g.reqs = append(g.reqs, g.x.s.cfg.Runner.Prepare(engine.Spec{
		Model: g.model, Prompt: prompt, MaxTokens: g.call.limit, Space: space, Session: g.call.session, ReportFull: g.call.full,
		Deliver: func(o engine.Output) { box.put(letter{choice, o}) },
	}))
}

// name makes the answer's id.
func (g *generation) name() {
	x := g.x
	id := x.id()
	if x.s.cfg.EchoIDs {
		if given := x.entry.RequestID; given != "" {
			id = given
		}
		x.w.Header().Set("X-Request-Id", id)
	}
	g.id = g.dialect.prefix() + id
}

// id makes an id for an answer, or takes it from the body of the request.
func (x *exchange) id() string {
	if x.s.cfg.Still {
		return x.entry.BodySHA256[:16]
	}
	return newID()
}

// created is what an answer says of its time, in seconds.
func (x *exchange) created() int64 {
	if x.s.cfg.Still {
		return 0
	}
	return x.entry.Time.Unix()
}

// submit queues the requests, all or none.
func (g *generation) submit() *apiError {
	err := g.x.s.cfg.Runner.Submit(g.reqs...)
	g.left = len(g.reqs)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrQueueFull):
		return busy
	}
	return badRequest(err.Error(), "")
}

// next waits for outputs; there may be none yet. Not ok: the client has left, or
// the server closes.
func (g *generation) next() (letters []letter, ok bool) {
	select {
	case <-g.box.ready:
		return g.box.take(), true
	case <-g.x.r.Context().Done():
		g.x.entry.Outcome = OutcomeCancelled
	case <-g.x.s.closing.Done():
		g.x.entry.Outcome = OutcomeFault
	}
	return nil, false
}

// note writes the figures into the journal.
func (g *generation) note() {
	e := &g.x.entry
	g.x.s.cfg.Runner.Do(func(*engine.Engine, time.Duration) {
		e.CachedTokens = g.cached()
		for i, r := range g.reqs {
			if t := r.TTFT().Seconds(); i == 0 || t > 0 && t < e.TTFT {
				e.TTFT = t
			}
		}
	})
}

// cached is the number of prompt tokens that came from the cache, counted once
// for each prompt.
func (g *generation) cached() (n int) {
	for i := 0; i < len(g.reqs); i += g.call.copies {
		n += g.reqs[i].CachedTokens()
	}
	return n
}
