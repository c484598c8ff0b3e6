package openai

// Kind is the dialect of a request, known from its path.
type Kind uint8

// A request of kind Other has no prompt that the scanner knows; only the
// members of its body are read.
const (
	Other       Kind = iota
	Chat             // /v1/chat/completions
	Completions      // /v1/completions
	Responses        // /v1/responses
	Messages         // /v1/messages, as Anthropic's clients send it
	Embeddings       // /v1/embeddings, /pooling and /classify
	Rerank           // /v1/rerank and /v1/score
)

// Sink takes the canonical bytes of a prompt.
type Sink interface {
	// Text takes the next bytes. They are valid during the call.
	Text(b []byte)
	// Border says that a message (or one of several prompts) ends here.
	Border()
	// Reset forgets everything: a new request begins, or the body has a
	// second prompt, which replaces the first.
	Reset()
}

// IDSink is a Sink that also takes the token ids of a prompt which is given as
// ids, or of the first one if there are several.
type IDSink interface {
	Sink
	// IDs takes the next ids as 4-byte little-endian words, always whole ones.
	// They are valid during the call. Text gets the same bytes.
	IDs(words []byte)
}

// Request is what the scanner learned from a body. It is whole after
// [Scanner.Close] and valid until the next [Scanner.Reset].
type Request struct {
	Kind  Kind
	Model Name
	User  Name
	// Session is session_id, what a client calls its conversation; Previous is
	// previous_response_id, the answer that /v1/responses is to go on from.
	Session, Previous Name

	// Where things stand in the body, in bytes from its beginning; -1 if they do
	// not. The spelling of the model's name lies between its quotes at ModelAt and
	// ModelEnd. The closing braces of stream_options and of the body lie at
	// OptionsEnd and BodyEnd: a member that is added before one of these counts,
	// whatever the object has.
	ModelAt, ModelEnd, OptionsEnd, BodyEnd int64

	Stream             bool // "stream": true
	StreamIncludeUsage bool // "stream_options": {"include_usage": true}

	// MaxTokens is max_completion_tokens or max_output_tokens, else max_tokens;
	// -1 if none is known. Numbers that do not fit, and numbers with an exponent, are
	// MaxInt64, so that no spelling makes a large claim look small.
	MaxTokens int64
	// N is how many answers are asked for, by the same rules; 1 if absent.
	N int64

	// Hashes of what belongs to the namespace of the prompt; 0 if absent or
	// null. Tools covers tools and functions. Template covers the arguments
	// that change how the engine renders a prompt from its beginning.
	Salt, Tools, Template uint64
	// Head is the hash of the canonical bytes of what the engine renders before
	// the prompt though clients write it on either side of it: system in
	// /v1/messages, instructions in /v1/responses, the query of documents. The id
	// of the response to go on from is part of it. 0 if there is none of these.
	Head uint64
	// Rest covers all members of the body that have no field here, as an
	// answer cache needs it.
	Rest uint64

	// PromptTokens counts the ids of a prompt given as token ids, else 0.
	PromptTokens int64
	// PromptBytes counts the canonical bytes, in which a line break and other
	// escapes are two, BodyBytes all bytes.
	PromptBytes, BodyBytes int64
	// HeadBytes counts the canonical bytes of the head; PromptBytes has none of
	// them.
	HeadBytes int64
	// Prompts is how many prompts or documents a list of them has, 0 if there is
	// one text or one list of ids.
	Prompts int64
	// OtherParts counts the parts of messages that are not text, such as images.
	OtherParts int64
	// Untold says that vLLM's /tokenize cannot tell the prompt's tokens: it does not
	// read this dialect, or the body has a member that it does not know of and
	// that changes the prompt: documents, reasoning_effort,
	// truncate_prompt_tokens or suffix.
	Untold bool
	// AsideBytes counts the text that the engine renders into the prompt but
	// that is only a digest in the canonical bytes: tool calls, tools, what an
	// answer was reasoned from, and the head, once for each document.
	AsideBytes int64

	// Malformed says what is wrong with the body. If it is set, the canonical
	// bytes mean nothing; the other fields hold what came before the fault.
	Malformed Malformed
}

// maxName is the longest name held.
const maxName = 256

// Name is a string of the body, held up to 256 bytes of its canonical spelling.
type Name struct {
	buf  [maxName]byte
	n    uint16
	over bool
	set  bool
}

// Bytes returns the name itself, without escapes; empty if it is absent, not a
// string, or too long. It is valid as long as the Request.
func (n *Name) Bytes() []byte {
	if !n.set {
		return nil
	}
	return n.buf[:n.n]
}

// Present reports whether the body has the name, as a string of any length.
func (n *Name) Present() bool { return n.set }

// TooLong reports whether the name was longer than is held.
func (n *Name) TooLong() bool { return n.set && n.over }

func (n *Name) put(w []byte, size int64) {
	n.set, n.over, n.n = true, size > maxName, 0
	if !n.over {
		n.n = uint16(copy(n.buf[:], w))
	}
}

func (n *Name) clear() { n.set = false }
