package openai

import (
	"strings"
	"testing"
)

func TestFirstToken(t *testing.T) {
	f := func(name, before, token string) {
		t.Helper()
		stream := before + token
		for cut := range len(stream) + 1 {
			var ft FirstToken
			a := ft.Write([]byte(stream[:cut]))
			b := ft.Write([]byte(stream[cut:]))
			if cut <= len(before) && a {
				t.Fatalf("%s: seen within the first %d bytes %q", name, cut, stream[:cut])
			}
			if want := token != ""; b != want {
				t.Fatalf("%s, cut at %d: seen %v, want %v", name, cut, b, want)
			}
		}
	}
	const role = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	const text = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	f("after comment and role", ": ping\n\n"+role, text)
	f("CRLF, no space", "event: message\r\nid: 3\r\n", strings.NewReplacer("\n", "\r\n", "data: ", "data:").Replace(text))
	f("CR", "", strings.ReplaceAll(text, "\n", "\r"))
	f("tool call", role, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"now"}}]}}]}`+"\n\n")
	f("reasoning", role, `data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}`+"\n\n")
	f("completion", `data: {"choices":[{"text":""}]}`+"\n\n", `data: {"choices":[{"text":"x"}]}`+"\n\n")
	f("second choice", role, `data: {"choices":[{"delta":{}},{"delta":{"content":"b"}}]}`+"\n\n")
	f("data over two lines", "", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n")
	f("usage only", role+`data: {"choices":[],"usage":{"prompt_tokens":3}}`+"\n\ndata: [DONE]\n\n", "")
	f("error only", `data: {"error":{"message":"overloaded"}}`+"\n\ndata: [DONE]\n\n", "")
	f("null content", `data: {"choices":[{"delta":{"content":null,"tool_calls":[]}}]}`+"\n\n", "")
	f("not JSON", "data: {\n\ndata: x\n\n", "")
}

func TestFirstTokenLongLine(t *testing.T) {
	var ft FirstToken
	if !ft.Write([]byte("data: " + strings.Repeat("x", maxLine))) {
		t.Error("an endless line is kept for ever")
	}
	ft.Reset()
	if ft.Write([]byte("data: {}\n\n")) {
		t.Error("Reset kept the verdict")
	}
}

func FuzzFirstToken(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n"), 3)
	f.Add([]byte(": ping\n\ndata:\n\n"), 0)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		if cut < 0 || cut > len(stream) {
			cut = len(stream) / 2
		}
		var whole, parts FirstToken
		want := whole.Write(stream)
		parts.Write(stream[:cut])
		if got := parts.Write(stream[cut:]); got != want {
			t.Fatalf("%q cut at %d: %v, whole: %v", stream, cut, got, want)
		}
	})
}
