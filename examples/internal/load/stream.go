package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxLine bounds one line of an event stream. Servers send a token or a usage report a line, so this is generous.
const maxLine = 1 << 20

var errCut = errors.New("the stream ended without [DONE]")

// event is the part of a stream's chunk that is measured. The shapes are those of OpenAI's chat completions as vLLM sends them.
type event struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// readStream reads an answer into out until [DONE]. A stream that ends earlier, reports an error or was aborted by the
// engine is an error, though its status was 200.
func readStream(body io.Reader, out *Outcome) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var text strings.Builder
	defer func() { out.Text = text.String() }()
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !isData {
			continue
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			_, err := io.Copy(io.Discard, body) // to the very end, or the connection is not kept
			return err
		}
		if err := take(data, out, &text); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errCut
}

func take(data []byte, out *Outcome, text *strings.Builder) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("chunk of the stream: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return fmt.Errorf("error in the stream: %.200s", e.Error)
	}
	if u := e.Usage; u != nil {
		out.Usage = Usage{Prompt: u.Prompt, Completion: u.Completion}
		if u.Details != nil {
			out.Usage.Cached = u.Details.Cached
		}
	}
	for _, choice := range e.Choices {
		if choice.Delta.Content != "" && out.TTFT == 0 {
			out.TTFT = time.Since(out.Started)
		}
		text.WriteString(choice.Delta.Content)
		if choice.FinishReason == "abort" {
			return errors.New("the engine aborted the answer")
		}
	}
	return nil
}
