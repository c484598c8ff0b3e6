package wire

import (
	"net/http"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// stream sends the choices as server-sent events. The head goes out before the
// prompt is computed, as vLLM's does: a head is no first token.
func (g *generation) stream() {
	x := g.x
	x.compress()
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	x.entry.Status = http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	e := &events{g: g, out: http.NewResponseController(x.w), usage: g.call.usage || x.s.cfg.ForceUse}
	e.running = e.usage && g.call.running
	if e.flush() != nil {
		return
	}
	e.run()
}

// events writes one stream.
type events struct {
	g       *generation
	out     *http.ResponseController
	buf     []byte
	prefix  []byte // what all chunks begin with
	sent    int
	opened  bool
	usage   bool // send the usage event at the end
	running bool // put the running usage into each event
}

// run passes tokens on until all choices are done, the client leaves or a fault strikes.
func (e *events) run() {
	for e.g.left > 0 {
		letters, ok := e.g.next()
		if !ok {
			return
		}
		for i := range letters {
			if !e.letter(&letters[i]) {
				return
			}
		}
	}
	e.finish()
}

// letter sends one token; false ends the stream.
func (e *events) letter(l *letter) bool {
	if !e.opened && !e.open() {
		return false
	}
	g, out := e.g, &l.out
	finish := out.Finish
	if abort := g.faults.AbortAfter; abort > 0 && e.sent+1 >= abort {
		finish, g.x.entry.Outcome = finishAbort, OutcomeFault
	}
	g.x.entry.CompletionTokens++
	if !e.send(e.appendDelta(e.start(), l.choice, out, finish)) {
		return false
	}
	if finish == finishAbort {
		g.left = 0
		e.finish()
		return false
	}
	if finish != "" {
		g.left--
	}
	return true
}

// open sends the first event of each choice, which only names the role.
func (e *events) open() bool {
	e.opened = true
	d := e.g.dialect
	if d.role == "" {
		return true
	}
	for i := range e.g.reqs {
		b := append(appendIndex(e.start(), i), d.role...)
		b = e.appendRunning(append(b, ']'), i, 0)
		if !e.send(append(b, d.roleEnd...)) {
			return false
		}
	}
	return true
}

// start begins a chunk in the stream's buffer.
func (e *events) start() []byte {
	if e.prefix == nil {
		e.prefix = e.g.appendHead([]byte("data: "), e.g.dialect.chunk)
	}
	return append(e.buf[:0], e.prefix...)
}

func (e *events) appendDelta(b []byte, choice int, out *engine.Output, finish engine.Finish) []byte {
	d := e.g.dialect
	b = append(appendIndex(b, choice), d.delta...)
	b = appendJSON(b, out.Text)
	b = appendFinish(append(b, d.deltaEnd...), finish)
	if finish == "" {
		b = append(b, d.more...)
	} else {
		b = append(b, d.last...)
	}
	b = e.appendRunning(append(b, ']'), choice, out.Index)
	return append(b, '}')
}

// appendRunning adds the usage so far to an event, if that was asked for.
func (e *events) appendRunning(b []byte, choice, completion int) []byte {
	if !e.running {
		return b
	}
	u := usage{prompt: e.g.reqs[choice].PromptTokens(), completion: completion}
	b = u.appendCounts(append(b, `,"usage":`...))
	return append(b, `,"completion_tokens_details":null}`...)
}

// finish sends the usage event and the end mark.
func (e *events) finish() {
	if e.usage {
		b := append(e.start(), `],"usage":`...)
		b = e.g.appendLast(b, e.g.usage())
		b = append(b, `,"system_fingerprint":"`...)
		b = append(b, e.g.x.s.fingerprint...)
		if !e.send(append(b, `"}`...)) {
			return
		}
	}
	e.done()
}

func (e *events) done() {
	if e.write([]byte("data: [DONE]\n\n")) {
		e.close()
	}
}

// send writes one event, and after it whatever fault is due; false ends the stream.
func (e *events) send(event []byte) bool {
	e.buf = append(event, "\n\n"...)
	if !e.write(e.buf) {
		return false
	}
	e.sent++
	return !e.strike()
}

// strike carries out the faults that wait for a number of events.
func (e *events) strike() bool {
	x, f := e.g.x, &e.g.faults
	due := func(after int) bool { return after > 0 && e.sent >= after }
	switch {
	case due(f.DieAfter):
		x.entry.Outcome = OutcomeFault
		x.reset()
	case due(f.StallAfter):
		x.entry.Outcome = OutcomeFault
		x.wait()
		return true
	case due(f.ErrorAfter):
		x.entry.Outcome = OutcomeFault
		b := engineDead.append(append(e.buf[:0], "data: "...), false)
		if e.write(append(b, "\n\n"...)) {
			e.done()
		}
		return true
	}
	return false
}

// write sends bytes as one HTTP chunk.
func (e *events) write(b []byte) bool {
	_, err := e.g.x.w.Write(b)
	if err == nil {
		err = e.flush()
	}
	if err != nil {
		e.g.x.entry.Outcome = OutcomeCancelled
	}
	return err == nil
}

func (e *events) flush() error {
	if z, ok := e.g.x.w.(*zipped); ok {
		return z.flush()
	}
	return e.out.Flush()
}

func (e *events) close() {
	if z, ok := e.g.x.w.(*zipped); ok {
		_ = z.end()
	}
}
