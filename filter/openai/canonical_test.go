package openai

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// canonical scans a sound body and returns its canonical bytes.
func canonical(t *testing.T, kind Kind, body string) ([]byte, Request) {
	t.Helper()
	var s Scanner
	r := scan(&s, kind, []byte(body), 1<<16)
	if s.req.Malformed.Fault != NoFault {
		t.Fatalf("%.200s: %v", body, s.req.Malformed)
	}
	if r.borders == nil && len(r.text) > 0 || len(r.borders) > 0 && r.borders[len(r.borders)-1] != len(r.text) {
		t.Fatalf("%.200s: no border at the end", body)
	}
	return r.text, s.req
}

// same fails the test unless two bodies are one request.
func same(t *testing.T, kind Kind, a, b string) {
	t.Helper()
	textA, reqA := canonical(t, kind, a)
	textB, reqB := canonical(t, kind, b)
	if !bytes.Equal(textA, textB) {
		t.Errorf("canonical bytes differ:\n%q\n%q", textA, textB)
	}
	reqA.BodyBytes, reqA.Prompts = reqB.BodyBytes, reqB.Prompts
	if withoutPlaces(reqA) != withoutPlaces(reqB) {
		t.Errorf("requests differ: %.200s and %.200s", a, b)
	}
}

func TestSpellingLeavesNoTrace(t *testing.T) {
	f := func(kind Kind, a, b string) {
		t.Helper()
		same(t, kind, a, b)
	}
	f(Chat, `{"model":"m","messages":[{"role":"user","content":"T"}]}`, `{ "messages" : [ { "content" : [ { "text" : "\u0054" , "type" : "text" } ] , "role" : "user" } ] , "model" : "\u006d" }`)
	f(Chat, `{"messages":[{"role":"user","content":"é😀"}]}`, `{"messages":[{"role":"user","content":"\u00e9\uD83D\ude00"}]}`)
	f(Chat, `{"messages":[{"role":"user\n","content":"a\n\t\"\\/"}]}`, `{"messages":[{"r\u006fle":"user\u000A","content":"\u0061\u000a\u0009\u0022\u005c\/"}]}`)
	f(Chat, `{"model":"\"\\/\n","user":"é","messages":[]}`, `{"model":"\u0022\u005c\/\u000a","user":"\u00e9","messages":[]}`)
	f(Chat, `{"messages":[{"role":"assistant","content":null,"tool_calls":null}]}`, `{"messages":[{"role":"assistant"}]}`)
	f(Chat, `{"messages":[{"tool_calls":[{"a":1,"b":{"c":2,"d":3}}]}]}`, `{"messages":[{"tool_calls":[{"b":{"d":3,"c":2},"a":1}]}]}`)
	f(Chat, `{"tools":[{"a":1,"b":2}],"temperature":0.5,"seed":1,"messages":[]}`, `{"seed":1,"messages":[],"temperature":0.5,"tools":[{"b":2,"a":1}],"top_p":null}`)
	f(Chat, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}]}`, `{"messages":[{"content":[{"image_url":{"detail":"low","url":"u"},"type":"image_url"}]}]}`)
	f(Completions, `{"prompt":"one"}`, `{"prompt":["\u006fne"]}`)
	f(Completions, `{"prompt":[1,2,3000000000]}`, "{\"prompt\":[ 1 ,\n2,3000000000 ]}")
	f(Completions, `{"prompt":[1,2]}`, `{"prompt":[[1,2]]}`)
}

// The canonical spelling is the one that serializers agree on.
func TestCanonicalSpelling(t *testing.T) {
	f := func(content, want string) {
		t.Helper()
		for _, pad := range []string{"", strings.Repeat("x", 31), strings.Repeat("long ", 100)} {
			text, _ := canonical(t, Completions, `{"prompt":"`+pad+content+pad+`"}`)
			if string(text) != pad+want+pad {
				t.Errorf("%s is %q, want %q", content, text, pad+want+pad)
			}
		}
	}
	f(`plain`, `plain`)
	f(`\"\\\b\f\n\r\t`, `\"\\\b\f\n\r\t`)
	f(`\u0022\u005c\u0008\u000C\u000a\u000d\u0009`, `\"\\\b\f\n\r\t`)
	f(`\/ and \u002f`, `/ and /`)
	f(`\u0041\u007e\u007f`, "A~\x7f")
	f(`\u0000\u001f`, "\x00\x1f")
	f(`\u00e9\u65E5\ud83d\ude00`, "é日😀")
	f(`\ud83d \ude00\n`, "\uFFFD \uFFFD\\n")
	f(`\\u0041`, `\\u0041`)
	f(`\u005cn`, `\\n`)
}

