package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/warmlane/warmlane/examples/internal/load"
)

// conversations is how many different ones there are of each size. Some share their system prompt, as users do.
const conversations = 8

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type chatBody struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream,omitempty"`
}

// prompts writes the bodies of the conversations, each of about size bytes: a system prompt, a document, and, if it is a long
// one, turns about it. There are line breaks, quotes and letters beyond ASCII in them, as in what people send.
func prompts(size int, stream bool) ([][]byte, error) {
	turns := 1 + min(size>>13, 8)
	words := size / 5 // a word has that many bytes and more, with its share of marks
	script := load.NewScript(load.Shape{
		Users: conversations, Conversations: 1, Turns: turns, SystemPrompts: conversations,
		SystemWords: words / 20, FirstWords: words, FollowWords: words / 50,
	}, uint64(size))
	var bodies [][]byte
	for _, user := range script {
		body, err := json.Marshal(chat(user[0], size, stream))
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}

// chat makes a request of a conversation that has come to its last question. Its document is cut until size fits.
func chat(c load.Conversation, size int, stream bool) chatBody {
	b := chatBody{Model: "m", MaxTokens: 64, Stream: stream}
	b.Messages = append(b.Messages, message{"system", written(c.System)})
	for i, q := range c.Questions {
		if i > 0 {
			b.Messages = append(b.Messages, message{"assistant", "About that: " + written(q)})
		}
		b.Messages = append(b.Messages, message{"user", written(q)})
	}
	document := &b.Messages[1].Content
	if whole, err := json.Marshal(b); err == nil && len(whole) > size {
		kept := max(len(*document)-(len(whole)-size), 0)
		*document = strings.ToValidUTF8((*document)[:kept], "")
	}
	return b
}

// written puts sentences, lines and the odd quotation into a row of words.
func written(words string) string {
	var text strings.Builder
	for i, word := range strings.Fields(words) {
		switch {
		case i == 0:
		case i%97 == 0:
			text.WriteString(".\n\n")
		case i%13 == 0:
			text.WriteString(",\n")
		default:
			text.WriteByte(' ')
		}
		switch {
		case i%41 == 7:
			fmt.Fprintf(&text, "%q", word)
		case i%61 == 11:
			text.WriteString(word + "é")
		default:
			text.WriteString(word)
		}
	}
	return text.String()
}
