package openai

// gist reads one JSON document for what it says of its own making. It takes
// the document in pieces of any cut and keeps a few bytes of it. It checks of
// JSON's grammar what it needs to know where it is.
type gist struct {
	state gistState
	said  said
	open  [8]spot // the containers around, from the document inwards
	depth int
	skip  int  // containers around in a value that does not matter
	fresh bool // the outermost of these has shown nothing yet
	at    spot // what the value at hand is
	esc   bool // a backslash came last
	n     int64
	word  [32]byte // of the key or word at hand, what came in earlier pieces
	kept  int      // bytes of it that came; may be more than there is room for

	texts    int // texts that were output; one that was an error counts twice
	from, to int // the last such text in its piece
}

type gistState uint8

const (
	gistStart  gistState = iota // before the document
	gistValue                   // after a colon, or in an array that matters
	gistKey                     // in an object that matters: a key or its end
	gistColon                   // after a key
	gistNext                    // after a value
	gistInKey                   // in a string: all from here ...
	gistInWord                  //
	gistInText                  //
	gistInSkip                  // ... to here
	gistCount                   // in a number that matters
	gistScalar                  // in another number or a literal
	gistSkip                    // in a container that does not matter
	gistMark                    // in [DONE]
	gistDone                    // after it, whatever comes
	gistWhole                   // after the document
	gistBroken                  // this is no JSON
)

func (g *gist) reset() {
	g.state, g.said, g.depth, g.skip = gistStart, nothingSaid, 0, 0
	g.esc, g.kept, g.texts = false, 0, 0
}

// doneMark is what stands for data in the last event of a stream.
const doneMark = "[DONE]"

// write reads b from i on and returns where it stopped: at a line break, at the
// end of the document, or at the end of b.
func (g *gist) write(b []byte, i int) int {
	for i < len(b) {
		switch {
		case g.state < gistInKey:
			c := b[i]
			switch {
			case c > ' ':
				i = g.token(b, i)
			case isBreak(c):
				return i
			default:
				i++
			}
		case g.state <= gistInSkip:
			i = g.str(b, i)
		case g.state <= gistScalar:
			i = g.scalar(b, i)
		case g.state == gistSkip:
			i = g.skipped(b, i)
		case g.state == gistMark:
			i = g.mark(b, i)
		case g.state == gistWhole:
			i = g.after(b, i)
		default:
			return i + lineRun(b[i:])
		}
		if g.state == gistWhole || i < len(b) && isBreak(b[i]) {
			return i
		}
	}
	return i
}

// after takes a byte after the document.
func (g *gist) after(b []byte, i int) int {
	switch {
	case b[i] > ' ':
		g.state = gistBroken
	case !isBreak(b[i]):
		return i + 1
	}
	return i
}

// token takes what lies between strings, numbers and literals; b[i] is no
// white space.
func (g *gist) token(b []byte, i int) int {
	c := b[i]
	switch g.state {
	case gistStart:
		g.begin(c)
	case gistKey:
		switch c {
		case '"':
			return g.key(b, i+1)
		case '}':
			g.pop(true)
		default:
			g.state = gistBroken
		}
	case gistColon:
		g.state = gistValue
		if c != ':' {
			g.state = gistBroken
		}
	case gistValue:
		return g.value(b, i)
	default:
		g.next(c)
		if g.state == gistKey && i+1 < len(b) && b[i+1] == '"' {
			return g.key(b, i+2)
		}
	}
	return i + 1
}

// begin takes the document's first byte.
func (g *gist) begin(c byte) {
	switch c {
	case '{':
		g.push(theAnswer)
	case '[':
		g.state, g.kept = gistMark, 1
	default:
		g.state = gistBroken
	}
}

// next takes the byte after a value in a container that matters.
func (g *gist) next(c byte) {
	array := g.open[g.depth-1] == theChoices
	switch {
	case c == ',' && array:
		g.state, g.at = gistValue, theChoice
	case c == ',':
		g.state = gistKey
	case c == '}' || c == ']':
		g.pop(c == '}')
	default:
		g.state = gistBroken
	}
}

func (g *gist) push(in spot) {
	g.open[g.depth] = in
	g.depth++
	g.state = gistKey
	if in == theChoices {
		g.state, g.at = gistValue, theChoice
	}
}

func (g *gist) pop(object bool) {
	g.depth--
	g.state = gistNext
	if object == (g.open[g.depth] == theChoices) {
		g.state = gistBroken
	} else if g.depth == 0 {
		g.state = gistWhole
	}
}