// pieces is a sink that remembers the texts it was given.
type pieces [][]byte

func (p *pieces) Text(b []byte) { *p = append(*p, b) }
func (p *pieces) Border()       {}
func (p *pieces) Reset()        { *p = nil }

// Text that is canonical reaches the sink in one piece, without a copy.
func TestCanonicalTextPassesUntouched(t *testing.T) {
	content := strings.Repeat(`a line, \"quoted\",\ttabbed and \\ended\n`, 100)
	body := []byte(`{"prompt":"` + content + `"}`)
	var s Scanner
	var p pieces
	s.Reset(Completions, &p)
	s.Write(body)
	s.Close()
	if len(p) != 1 || &p[0][0] != &body[len(`{"prompt":"`)] || len(p[0]) != len(content) {
		t.Errorf("%d pieces, want one that is part of the body", len(p))
	}
}

func TestMeaningLeavesATrace(t *testing.T) {
	seen := map[string]string{}
	f := func(kind Kind, body string) {
		t.Helper()
		text, _ := canonical(t, kind, body)
		if other, ok := seen[string(text)]; ok {
			t.Errorf("same canonical bytes: %s and %s", body, other)
		}
		seen[string(text)] = body
	}
	f(Chat, `{"messages":[{"role":"user","content":"ab"}]}`)
	f(Chat, `{"messages":[{"role":"system","content":"ab"}]}`)
	f(Chat, `{"messages":[{"role":"user","name":"n","content":"ab"}]}`)
	f(Chat, `{"messages":[{"role":"user","content":["a","b"]}]}`)
	f(Chat, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`)
	f(Chat, `{"messages":[{"role":"user","content":""}]}`)
	f(Chat, `{"messages":[{"role":"user","content":null}]}`)
	f(Chat, `{"messages":[{"role":"user","content":["ab",{"type":"image_url","image_url":{"url":"x"}}]}]}`)
	f(Chat, `{"messages":[{"role":"user","content":["ab",{"type":"image_url","image_url":{"url":"y"}}]}]}`)
	f(Chat, `{"messages":[{"role":"user","content":["ab",{"type":"input_image","image_url":{"url":"y"}}]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"now","arguments":"{}"}}]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"now","arguments":"{ }"}}]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":"1"}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":1}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":true}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":[1,2]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":[2,1]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":[[1],2]}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":{}}]}`)
	f(Chat, `{"messages":[{"role":"assistant","x":[]}]}`)
	f(Completions, `{"prompt":"ab"}`)
	f(Completions, `{"prompt":["a","b"]}`)
	f(Completions, `{"prompt":[1,2]}`)
	f(Completions, `{"prompt":[[1],[2]]}`)
}

// A list with an image shares only what comes before the image.
func TestPartsShareTheirBeginning(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 256)
	plain, _ := canonical(t, Chat, `{"messages":[{"role":"user","content":"`+long+`"}]}`)
	image, _ := canonical(t, Chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"`+long+`"},{"type":"image_url","image_url":{"url":"data:"}}]}]}`)
	if !bytes.HasPrefix(image, plain[:len(long)+1]) || bytes.HasPrefix(image, plain[:len(long)+2]) {
		t.Errorf("%q and %q", plain[len(long):], image[len(long):])
	}
}

// The next turn of a conversation begins with the bytes of the one before.
func TestTurnsShareTheirBeginning(t *testing.T) {
	const turn = `{"role":"user","content":"time?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"arguments":"{}"}}]}`
	first, _ := canonical(t, Chat, `{"messages":[`+turn+`]}`)
	second, _ := canonical(t, Chat, `{"model":"m","messages":[`+turn+`,{"role":"tool","tool_call_id":"c1","content":"12:00"}]}`)
	if !bytes.HasPrefix(second, first) {
		t.Errorf("%q does not begin with %q", second, first)
	}
	other, _ := canonical(t, Chat, `{"messages":[`+strings.Replace(turn, "{}", "{1}", 1)+`]}`)
	if len(other) != len(first) || bytes.Equal(other, first) {
		t.Errorf("other arguments: %q, was %q", other, first)
	}
}

