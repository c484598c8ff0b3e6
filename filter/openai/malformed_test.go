package openai

import (
	"strings"
	"testing"
)

func TestMalformed(t *testing.T) {
	f := func(body string, want Fault, offset int64, model string) {
		t.Helper()
		for _, size := range []int{1, 5, 1 << 20} {
			var s Scanner
			scan(&s, Chat, []byte(body), size)
			got := s.req.Malformed
			if got.Fault != want || got.Offset != offset || string(s.req.Model.Bytes()) != model {
				t.Errorf("%.80q: %v, model %q; want %v at %d, model %q", body, got, s.req.Model.Bytes(), want, offset, model)
			}
		}
	}
	f(`{"model":"m","messages":[]}`, NoFault, 0, "m")
	f(``, Empty, 0, "")
	f(" \n", Empty, 2, "")
	f("\xEF\xBB\xBF", Truncated, 3, "")
	f("\xEF\xBBx", Syntax, 2, "")
	f(`{"model":"m","messages":[`, Truncated, 25, "m")
	f(`{"model":"m","messages":[{"content":"\ud83d`, Truncated, 43, "m")
	f(`[]`, NotObject, 0, "")
	f(`  "a"`, NotObject, 2, "")
	f(`no`, NotObject, 0, "")
	f(`x`, Syntax, 0, "")
	f(`{"model":"m"]`, Syntax, 12, "m")
	f(`{"model":"m","a":tru}`, Syntax, 20, "m")
	f(`{"model":"m","a":01}`, Syntax, 18, "m")
	f(`{"model":"m","a":-x}`, Syntax, 18, "m")
	f("{\"model\":\"m\",\"a\":\"\x01\"}", Syntax, 18, "m")
	f(`{"model":"m","a":"\q"}`, Syntax, 19, "m")
	f(`{"model":"m","a":"\u00g0"}`, Syntax, 22, "m")
	f(`{"model":"m" "a":1}`, Syntax, 13, "m")
	f(`{"model":"m","a""b"}`, Syntax, 16, "m")
	f(`{"model":"m","a"[1]}`, Syntax, 16, "m")
	f(`{"model":"m"}"`, Syntax, 13, "m")
	f("\xEF\"", Syntax, 1, "")
	f(`{"model":"m"} x`, Syntax, 14, "m")
	f(`{"model":"m"}`, NoPrompt, 0, "m")
	f(`{"messages":null,"model":"m"}`, NoPrompt, 0, "m")
	f(`{"messages":{"a":1},"model":"m"}`, PromptShape, 18, "m")
	f(`{"messages":[{},5,6],"model":"m"}`, PromptShape, 17, "m")
	f(`{"messages":5,"model":"m","messages":[]}`, NoFault, 0, "m")
	f(`{"model":"m","x":`+strings.Repeat("[", 20000), TooDeep, 17+9999, "m")
	f(strings.Repeat("[", 20000), NotObject, 0, "")
	f(`{"model":"m","messages":[],"x":`+strings.Repeat("[", 9999)+strings.Repeat("]", 9999)+`}`, NoFault, 0, "m")
	f(`{"model":"m","messages":`+strings.Repeat("[", 9999)+strings.Repeat("]", 9999)+`}`, PromptShape, 24+9999+9997, "m")
}

func TestMalformedIsAnError(t *testing.T) {
	var err error = Malformed{Fault: Truncated, Offset: 7}
	if got, want := err.Error(), "request body: truncated at byte 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Fault(200).String(); got != "unknown" {
		t.Errorf("%q for a fault that does not exist", got)
	}
	seen := map[string]bool{}
	for f := NoFault; f <= PromptShape; f++ {
		if word := f.String(); word == "" || seen[word] || strings.ToLower(word) != word || strings.Contains(word, " ") {
			t.Errorf("fault %d is called %q", f, word)
		}
		seen[f.String()] = true
	}
}

// A scanner that met hostile bodies reads the next request as a new one does.
func TestScannerIsReusable(t *testing.T) {
	const sound = `{"model":"m","user":"u","messages":[{"role":"user","content":"hi"}],"n":2}`
	var s, fresh Scanner
	want := scan(&fresh, Chat, []byte(sound), 100)
	for _, body := range bodies {
		for cut := 0; cut <= len(body); cut += 1 + len(body)/8 {
			scan(&s, Kind(cut)%Rerank+1, []byte(body[:cut]), 50)
			got := scan(&s, Chat, []byte(sound), 100)
			if string(got.text) != string(want.text) || string(s.req.Model.Bytes()) != "m" || s.req.N != 2 ||
				s.req.Malformed != (Malformed{}) || s.req.AsideBytes != 0 || s.req.Rest != fresh.req.Rest {
				t.Fatalf("after %.200q: %+v %q", body[:cut], s.req.Malformed, got.text)
			}
		}
	}
}

func TestScannerMakesNoGarbage(t *testing.T) {
	var s Scanner
	sink := &record{text: make([]byte, 0, 1<<16), borders: make([]int, 0, 100)}
	head := &record{text: make([]byte, 0, 1<<16), borders: make([]int, 0, 100)}
	for i, body := range bodies {
		b, kind := []byte(body), Kind(i)%Rerank+1
		if n := testing.AllocsPerRun(5, func() {
			for _, k := range [...]Kind{Chat, kind} {
				s.Reset(k, sink)
				s.SetHead(head)
				s.Write(b[:len(b)/2])
				s.Write(b[len(b)/2:])
				s.Close()
			}
		}); n != 0 {
			t.Fatalf("%.100q: %v allocations", body, n)
		}
	}
}
