package openai

import "bytes"

// events frames an event stream as the HTML standard's server-sent events
// (section 9.2.6): lines end with CR, LF or CRLF, a blank line ends the event,
// the space after the colon is optional, the data of several lines is joined by
// line breaks. Of an event's other fields it knows the name error.
type events struct {
	gist    gist
	refrain refrain
	line    lineState
	cr      bool // the last byte was a CR, so an LF now ends nothing
	begun   bool // an event has begun
	data    bool // and has data
	failed  bool // and is named error
	start   int  // where it began in the chunk, -1 in an earlier one
	field   [12]byte
	kept    int // bytes of a line's beginning in field
}

type lineState uint8

const (
	lineStart lineState = iota
	lineField           // in what may become data:
	lineSpace           // after data:, where one space does not count
	lineData
	lineOther
)

const dataField = "data:"

func (e *events) reset() {
	e.line, e.cr, e.refrain.head = lineStart, false, e.refrain.head[:0]
	e.clear()
}

// clear forgets the event.
func (e *events) clear() {
	e.begun, e.data, e.failed = false, false, false
	e.gist.reset()
}

// write reads the next bytes of the stream up to its end mark.
func (e *events) write(b []byte, facts *Facts) {
	e.start = -1
	for i := 0; i < len(b) && !facts.Ended; {
		switch {
		case e.cr:
			e.cr = false
			if b[i] == '\n' {
				i++
			}
		case e.line == lineStart:
			i = e.startLine(b, i, facts)
		case e.line == lineField:
			i = e.readField(b, i)
		case e.line == lineSpace:
			if e.line = lineData; b[i] == ' ' {
				i++
			}
		case e.line == lineData:
			if i = e.gist.write(b, i); i < len(b) && isBreak(b[i]) {
				i = e.endLine(b, i)
			}
		default:
			if i = e.readOther(b, i); i < len(b) {
				i = e.endLine(b, i)
			}
		}
	}
}

// startLine takes the first byte of a line, or a whole event that is the
// refrain. (If that ends with a CR and an LF follows, the LF is one more blank
// line and does no harm.)
func (e *events) startLine(b []byte, i int, facts *Facts) int {
	if !e.begun {
		if n := e.refrain.match(b[i:]); n > 0 {
			if !facts.Failed {
				facts.Outputs++
			}
			return i + n
		}
		e.begun, e.start = true, i
	}
	switch {
	case isBreak(b[i]):
		i = e.endLine(b, i)
		e.endEvent(b[:i], facts)
		return i
	case len(b)-i > len(dataField) && string(b[i:i+len(dataField)]) == dataField:
		e.line, e.data = lineSpace, true
		return i + len(dataField)
	}
	e.line, e.kept = lineField, 0
	return i
}

// endLine passes the line break at b[i].
func (e *events) endLine(b []byte, i int) int {
	e.line = lineStart
	if b[i] == '\r' {
		if i+1 < len(b) && b[i+1] == '\n' {
			return i + 2
		}
		e.cr = i+1 == len(b)
	}
	return i + 1
}

// readField reads the beginning of a line until it is data: or is not.
func (e *events) readField(b []byte, i int) int {
	for ; i < len(b); i++ {
		if e.kept == len(dataField) || b[i] != dataField[e.kept] {
			e.line = lineOther
			return i
		}
		e.field[e.kept] = b[i]
		if e.kept++; e.kept == len(dataField) {
			e.line, e.data = lineSpace, true
			return i + 1
		}
	}
	return i
}

// readOther reads a line that is no data up to its end.
func (e *events) readOther(b []byte, i int) int {
	end := i + lineRun(b[i:])
	if e.kept <= len(e.field) {
		copy(e.field[e.kept:], b[i:end])
	}
	e.kept = min(e.kept+end-i, len(e.field)+1)
	if end < len(b) && e.kept <= len(e.field) {
		name, is := bytes.CutPrefix(e.field[:e.kept], []byte("event:"))
		e.failed = e.failed && !is || is && string(bytes.TrimPrefix(name, []byte(" "))) == "error"
	}
	return end
}

// endEvent takes the event that ends with b.
func (e *events) endEvent(b []byte, facts *Facts) {
	e.tell(facts)
	g := &e.gist
	if e.start >= 0 && g.texts == 1 && g.state == gistWhole && g.said == onlyOutput {
		e.refrain.learn(b[e.start:], g.from-e.start, g.to-e.start)
	}
	e.clear()
}

var onlyOutput = said{usage: noUsage, read: -1, written: -1, output: true}

// tell adds the event to the facts, if it is one.
func (e *events) tell(facts *Facts) {
	g := &e.gist
	if !e.data {
		return
	}
	if e.failed {
		facts.Failed = true
	}
	if g.state == gistWhole || g.state == gistDone {
		g.said.tell(facts)
	}
}

// end is the end of the stream.
func (e *events) end(facts *Facts) {
	e.tell(facts)
	e.clear()
}