func TestNamespaceParts(t *testing.T) {
	_, base := canonical(t, Chat, `{"messages":[]}`)
	f := func(member string, changed func(*Request) uint64) {
		t.Helper()
		_, r := canonical(t, Chat, `{"messages":[],`+member+`}`)
		if changed(&r) == 0 || changed(&base) != 0 {
			t.Errorf("%s: digest %d, without it %d", member, changed(&r), changed(&base))
		}
		for _, part := range []func(*Request) uint64{salt, tools, template, rest} {
			if part(&r) != changed(&r) && part(&r) != 0 {
				t.Errorf("%s is part of another digest too", member)
			}
		}
	}
	f(`"cache_salt":"tenant-7"`, salt)
	f(`"tools":[]`, tools)
	f(`"functions":[{}]`, tools)
	f(`"chat_template_kwargs":{"enable_thinking":false}`, template)
	f(`"chat_template":"{{ x }}"`, template)
	f(`"documents":[{"text":"d"}]`, template)
	f(`"reasoning_effort":"low"`, template)
	f(`"add_special_tokens":false`, template)
	f(`"mm_processor_kwargs":{}`, template)
	f(`"truncate_prompt_tokens":10`, template)
	f(`"suffix":"s"`, template)
	f(`"temperature":0`, rest)
	f(`"prompt":"of another dialect"`, rest)
}

func salt(r *Request) uint64     { return r.Salt }
func tools(r *Request) uint64    { return r.Tools }
func template(r *Request) uint64 { return r.Template }
func rest(r *Request) uint64     { return r.Rest }

func TestCounts(t *testing.T) {
	f := func(members string, maxTokens, n int64) {
		t.Helper()
		_, r := canonical(t, Completions, `{"prompt":"",`+members+`}`)
		if r.MaxTokens != maxTokens || r.N != n {
			t.Errorf("%s: MaxTokens %d, N %d, want %d and %d", members, r.MaxTokens, r.N, maxTokens, n)
		}
	}
	f(`"user":"u"`, -1, 1)
	f(`"max_tokens":5,"n":2`, 5, 2)
	f(`"max_completion_tokens":7,"max_tokens":5`, 7, 1)
	f(`"max_completion_tokens":null,"max_tokens":5`, 5, 1)
	f(`"max_tokens":5,"max_tokens":null`, -1, 1)
	f(`"max_tokens":4611686018427387905,"n":4`, 4611686018427387905, 4)
	f(`"max_tokens":18446744073709551617,"n":99999999999999999999999`, math.MaxInt64, math.MaxInt64)
	f(`"max_tokens":1e300,"n":1E0`, math.MaxInt64, math.MaxInt64)
	f(`"max_tokens":-5,"n":-5`, -1, 1)
	f(`"max_tokens":0,"n":0`, 0, 1)
	f(`"max_tokens":"5","n":"2"`, -1, 1)
}

func TestTokenPrompts(t *testing.T) {
	f := func(prompt string, tokens int64, text string) {
		t.Helper()
		got, r := canonical(t, Completions, `{"prompt":`+prompt+`}`)
		if r.PromptTokens != tokens || string(got) != text {
			t.Errorf("%s: %d tokens, text %q; want %d, %q", prompt, r.PromptTokens, got, tokens, text)
		}
	}
	f(`[15,27,99]`, 3, "\x0f\x00\x00\x00\x1b\x00\x00\x00\x63\x00\x00\x00")
	f(`[[15,27],[99]]`, 3, "\x0f\x00\x00\x00\x1b\x00\x00\x00\xFF\x63\x00\x00\x00")
	f(`[7, 1234567, 12345678, 4294967295 ,0 , 7777777,8]`, 7,
		"\x07\x00\x00\x00\x87\xd6\x12\x00\x4e\x61\xbc\x00\xff\xff\xff\xff\x00\x00\x00\x00\xf1\xad\x76\x00\x08\x00\x00\x00")
	f(`["one","two"]`, 0, "one\xFFtwo")
	f(`""`, 0, "")
	f(`[]`, 0, "")
}

func TestSecondPromptResetsTheSink(t *testing.T) {
	var s Scanner
	r := scan(&s, Chat, []byte(`{"messages":[{"content":"`+strings.Repeat("x", 5000)+`"}],"messages":[{"content":"y"}]}`), 100)
	if r.resets != 2 || len(r.text) != 11 || s.req.PromptBytes != 11 {
		t.Errorf("%d resets, text %q, PromptBytes %d", r.resets, r.text, s.req.PromptBytes)
	}
	r = scan(&s, Chat, []byte(`{"messages":[{"content":"y"}]}`), 100)
	if r.resets != 1 {
		t.Errorf("%d resets of the sink for one prompt, want that of Reset only", r.resets)
	}
}

func TestAside(t *testing.T) {
	_, r := canonical(t, Chat, `{"tools":["12345"],"tools":["123"],"functions":{"k":"12"},"messages":[{"role":"x","tool_calls":["`+strings.Repeat("v", 1000)+`"]}]}`)
	if r.AsideBytes != 1005 {
		t.Errorf("AsideBytes %d, want 1005", r.AsideBytes)
	}
}
