package engine

// Part is one piece of a message. Text parts are tokenized as they stand; of any
// other part, such as an image, Opaque holds the canonical bytes and stands for
// it as a fixed number of tokens.
type Part struct {
	Text   string
	Opaque []byte
}

// Message is one turn of a conversation. Extra is what a template would print
// behind the parts, such as tool calls.
type Message struct {
	Role  string
	Parts []Part
	Extra string
}

// opaqueTokens is how many tokens stand for a part that is not text.
const opaqueTokens = 16

var newline = Tokenize(nil, "\n")[0]

// Chat appends the tokens of a conversation to dst, in the frame that ChatML
// models use: start, role, line end, content, end, line end. Each message begins
// with a token of its own, so the tokens of a conversation are the first tokens
// of the same conversation continued. preamble, if not empty, is a message before
// the first one (tools are put there). With prompt the frame of the answer is opened.
func Chat(dst []Token, preamble string, messages []Message, prompt bool) []Token {
	if preamble != "" {
		dst = frame(dst, Message{Role: "tools", Parts: []Part{{Text: preamble}}})
	}
	for _, m := range messages {
		dst = frame(dst, m)
	}
	if prompt {
		dst = open(dst, "assistant")
	}
	return dst
}

func open(dst []Token, role string) []Token {
	dst = append(dst, tokenStart)
	dst = Tokenize(dst, role)
	return append(dst, newline)
}

func frame(dst []Token, m Message) []Token {
	dst = open(dst, m.Role)
	for _, p := range m.Parts {
		if p.Opaque != nil {
			dst = opaque(dst, p.Opaque)
			continue
		}
		dst = Tokenize(dst, p.Text)
	}
	dst = Tokenize(dst, m.Extra)
	return append(dst, tokenEnd, newline)
}

// opaque stands for bytes that are not text, so that equal images are equal
// prompts and different ones are not.
func opaque(dst []Token, b []byte) []Token {
	var h uint64 = 14695981039346656037
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	for i := uint64(0); i < opaqueTokens; i++ {
		dst = append(dst, firstText+Token(mix(h+i)%uint64(Vocabulary-firstText)))
	}
	return dst
}
