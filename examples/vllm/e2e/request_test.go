//go:build vllm

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// baseModel is the name that the engines serve their model under.
const baseModel = "tiny"

// body is a request body.
type body map[string]any

// prompt is what a request comes to in the engine.
type prompt struct {
	tokens        []uint32
	adapter, salt string
}

// tokenize asks an engine for the tokens of a request, unless they are in it.
func tokenize(ctx context.Context, address string, b body) (*prompt, error) {
	p := &prompt{}
	p.salt, _ = b["cache_salt"].(string)
	if model := b["model"].(string); model != baseModel {
		p.adapter = model
	}
	if ids, ok := b["prompt"].([]uint32); ok {
		p.tokens = ids
		return p, nil
	}
	a, err := post(ctx, "http://"+address+"/tokenize", b)
	if err != nil {
		return nil, err
	}
	var told struct{ Tokens []uint32 }
	if err := json.Unmarshal(a.body, &told); err != nil || a.status != http.StatusOK {
		return nil, fmt.Errorf("/tokenize: status %d, %v: %.200s", a.status, err, a.body)
	}
	p.tokens = told.Tokens
	return p, nil
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

func post(ctx context.Context, url string, b body) (*answer, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-warmlane-explain", "1")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return &answer{response.StatusCode, response.Header, got}, err
}

// said is the text of an answer and the usage it reports.
type said struct {
	text   string
	prompt int
	cached int
}

// read reads an answer, be it whole or a stream.
func (a *answer) read() (said, error) {
	var s said
	documents := [][]byte{a.body}
	if strings.HasPrefix(a.header.Get("content-type"), "text/event-stream") {
		documents = documents[:0]
		for line := range bytes.Lines(a.body) {
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
			if ok && string(data) != "[DONE]" {
				documents = append(documents, data)
			}
		}
	}
	usage := false
	for _, document := range documents {
		var d struct {
			Choices []struct {
				Text           string
				Message, Delta struct{ Content string }
			}
			Usage *struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(document, &d); err != nil {
			return s, fmt.Errorf("%w in %.200q", err, document)
		}
		for _, c := range d.Choices {
			s.text += c.Text + c.Message.Content + c.Delta.Content
		}
		if d.Usage != nil {
			usage, s.prompt, s.cached = true, d.Usage.Prompt, d.Usage.Details.Cached
		}
	}
	if !usage {
		return s, fmt.Errorf("no usage in %.200q", a.body)
	}
	return s, nil
}

// decision is the header x-warmlane-decision.
type decision struct {
	tier            int
	branch, replica string
	matched, prompt int
	estimated       bool
}

var item = regexp.MustCompile(`([a-z_]+)(?:=("[^"]*"|[^,]*))?(?:, |$)`)

// decision reads the header. Without one all is empty.
func (a *answer) decision() (d decision, err error) {
	for _, m := range item.FindAllStringSubmatch(a.header.Get("x-warmlane-decision"), -1) {
		switch m[1] {
		case "tier":
			d.tier, err = strconv.Atoi(m[2])
		case "branch":
			d.branch = m[2]
		case "replica":
			d.replica, err = strconv.Unquote(m[2])
		case "matched":
			d.matched, err = strconv.Atoi(m[2])
		case "prompt":
			d.prompt, err = strconv.Atoi(m[2])
		case "est":
			d.estimated = true
		}
		if err != nil {
			return d, fmt.Errorf("x-warmlane-decision: %s: %w", m[0], err)
		}
	}
	return d, nil
}
