// Package openai knows what OpenAI's clients and engines say to each other.
//
// # Requests
//
// A [Scanner] reads the body of a request as it passes, in chunks of any cut,
// and holds none of it. It is a push parser in two layers: lex.go knows JSON
// (where a value begins and ends, [Scanner.Write] is its loop), and place.go
// with its neighbours body.go, message.go, prompt.go and head.go knows requests
// (what a value at this place is for, in which dialect.go has the last word). A
// form, as recordings are sent, is read by upload.go instead. What comes out is
// a [Request] of small facts, and for a [Sink] the prompt's canonical bytes.
//
// # Canonical bytes
//
// Canonical bytes depend on what the engine will see, not on how the JSON was
// spelled: white space, escapes, the order of keys and the choice between a
// string and a list with one text part leave no trace. They are a stream that
// is cut into blocks and hashed, so equal conversations have equal beginnings.
//
// Chat completions, for each message:
//
//	text of part 1  end of part | text of part 2  end of part | ... | end of message
//
//	end of a part of type text    0xFF
//	end of any other part         0xFE, digest of its other members (8 bytes, LE)
//	end of message                0xFD, digest of its other members (8 bytes, LE)
//
// and a border. Role, name, tool calls and whatever else a message has come after
// the content, as one digest, so that content can stream wherever its key
// stands. Content that is null or absent is no part. The three marks do not
// occur in UTF-8.
//
// Text is the JSON string in the one spelling on which serializers agree:
//
//	\" \\ \b \f \n \r \t    two bytes each, as they stand here
//	all other characters    UTF-8, control characters included
//
// So nearly all text is canonical as it comes and goes to the sink as a part of
// the chunk, untouched: only \u and \/ are resolved and copied. Sizes in
// canonical bytes count a line break as two.
//
// Completions: the text of the prompt, or its token ids as 4-byte little-endian
// words, and a border. A list of prompts is one stream with a border after
// each prompt and 0xFF before all but the first: the first prompt decides
// where the request finds its beginning.
//
// Responses: the items of input as messages; a text is the content of one with
// the role user. Beside content, output and arguments stream. The types message,
// input_text and output_text need no mention, and what the server notes about
// its own output (id, status, annotations, logprobs) does not count, unless an
// item is a reference, which is its id.
//
// Anthropic's messages: blocks are parts. Thinking and what a tool has to say
// stream too, each text and part with its mark before the end of the block they
// are in. Marks for the cache do not count, neither there nor in tools.
//
// A member that streams and is called neither content of a message nor text
// counts with its key in the digest.
//
// Embeddings: input as prompt in completions, or messages under either name.
// Rerank and score: the documents as a list of prompts, a text in an object as
// that text.
//
// Some of a prompt is rendered before all else but stands on either side of it in
// the body, depending on the client: system in Anthropic's dialect, instructions
// in responses, the query (text_1, queries, data_1) of documents. This head has
// canonical bytes of its own, built like the content of a message; they go to
// the sink of [Scanner.SetHead], and their hash is Request.Head. A response that
// the server is to go on from comes before the prompt as well; of that no more is
// known than its id.
//
// A digest takes strings in canonical spelling and objects as sets: equal
// members in another order give the same digest, and members that are null do
// not count in messages and parts. Numbers count as they are spelled, 1.0 is
// not 1.
//
// # What is not taken as encoding/json takes it
//
// The scanner accepts what encoding/json accepts, and refuses what that refuses
// (depth over 10,000 included), but for these: a byte order mark at the start
// is skipped; bytes that are not UTF-8 stay in the text as they are; keys match
// exactly, not by case. A surrogate escape without its pair is U+FFFD in both.
// Of two equal members of the body the last counts; two equal members deeper
// down both count.
//
// # Answers
//
// An [Answer] reads what an engine sends back, an event stream or a JSON
// document, in the same way: as it passes, at any cut, holding none of it. It is
// made of a framing of events (events.go) and a reader of one JSON document
// (gist.go) that knows by its place what a value is (spot.go). Most events of a
// stream are one another's likeness but for a text; those are compared and not
// read (refrain.go).
package openai
