package openai

import (
	"bytes"
	"encoding/json"

	"strings"
	"testing"
)

func usageIn(answer string, piece int) (Usage, bool) {
	var t Tail
	for rest := answer; rest != ""; {
		n := min(piece, len(rest))
		t.Write([]byte(rest[:n]))
		rest = rest[n:]
	}
	return t.Usage()
}

func TestUsage(t *testing.T) {
	f := func(answer string, want Usage, ok bool) {
		t.Helper()
		for _, piece := range []int{1, 7, 1000, 1 << 20} {
			if got, found := usageIn(answer, piece); got != want || found != ok {
				t.Errorf("%.200q in pieces of %d: %+v, %v, want %+v, %v", answer, piece, got, found, want, ok)
			}
		}
	}
	whole := `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":115,"total_tokens":119,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":96,"created_cache_tokens":0}},"prompt_logprobs":null}`
	f(whole, Usage{115, 4, 96}, true)
	f(`{"padding":"`+strings.Repeat("p", 20000)+`",`+whole[1:], Usage{115, 4, 96}, true)
	f(`data: {"usage":{"prompt_tokens":1}}`+"\n\n"+`data: {"choices":[],"usage" : null}`+"\n\n"+`data: {"usage": {"prompt_tokens":7,"completion_tokens":0}}`+"\n\ndata: [DONE]\n\n", Usage{7, 0, -1}, true)
	f(`{"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null},"usage":null}`, Usage{5, 2, -1}, true)
	f(`{"content":"\\\"usage\\\":{\\\"prompt_tokens\\\":9}"}`, Usage{}, false)
	f(`{"a\"usage":{"prompt_tokens":9}}`, Usage{}, false)
	f(`{"usage":{"prompt_tokens":`, Usage{}, false)
	f(`{"usage":{"prompt_tokens":-4}}`, Usage{}, false)
	f(`{"usage":{"prompt_tokens":4.5}}`, Usage{}, false)
	f(`{"usage":{"prompt_tokens":99999999999999999999}}`, Usage{}, false)
	f(`{"usage":[{"prompt_tokens":4}]}`, Usage{}, false)
	f(`{"usage":{"prompt_tokens":3,"note":"}{\\\""}}`, Usage{3, -1, -1}, true)
	f(``, Usage{}, false)
	f(whole+strings.Repeat(" ", 3*TailBytes), Usage{}, false)
}

// FuzzUsage holds the reader to encoding/json wherever an answer is
// JSON and short enough to be kept whole.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage":{"prompt_tokens":115,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":96}}}`))
	f.Add([]byte(`{"a":"\"usage\":{}","usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`"usage":{"prompt_tokens":{}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		var tail Tail
		tail.Write(answer)
		u, ok := tail.Usage()
		if ok && (u.Prompt < 0 || u.Prompt > 10*maxTokenCount+9 || u.Completion < -1 || u.Cached < -1) {
			t.Fatalf("%q gave %+v", answer, u)
		}
		var v map[string]json.RawMessage
		if len(answer) > TailBytes || bytes.ContainsRune(answer, '\\') || bytes.Count(answer, usageKey) != 1 || json.Unmarshal(answer, &v) != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(v["usage"], &want) == nil && string(want["prompt_tokens"]) == "115" && (!ok || u.Prompt != 115) {
			t.Fatalf("%q gave %+v, %v", answer, u, ok)
		}
	})
}

func TestUsageMakesNoGarbage(t *testing.T) {
	var tail Tail
	chunk := []byte(`data: {"usage":{"prompt_tokens":115,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":96}}}` + "\n\n")
	tail.Write(chunk)
	if n := testing.AllocsPerRun(100, func() {
		tail.Reset()
		for range 100 {
			tail.Write(chunk)
		}
		if _, ok := tail.Usage(); !ok {
			t.Error("no usage")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
