package openai

// Answer reads what an engine answers as it passes, in chunks of any cut, and
// holds none of it back. Reset makes it ready, for the first answer too.
//
// It knows an event stream and a whole JSON document, each in the dialects of
// chat completions, completions, responses and Anthropic's messages. What
// they say is told apart by where it stands, so text that looks like a usage is
// text. Keys count as they are spelled: one with an escape is another key.
type Answer struct {
	Facts
	events events
	stream bool
	mark   int // bytes of a byte order mark that have come, past it 3
}

// Facts are what an answer has said so far.
type Facts struct {
	Usage Usage
	// Outputs is how many events of a stream carried output: text, reasoning, a
	// refusal, a tool call or a part of one. A role, an empty text, a usage, a
	// comment carry none, nor does what comes after an error.
	Outputs int
	Finish  Finish
	// Failed says that there was an error: an error member, an event of type
	// error, a response that failed.
	Failed bool
	// Ended says that the end mark came: [DONE], a response's last event,
	// message_stop; or that the JSON document is whole. What follows is not
	// looked at.
	Ended bool
}

// Broken says that the engine did not do what it was asked for, though the
// answer's status may be 200.
func (f *Facts) Broken() bool { return f.Failed || f.Finish >= Abort }

// Reset makes a ready for an answer, which is an event stream or a JSON document.
// It keeps a's memory.
func (a *Answer) Reset(stream bool) {
	a.Facts, a.stream, a.mark = Facts{Usage: noUsage}, stream, 0
	a.events.reset()
}

// byteOrderMark may stand before either form.
const byteOrderMark = "\xEF\xBB\xBF"

// Write reads the next bytes of the answer. It keeps no reference to them.
func (a *Answer) Write(chunk []byte) {
	for a.mark < len(byteOrderMark) && len(chunk) > 0 {
		if chunk[0] != byteOrderMark[a.mark] {
			seen := a.mark
			a.mark = len(byteOrderMark)
			a.read([]byte(byteOrderMark[:seen]))
			break
		}
		a.mark++
		chunk = chunk[1:]
	}
	a.read(chunk)
}

func (a *Answer) read(chunk []byte) {
	switch {
	case a.Ended:
	case a.stream:
		a.events.write(chunk, &a.Facts)
	default:
		a.document(chunk)
	}
}

// document reads an answer that is no stream.
func (a *Answer) document(chunk []byte) {
	g := &a.events.gist
	for i := 0; i < len(chunk) && !a.Ended; i++ { // past the line break
		i = g.write(chunk, i)
		switch g.state {
		case gistBroken:
			return
		case gistWhole:
			g.said.tell(&a.Facts)
			a.Outputs, a.Ended = 0, true
		}
	}
}

// End says that no more bytes follow. An event that lacks only its blank line
// counts.
func (a *Answer) End() {
	if a.stream && !a.Ended {
		a.events.end(&a.Facts)
	}
}

// Reads says whether more bytes can change the facts.
func (a *Answer) Reads() bool {
	return !a.Ended && (a.stream || a.events.gist.state != gistBroken)
}
