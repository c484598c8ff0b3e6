package openai

import (
	"regexp"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/json"
)

// The reference reads a whole answer at once: it splits the text into lines
// and events, parses each event, and looks at every value's path.

var lineBreak = regexp.MustCompile("\r\n|\n|\r")

// referenceStream is what a stream says; sure is false if some event is no JSON,
// of which the reader may make what it likes.
func referenceStream(answer string) (f Facts, sure bool) {
	f.Usage = noUsage
	sure = true
	lines := lineBreak.Split(strings.TrimPrefix(answer, byteOrderMark), -1)
	var data []string
	failed := false
	for i, line := range lines {
		last := i == len(lines)-1
		switch {
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[5:], " "))
		case strings.HasPrefix(line, "event:") && !last:
			failed = strings.TrimPrefix(line[6:], " ") == "error"
		}
		if line != "" && !last {
			continue
		}
		if len(data) > 0 {
			sure = referenceEvent(&f, strings.Join(data, "\n"), failed) && sure
		}
		if f.Ended {
			break
		}
		data, failed = nil, false
	}
	return f, sure
}

func referenceEvent(f *Facts, data string, failed bool) (sure bool) {
	f.Failed = f.Failed || failed
	switch trimmed := strings.Trim(data, " \t\n"); {
	case strings.HasPrefix(trimmed, "[DONE]"):
		f.Ended = true
		return true
	case trimmed == "":
		return true
	}
	v, err := json.Parse([]byte(data))
	if err != nil {
		return false
	}
	if v.Kind == json.Object {
		referenceDocument(f, v)
	}
	return true
}

var (
	innerPath  = regexp.MustCompile(`^(response |message )?(.*)$`)
	outputPath = regexp.MustCompile(`^(delta|choices \[\]|choices \[\] (delta|message)) (content|text|reasoning_content|reasoning|refusal|tool_calls|function_call|thinking|partial_json)$`)
)

type heard struct {
	usage         Usage
	read, written int64
	finish        Finish
	output        bool
}

func referenceDocument(f *Facts, v json.Value) {
	h := heard{usage: noUsage, read: -1, written: -1}
	h.walk(f, "", v)
	if h.usage.Prompt >= 0 {
		h.usage.Prompt += max(h.read, 0) + max(h.written, 0)
	}
	for _, n := range []struct {
		to   *int64
		said int64
	}{{&f.Usage.Prompt, h.usage.Prompt}, {&f.Usage.Completion, h.usage.Completion}, {&f.Usage.Cached, h.usage.Cached}, {&f.Usage.Cached, h.read}} {
		if n.said >= 0 {
			*n.to = n.said
		}
	}
	if h.finish != NoFinish && (f.Finish < Abort || h.finish > f.Finish) {
		f.Finish = h.finish
	}
	if h.output && !f.Failed {
		f.Outputs++
	}
}

func (h *heard) walk(f *Facts, path string, v json.Value) {
	h.hear(f, path, v)
	v.Each(func(key, element json.Value) bool {
		name := "[]"
		if v.Kind == json.Object {
			name = string(key.Raw[1 : len(key.Raw)-1])
			if strings.Contains(name, " ") || name == "[]" {
				return true
			}
		}
		h.walk(f, strings.TrimPrefix(path+" "+name, " "), element)
		return true
	})
}

func (h *heard) hear(f *Facts, path string, v json.Value) {
	said := !v.Empty() && v.Kind != json.False
	word := ""
	if v.Kind == json.String {
		word = string(v.Raw[1 : len(v.Raw)-1])
	}
	inner := innerPath.FindStringSubmatch(path)[2]
	h.count(inner, v)
	switch {
	case outputPath.MatchString(path), path == "delta" && v.Kind != json.Object:
		h.output = h.output || said
	case inner == "error":
		f.Failed = f.Failed || said
	case inner == "stop_reason", path == "delta stop_reason", path == "choices [] finish_reason", inner == "incomplete_details reason",
		path == "choices [] delta stop_reason", path == "choices [] message stop_reason":
		h.finish = max(h.finish, finishOf([]byte(word)))
	case inner == "status" && word == "completed":
		h.finish = max(h.finish, Stop)
	case inner == "status" && word == "failed":
		h.finish = Failure
	case inner == "status" && word == "cancelled":
		h.finish = max(h.finish, Abort)
	case path == "object":
		f.Failed = f.Failed || word == "error"
	case path == "type":
		f.Failed = f.Failed || word == "error" || word == "response.failed"
		f.Ended = f.Ended || word == "response.completed" || word == "response.incomplete" || word == "response.failed" || word == "message_stop"
	}
}

