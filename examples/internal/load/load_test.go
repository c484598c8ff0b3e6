package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var small = Shape{Users: 3, Conversations: 2, Turns: 3, SystemPrompts: 2, SystemWords: 20, FirstWords: 10, FollowWords: 5, MaxTokens: 7}

func TestScript(t *testing.T) {
	script := NewScript(small, 1)
	if got := script.Requests(); got != 3*2*3 {
		t.Errorf("%d requests", got)
	}
	systems := map[string]bool{}
	for _, conversations := range script {
		for _, c := range conversations {
			systems[c.System] = true
			if n := len(strings.Fields(c.Questions[0])); n != 10 {
				t.Errorf("first question has %d words", n)
			}
			if n := len(strings.Fields(c.Questions[2])); n != 5 {
				t.Errorf("third question has %d words", n)
			}
		}
	}
	if len(systems) > 2 {
		t.Errorf("%d system prompts", len(systems))
	}
	if !reflect.DeepEqual(script, NewScript(small, 1)) {
		t.Error("the same seed gave another script")
	}
	if reflect.DeepEqual(script, NewScript(small, 2)) {
		t.Error("another seed gave the same script")
	}
}

func TestReadStream(t *testing.T) {
	const token = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	f := func(stream, text, fault string) Outcome {
		t.Helper()
		out := Outcome{Started: time.Now()}
		err := readStream(strings.NewReader(stream), &out)
		if got := fmt.Sprint(err); fault == "" && err != nil || !strings.Contains(got, fault) {
			t.Errorf("%q: error %v, want %q", stream, err, fault)
		}
		if out.Text != text || (text != "") != (out.TTFT > 0) {
			t.Errorf("%q: text %q, ttft %v", stream, out.Text, out.TTFT)
		}
		return out
	}
	f(token+token+"data: [DONE]\n\n", "aa", "")
	f(": ping\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\r\n\r\ndata:[DONE]\r\n\r\n", "b", "")
	f(`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`+"\n\ndata: [DONE]\n\n", "", "")
	f(token, "a", "without [DONE]")
	f(token+"data: {\"error\":{\"message\":\"oops\"}}\n\ndata: [DONE]\n", "a", "oops")
	f(token+`data: {"choices":[{"delta":{},"finish_reason":"abort"}]}`+"\n\ndata: [DONE]\n", "a", "aborted")
	f("data: {\n\n", "", "chunk of the stream")
	f("data: "+strings.Repeat("x", maxLine+1), "", "too long")

	usage := `data: {"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":96}}}`
	if out := f(token+usage+"\n\ndata: [DONE]\n\n", "a", ""); out.Usage != (Usage{Prompt: 120, Cached: 96, Completion: 7}) {
		t.Errorf("usage %+v", out.Usage)
	}
	f(`data: {"choices":[],"usage":null,"error":null}`+"\n\ndata: [DONE]\n", "", "")
}

func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n")
	f.Add(": ping\r\n\r\ndata:{}\r\n\r\ndata:[DONE]")
	f.Add("data: {\"error\":1}\n")
	f.Fuzz(func(t *testing.T, stream string) {
		var out Outcome
		if err := readStream(strings.NewReader(stream), &out); err == nil && !strings.Contains(stream, "[DONE]") {
			t.Errorf("a stream without an end was taken for whole")
		}
	})
}

// engine answers every chat with its number of messages as usage, and keeps what it was asked.
type engine struct {
	mu    sync.Mutex
	chats []Chat
	fail  int // answer 503 from this request on; 0 never
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var chat struct {
		Model    string    `json:"model"`
		Messages []Message `json:"messages"`
		Stream   bool      `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&chat); err != nil || !chat.Stream || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.chats = append(e.chats, Chat{Model: chat.Model, Messages: chat.Messages})
	failed := e.fail > 0 && len(e.chats) >= e.fail
	e.mu.Unlock()
	if failed {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("x-warmlane-decision", "tier=1, user="+r.Header.Get("x-user"))
	fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"so\"}}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d}}\n\ndata: [DONE]\n\n", len(chat.Messages))
}

func TestPlay(t *testing.T) {
	e := &engine{}
	server := httptest.NewServer(e)
	defer server.Close()
	seen := 0
	play := Play{Base: server.URL, Model: "m", Header: http.Header{"X-User": {"u"}}, Each: func(user int, chat Chat, out Outcome) {
		seen++
		if out.Decision != "tier=1, user=u" || len(chat.Messages) != out.Usage.Prompt {
			t.Errorf("user %d: decision %q, %d messages, usage %+v", user, out.Decision, len(chat.Messages), out.Usage)
		}
	}}
	outcomes := play.Run(t.Context(), NewScript(small, 1))
	report := Summarize(outcomes)
	if seen != 18 || report.Requests != 18 || report.Errors != 0 || len(report.TTFT) != 18 {
		t.Fatalf("%d seen, report %+v", seen, report)
	}
	if report.PromptTokens != 6*(2+4+6) { // system and question, then answer and question more each turn
		t.Errorf("%d prompt tokens", report.PromptTokens)
	}
	for _, chat := range e.chats {
		last := chat.Messages[len(chat.Messages)-1]
		if chat.Model != "m" || last.Role != "user" || chat.Messages[0].Role != "system" {
			t.Errorf("odd request: %+v", chat)
		}
	}
}

func TestPlayEndsAConversationThatFails(t *testing.T) {
	server := httptest.NewServer(&engine{fail: 2})
	defer server.Close()
	shape := small
	shape.Users, shape.Conversations = 1, 1
	outcomes := Play{Base: server.URL}.Run(t.Context(), NewScript(shape, 1))
	if len(outcomes) != 2 || outcomes[0].Err != nil || outcomes[1].Err == nil || outcomes[1].Status != 503 {
		t.Fatalf("outcomes %+v", outcomes)
	}
	if got := outcomes[1].Err.Error(); got != "status 503: busy" {
		t.Errorf("error %q", got)
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		pause(t.Context(), time.Hour)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("paused %v", got)
		}
	})
}

func TestReport(t *testing.T) {
	var outcomes []Outcome
	for i := range 10 {
		outcomes = append(outcomes, Outcome{TTFT: time.Duration(10-i) * time.Second, Usage: Usage{Prompt: 100, Cached: 10 * i}})
	}
	r := Summarize(append(outcomes, Outcome{Err: errCut}))
	if r.Requests != 11 || r.Errors != 1 || r.HitRatio() != 0.45 {
		t.Errorf("report %+v, hit ratio %v", r, r.HitRatio())
	}
	f := func(q float64, want time.Duration) {
		t.Helper()
		if got := r.TTFTAt(q); got != want {
			t.Errorf("TTFTAt(%v) = %v, want %v", q, got, want)
		}
	}
	f(0.5, 5*time.Second)
	f(0.9, 9*time.Second)
	f(0.91, 10*time.Second)
	f(1, 10*time.Second)
	f(0.01, time.Second)
	if empty := (Report{}); empty.HitRatio() != 0 || empty.TTFTAt(0.5) != 0 {
		t.Error("an empty report has figures")
	}
}
