package wire

import "github.com/warmlane/warmlane/examples/replica/engine"

// dialect is how one of the generating paths answers.
type dialect interface {
	// prefix is what the ids of its answers begin with.
	prefix() string
	// whole appends an answer in one piece.
	whole(b []byte, g *generation, choices []choice) []byte
}

// streamer is a dialect that can also answer in a stream.
type streamer interface {
	dialect
	// begin sends the events that do not wait for the prompt to be computed; false,
	// as in all of these, ends the stream.
	begin(e *events) bool
	// open sends what comes with the first token, before it.
	open(e *events) bool
	// delta sends a token.
	delta(e *events, l *letter, finish engine.Finish) bool
	// end sends the last events.
	end(e *events)
	// broken sends what a client sees of an engine that dies under way.
	broken(e *events)
}

// finishAbort is the reason vLLM gives when it is stopped under way.
const finishAbort engine.Finish = "abort"

// usage is the account of an answer.
type usage struct{ prompt, completion, cached, created int }

// usage sums up the choices; a prompt counts once, whatever its number of choices.
func (g *generation) usage() (u usage) {
	u.completion = g.x.entry.CompletionTokens
	u.prompt = g.x.entry.PromptTokens
	u.cached = g.cached()
	for i := 0; i < len(g.reqs); i += g.call.copies {
		u.created += g.reqs[i].CreatedTokens(g.x.s.cfg.Engine.BlockSize)
	}
	return u
}
