package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Chat is one request for a streamed answer.
type Chat struct {
	Model     string
	Messages  []Message
	MaxTokens int
	Header    http.Header // sent besides the content type; may be nil
}

// Usage is what the server says a request has cost, in tokens.
type Usage struct {
	Prompt     int
	Cached     int // part of Prompt that was found in the prefix cache
	Completion int
}

// Outcome is what a client saw of one request.
type Outcome struct {
	Status   int           // 0 if no response head came
	Err      error         // why it counts as failed; nil if it ended well
	Started  time.Time     // when it was sent
	TTFT     time.Duration // from sending to the first token; 0 if none came
	Duration time.Duration // from sending to the end
	Usage    Usage
	Text     string // the answer
	Decision string // header x-warmlane-decision, if asked for
	Load     string // header x-warmlane-load, if asked for
}

// Client sends chats to one server over kept-alive connections. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// NewClient makes a client of the server at base, such as http://127.0.0.1:8080.
func NewClient(base string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	return &Client{base: base, http: &http.Client{Transport: transport}}
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends a chat and reads the answer to its end. The request is abandoned when ctx ends.
func (c *Client) Do(ctx context.Context, chat Chat) Outcome {
	out := Outcome{Started: time.Now()}
	out.Err = c.exchange(ctx, chat, &out)
	out.Duration = time.Since(out.Started)
	return out
}

func (c *Client) exchange(ctx context.Context, chat Chat, out *Outcome) error {
	req, err := c.request(ctx, chat)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out.Status = resp.StatusCode
	out.Decision = resp.Header.Get("x-warmlane-decision")
	out.Load = resp.Header.Get("x-warmlane-load")
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(body))
	}
	return readStream(resp.Body, out)
}

func (c *Client) request(ctx context.Context, chat Chat) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{
		"model":          chat.Model,
		"messages":       chat.Messages,
		"max_tokens":     chat.MaxTokens,
		"stream":         true,
		"stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range chat.Header {
		req.Header[name] = values
	}
	req.Header.Set("content-type", "application/json")
	// A body that can be rewound is sent again by net/http when a kept-alive connection turns out to be dead. That
	// would hide what the server under test did, so it is taken away.
	req.GetBody = nil
	return req, nil
}