// value takes the first byte of a value, or the end of an array.
func (g *gist) value(b []byte, i int) int {
	switch c := b[i]; c {
	case '"':
		g.kept = 0
		switch {
		case g.at.isWord():
			g.state = gistInWord
		case g.at >= someDelta && g.at <= someError:
			g.state, g.from = gistInText, i+1
		default:
			g.state = gistInSkip
		}
		return g.str(b, i+1)
	case '{', '[':
		if in := g.at.inner(c == '{'); in != nowhere {
			g.push(in)
		} else {
			g.state, g.skip, g.fresh = gistSkip, 1, true
		}
		return i + 1
	case ']':
		g.next(c)
		return i + 1
	case 'n', 'f':
		g.state = gistScalar
	default:
		if !isDigit(c) && c != '-' && c != 't' {
			g.state = gistBroken
			return i
		}
		g.state = gistScalar
		g.said.something(g.at)
		if g.at.isCount() {
			g.state, g.n = gistCount, 0
		}
	}
	return g.scalar(b, i)
}

// key takes a key that begins with b[i], behind its quote, and if b has it all
// the colon and the beginning of the value too.
func (g *gist) key(b []byte, i int) int {
	end := i + textRun(b[i:])
	if end == len(b) || b[end] != '"' {
		g.state, g.kept = gistInKey, 0
		return g.str(b, i)
	}
	g.at = g.open[g.depth-1].member(b[i:end])
	g.state = gistColon
	if i = end + 1; i < len(b) && b[i] == ':' {
		g.state = gistValue
		if i++; i < len(b) && b[i] > ' ' {
			return g.value(b, i)
		}
	}
	return i
}

// str reads a string from b[i] on, up to and with its closing quote.
func (g *gist) str(b []byte, i int) int {
	start := i
	for i < len(b) {
		if g.esc && b[i] >= ' ' {
			g.esc = false
			i++
			continue
		}
		if i += textRun(b[i:]); i == len(b) {
			break
		}
		switch b[i] {
		case '"':
			g.endString(b, start, i)
			return i + 1
		case '\\':
			g.esc = true
			i++
		default:
			g.state = gistBroken
			return i
		}
	}
	g.keep(b[start:i])
	if g.state == gistInText && i > start {
		g.said.something(g.at)
	}
	return i
}

// keep gathers what has come of a key or word that goes on in the next piece.
func (g *gist) keep(part []byte) {
	if g.state > gistInWord {
		return
	}
	if g.kept < len(g.word) {
		copy(g.word[g.kept:], part)
	}
	g.kept += len(part)
}

// endString takes the end of a string, b[start:end] being its last piece.
func (g *gist) endString(b []byte, start, end int) {
	switch g.state {
	case gistInKey:
		g.at = g.open[g.depth-1].member(g.whole(b[start:end]))
		g.state = gistColon
		return
	case gistInWord:
		g.said.word(g.at, g.whole(b[start:end]))
	case gistInText:
		if end > start {
			g.said.something(g.at)
		}
		g.to = end
		if g.texts++; g.at == someError {
			g.texts++
		}
	case gistInSkip:
		if g.skip > 0 {
			g.state = gistSkip
			return
		}
	}
	g.state = gistNext
}

// whole is all of a key or word, last being its end. Of one that is longer than
// any we know it may be the beginning.
func (g *gist) whole(last []byte) []byte {
	if g.kept == 0 {
		return last
	}
	g.keep(last)
	return g.word[:min(g.kept, len(g.word))]
}

// scalar reads a number or a literal from b[i] on.
func (g *gist) scalar(b []byte, i int) int {
	for ; i < len(b); i++ {
		c := b[i]
		if c <= ' ' || c == ',' || c == '}' || c == ']' {
			if g.state == gistCount {
				g.said.count(g.at, g.n)
			}
			g.state = gistNext
			return i
		}
		if g.state == gistCount {
			if g.n = g.n*10 + int64(c-'0'); !isDigit(c) || g.n > maxTokenCount {
				g.state = gistScalar
			}
		}
	}
	return i
}

// skipped reads a container that does not matter from b[i] on.
func (g *gist) skipped(b []byte, i int) int {
	for i < len(b) {
		c := b[i]
		if g.fresh && c > ' ' {
			g.fresh = false
			if c != '}' && c != ']' {
				g.said.something(g.at)
			}
		}
		switch c {
		case '"':
			g.state = gistInSkip
			if i = g.str(b, i+1); g.state != gistSkip {
				return i
			}
			continue
		case '{', '[':
			g.skip++
		case '}', ']':
			if g.skip--; g.skip == 0 {
				g.state = gistNext
				return i + 1
			}
		case '\n', '\r':
			return i
		}
		i++
		if !g.fresh {
			i += bareRun(b[i:])
		}
	}
	return i
}

// mark reads the mark that ends a stream.
func (g *gist) mark(b []byte, i int) int {
	for ; i < len(b) && g.state == gistMark; i++ {
		if b[i] != doneMark[g.kept] {
			g.state = gistBroken
			return i
		}
		if g.kept++; g.kept == len(doneMark) {
			g.state = gistDone
			g.said.ended = true
		}
	}
	return i
}
