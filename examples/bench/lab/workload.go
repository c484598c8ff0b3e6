package lab

import (
	"encoding/json"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Model is the model all requests ask for.
const Model = "m"

// Workload is what clients send, in order of arrival.
type Workload struct {
	Setting  string // its name in tables
	Requests []Request
}

// Request is one chat completion, streamed.
type Request struct {
	At       time.Duration // from the start
	Messages []Message
	Tokens   int // of the prompt, as the simulated engine counts them
	Output   int // tokens to generate, at least 1
	// Turn says that the request goes on from an earlier one of the workload:
	// its messages begin with all of that one's.
	Turn bool
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatBody struct {
	Model         string        `json:"model"`
	Messages      []Message     `json:"messages"`
	MaxTokens     int           `json:"max_tokens"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Body is the request's body as a client of the OpenAI API writes it.
func (r *Request) Body() []byte {
	body, _ := json.Marshal(chatBody{ // strings and numbers always marshal
		Model: Model, Messages: r.Messages, MaxTokens: r.Output,
		Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
	})
	return body
}

// Prompt is what an engine makes of the messages.
func (r *Request) Prompt() []engine.Token {
	messages := make([]engine.Message, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = engine.Message{Role: m.Role, Parts: []engine.Part{{Text: m.Content}}}
	}
	return engine.Chat(nil, "", messages, true)
}

// PromptTokens is the sum over all requests.
func (w *Workload) PromptTokens() (n int) {
	for i := range w.Requests {
		n += w.Requests[i].Tokens
	}
	return n
}
