package wire

import (
	"net/http"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// stream sends the choices as server-sent events. The head goes out before the
// prompt is computed, as vLLM's does: a head is no first token.
func (g *generation) stream(d streamer) {
	x := g.x
	x.compress()
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	x.entry.Status = http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	e := &events{g: g, d: d, out: http.NewResponseController(x.w), usage: g.call.usage || x.s.cfg.ForceUse}
	e.running = e.usage && g.call.running
	if e.flush() == nil && d.begin(e) {
		e.run()
	}
}

// events writes one stream.
type events struct {
	g        *generation
	d        streamer
	out      *http.ResponseController
	buf      []byte
	prefix   []byte        // what all chunks begin with, if the dialect has such a thing
	text     []byte        // of the answer so far, if the dialect repeats it at its end
	finished engine.Finish // why the answer ended
	sent     int
	opened   bool
	usage    bool // send the usage event at the end
	running  bool // put the running usage into each event
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
	g, finish := e.g, l.out.Finish
	if abort := g.faults.AbortAfter; abort > 0 && e.sent+1 >= abort {
		finish, g.x.entry.Outcome = finishAbort, OutcomeFault
	}
	g.x.entry.CompletionTokens++
	if !e.d.delta(e, l, finish) {
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

// open sends what comes with the first token.
func (e *events) open() bool {
	e.opened = true
	return e.d.open(e)
}

// named begins an event with a name in the stream's buffer.
func (e *events) named(name string) []byte {
	b := append(append(e.buf[:0], "event: "...), name...)
	return append(b, "\ndata: "...)
}

// finish sends what ends the stream.
func (e *events) finish() {
	e.d.end(e)
	e.close()
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
		e.d.broken(e)
		e.close()
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