func (h *heard) count(path string, v json.Value) {
	n := int64(0)
	for _, c := range v.Raw {
		if v.Kind != json.Number || c < '0' || c > '9' || n > maxTokenCount {
			return
		}
		n = 10*n + int64(c-'0')
	}
	if n > maxTokenCount {
		return
	}
	switch path {
	case "usage prompt_tokens", "usage input_tokens":
		h.usage.Prompt = n
	case "usage completion_tokens", "usage output_tokens":
		h.usage.Completion = n
	case "usage prompt_tokens_details cached_tokens", "usage input_tokens_details cached_tokens":
		h.usage.Cached = n
	case "usage cache_read_input_tokens":
		h.read = n
	case "usage cache_creation_input_tokens":
		h.written = n
	}
}

// cuts reads an answer in pieces whose sizes are the bytes of sizes, again and
// again.
func cuts(stream bool, answer, sizes string) Facts {
	var pieces []string
	for i := 0; answer != ""; i++ {
		n := len(answer)
		if sizes != "" {
			n = min(n, 1+int(sizes[i%len(sizes)]))
		}
		pieces = append(pieces, answer[:n])
		answer = answer[n:]
	}
	return factsOf(stream, pieces...)
}

func FuzzStream(f *testing.F) {
	f.Add(textEvent("a")+textEvent("b")+textEvent(`\"`)+"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\r\n\r\n"+done, "\x00\x05")
	f.Add("event: error\ndata: x\n\n: ping\rdata:{\rdata:\"error\":{}}\r\r", "\x03")
	f.Add("event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error"}}`, "\x07\x01")
	f.Add(`data: {"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":70,"cache_creation_input_tokens":1,"output_tokens":1}}}`+"\n\n"+
		`data: {"type":"content_block_delta","delta":{"text":"x"}}`+"\n\n"+`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}`+"\n\n", "\x40")
	f.Add(`data: {"type":"response.output_text.delta","delta":"ok"}`+"\n\n"+
		`data: {"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"x"},"error":null,"usage":{"output_tokens":4,"input_tokens":30,"input_tokens_details":{"cached_tokens":16}}}}`+"\n\n", "\x11\x02")
	f.Add("\xEF\xBB\xBFdata: {\"object\":\"error\",\"choices\":[{\"finish_reason\":\"abort\",\"message\":{\"tool_calls\":[ ]}},[],3,{\"text\":[1]}]}\n\n", "")
	f.Fuzz(func(t *testing.T, answer, sizes string) {
		whole := cuts(true, answer, "")
		if got := cuts(true, answer, sizes); got != whole {
			t.Fatalf("%q in pieces of %q: %+v, whole: %+v", answer, sizes, got, whole)
		}
		if got := cuts(true, answer, "\x00"); got != whole {
			t.Fatalf("%q byte by byte: %+v, whole: %+v", answer, got, whole)
		}
		if want, sure := referenceStream(answer); sure && whole != want {
			t.Fatalf("%q: %+v, want %+v", answer, whole, want)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add(`{"usage":{"prompt_tokens":115,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":96}}}`, "\x03")
	f.Add(`{"a":"\"usage\":{}","usage":{"prompt_tokens":1},"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`, "\x00\x09")
	f.Add(`{"data":[[1,2,"]",{}],{"usage":{"prompt_tokens":3}}],"status":"failed","error":{"a":1}}`, "\x20")
	f.Fuzz(func(t *testing.T, answer, sizes string) {
		whole := cuts(false, answer, "")
		if got := cuts(false, answer, sizes); got != whole {
			t.Fatalf("%q in pieces of %q: %+v, whole: %+v", answer, sizes, got, whole)
		}
		v, err := json.Parse([]byte(strings.TrimPrefix(answer, byteOrderMark)))
		if err != nil {
			return
		}
		want := Facts{Usage: noUsage}
		if v.Kind == json.Object {
			referenceDocument(&want, v)
			want.Outputs, want.Ended = 0, true
		}
		if whole != want {
			t.Fatalf("%q: %+v, want %+v", answer, whole, want)
		}
	})
}
