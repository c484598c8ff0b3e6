package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

type decodeFunc = func(gjson.Result) (*call, *apiError)

func decodeText(body string, decode decodeFunc) (*call, *apiError) {
	root, refusal := parse([]byte(body))
	if refusal != nil {
		return nil, refusal
	}
	return decode(root)
}

func TestDecodeRefuses(t *testing.T) {
	f := func(decode decodeFunc, body, wantParam string) {
		t.Helper()
		c, refusal := decodeText(body, decode)
		if refusal == nil {
			t.Errorf("%.60s: accepted as %+v", body, c)
			return
		}
		if refusal.status != 400 || refusal.param != wantParam {
			t.Errorf("%.60s: %d param %q (%s), want 400 %q", body, refusal.status, refusal.param, refusal.message, wantParam)
		}
		var v any
		if err := json.Unmarshal(refusal.append(nil, true), &v); err != nil {
			t.Errorf("%.60s: the refusal is no JSON: %v", body, err)
		}
	}
	chat, text := decodeChat, decodeCompletion
	f(chat, ``, "body")
	f(chat, `[]`, "body")
	f(chat, `"x"`, "body")
	f(chat, `{`, "body.1")
	f(chat, `{"model" "m"}`, "body.9")
	f(chat, `{"model":}`, "body.9")
	f(chat, "{\"messages\":\"\xff\"}", "")
	f(chat, strings.Repeat("[", 20000), "")
	f(chat, strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000), "")
	f(chat, `{}`, "body.messages")
	f(chat, `{"messages":null}`, "body.messages")
	f(chat, `{"messages":{}}`, "body.messages")
	f(chat, `{"messages":[]}`, "body.messages")
	f(chat, `{"messages":[null]}`, "body.messages.0")
	f(chat, `{"messages":[{"content":"x"}]}`, "body.messages.0.role")
	f(chat, `{"messages":[{"role":"user","content":5}]}`, "body.messages.0.content")
	f(chat, `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "body.messages.0.content.0.text")
	f(chat, `{"messages":[{"role":"user","content":[5]}]}`, "body.messages.0.content.0")
	f(chat, `{"model":42,"messages":[{"role":"user","content":"x"}]}`, "body.model")
	f(chat, `{"max_tokens":-5,"messages":[{"role":"user"}]}`, "body.max_tokens")
	f(chat, `{"max_tokens":0,"messages":[{"role":"user"}]}`, "body.max_tokens")
	f(chat, `{"max_tokens":"9","messages":[{"role":"user"}]}`, "body.max_tokens")
	f(chat, `{"max_tokens":1.5,"messages":[{"role":"user"}]}`, "body.max_tokens")
	f(chat, `{"n":4611686018427387905,"max_tokens":4,"messages":[{"role":"user"}]}`, "n")
	f(chat, `{"n":257,"messages":[{"role":"user"}]}`, "n")
	f(chat, `{"stream":"yes","messages":[{"role":"user"}]}`, "body.stream")
	f(chat, `{"stream_options":{},"messages":[{"role":"user"}]}`, "stream_options")
	f(text, `{"prompt":null}`, "body.prompt")
	f(text, `{"prompt":5}`, "body.prompt")
	f(text, `{"prompt":[]}`, "body.prompt")
	f(text, `{"prompt":[-1]}`, "body.prompt.0")
	f(text, `{"prompt":[131072]}`, "body.prompt.0")
	f(text, `{"prompt":[1,"x"]}`, "body.prompt.1")
	f(text, `{"prompt":[[1,2],[3.5]]}`, "body.prompt.1.0")
	f(text, `{"prompt":["x",{}]}`, "body.prompt.1")
	f(text, `{"n":200,"prompt":["x","y"]}`, "n")
	f(decodeResponses, `{"input":[]}`, "body.input")
	f(decodeResponses, `{"input":[5]}`, "body.input.0")
	f(decodeResponses, `{"input":[{"content":"x"}]}`, "body.input.0.role")
	f(decodeResponses, `{"input":"x","instructions":5}`, "body.instructions")
	f(decodeResponses, `{"input":"x","max_output_tokens":0}`, "body.max_output_tokens")
	f(decodeMessages, `{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, "body.model")
	f(decodeMessages, `{"model":"m","max_tokens":1}`, "body.messages")
	f(decodeMessages, `{"model":"m","max_tokens":1,"system":5,"messages":[{"role":"user","content":"x"}]}`, "body.system")
	f(decodeEmbeddings, `{"input":{}}`, "body.input")
	f(decodeEmbeddings, `{"input":["x",5]}`, "body.input.1")
	f(decodeRerank, `{"query":"q","documents":["x",5]}`, "body.documents.1")
	f(decodeScore, `{"queries":"q"}`, "body.documents")
	f(decodeDetokenize, `{"tokens":5}`, "body.tokens")
	f(decodeDetokenize, `{"tokens":[-1]}`, "body.tokens.0")
	f(text, `{"prompt":[`+strings.Repeat(`"x",`, 300)+`"x"]}`, "n")
}

func TestDecodeTakes(t *testing.T) {
	f := func(decode decodeFunc, body string, check func(c *call) bool) {
		t.Helper()
		c, refusal := decodeText(body, decode)
		if refusal != nil {
			t.Errorf("%s: %s", body, refusal.message)
			return
		}
		if !check(c) {
			t.Errorf("%s: %+v", body, c)
		}
	}
	const user = `"messages":[{"role":"user","content":"x"}]`
	f(decodeChat, `{`+user+`}`, func(c *call) bool { return c.limit == 0 && c.copies == 1 && c.model == "" && !c.stream })
	f(decodeChat, "\xef\xbb\xbf{"+user+`,"model":null}`, func(c *call) bool { return c.model == "" })
	f(decodeChat, `{"model":"small","model":"big","stream":false,"stream":true,`+user+`}`,
		func(c *call) bool { return c.model == "big" && c.stream })
	f(decodeChat, `{"Model":"x","MODEL":"y",`+user+`}`, func(c *call) bool { return c.model == "" }) // names are exact
	f(decodeChat, `{"model":"模型 \"v2\"",`+user+`}`, func(c *call) bool { return c.model == `模型 "v2"` })
	f(decodeChat, `{"max_tokens":9223372036854775807,`+user+`}`, func(c *call) bool { return c.limit == math.MaxInt })
	f(decodeChat, `{"max_tokens":1e30,`+user+`}`, func(c *call) bool { return c.limit == math.MaxInt })
	f(decodeChat, `{"max_tokens":4.0,`+user+`}`, func(c *call) bool { return c.limit == 4 })
	f(decodeChat, `{"max_completion_tokens":7,`+user+`}`, func(c *call) bool { return c.limit == 7 })
	f(decodeChat, `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},`+user+`}`,
		func(c *call) bool { return c.usage && c.running })
	f(decodeChat, `{"vllm_xargs":{"kv_cache_report_mode":"full","session_id":"s"},"cache_salt":"t",`+user+`}`,
		func(c *call) bool { return c.full && c.session == "s" && c.salt == "t" })
	f(decodeChat, `{"messages":[{"role":"user","content":null},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]}`,
		func(c *call) bool { return len(c.messages) == 2 && strings.Contains(c.messages[1].Extra, "f {}") })
	f(decodeCompletion, `{"prompt":"one two"}`, func(c *call) bool { return c.limit == 16 && len(c.prompts) == 1 && len(c.prompts[0]) == 2 })
	f(decodeCompletion, `{"prompt":[15,27,99]}`, func(c *call) bool { return len(c.prompts) == 1 && len(c.prompts[0]) == 3 })
	f(decodeCompletion, `{"prompt":[[15,27],[99]]}`, func(c *call) bool { return len(c.prompts) == 2 && c.prompts[1][0] == 99 })
	f(decodeCompletion, `{"prompt":["one","two"]}`, func(c *call) bool { return len(c.prompts) == 2 })
	f(decodeCompletion, `{"prompt":""}`, func(c *call) bool { return len(c.prompts) == 1 && len(c.prompts[0]) == 0 })
	f(decodeTokenize, `{"prompt":"x","messages":5}`, func(c *call) bool { return len(c.prompts) == 1 })
}

// TestSamePrompt: other spellings of a conversation are the same tokens.
func TestSamePrompt(t *testing.T) {
	tokens := func(body string) string {
		t.Helper()
		c, refusal := decodeText(body, decodeChat)
		if refusal != nil {
			t.Fatal(refusal.message)
		}
		b, err := json.Marshal(engine.Chat(nil, c.tools, c.messages, true))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same := func(a, b string, want bool) {
		t.Helper()
		if got := tokens(a) == tokens(b); got != want {
			t.Errorf("%s and %s: same is %v", a, b, got)
		}
	}
	base := `{"messages":[{"role":"user","content":"café now"}]}`
	same(base, `{ "messages" : [ {"content":"caf\u00e9 now" , "role":"user"} ] , "temperature":0 }`, true)
	same(base, `{"messages":[{"role":"user","content":[{"type":"text","text":"café now"}]}]}`, true)
	same(base, `{"messages":[{"role":"system","content":"café now"}]}`, false)
	same(base, `{"tools":[{"type":"function"}],"messages":[{"role":"user","content":"café now"}]}`, false)
	image := func(url string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"café now"},{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`
	}
	same(image("a"), image("a"), true)
	same(image("a"), image("b"), false)
	call := func(args string) string {
		return `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"` + args + `"}}]}]}`
	}
	same(call("{}"), call("{1}"), false)
}

func TestErrorTexts(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, refusal := parse([]byte(body))
		if refusal == nil || !strings.Contains(refusal.message, want) {
			t.Errorf("%s: %v, want %s", body, refusal, want)
		}
	}
	f(`{"model":"tiny",`, `'loc': 'body.16', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting property name`)
	f(`{"a":x}`, `'body.5'`)
	f(`{"a" 1}`, `Expecting ':' delimiter`)
	f(`{"a":1 2}`, `Expecting ',' delimiter`)
	f(`[1,2]`, `'input': '<list of 2 items>'`)
}

func TestAppendJSON(t *testing.T) {
	f := func(s string) {
		t.Helper()
		var back string
		if err := json.Unmarshal(appendJSON(nil, s), &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q came back as %q, %v", s, back, err)
		}
	}
	f("")
	f(" plain words")
	f("quote \" back \\ line \n tab \t nul \x00 <&> é 漢 \U0001F600")
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1,2],[3]],"n":2,"max_tokens":1e3}`, `{"prompt":["a",""],"cache_salt":"s"}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"tools":[{}]}`,
		`{"lora_name":"a","lora_path":"/a","load_inplace":true}`, `{"a":"\ud83d"}`, `{`, `[]`, "\xef\xbb\xbf{}", `{"n":-1}`,
		`{"messages":[{"role":"user","content":"x","tool_calls":[{"function":5}]}]}`, strings.Repeat("[", 1000),
		`{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","name":"f"}],"instructions":"i"}`,
		`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{}]}]}]}`,
		`{"input":[[1],[2]],"dimensions":3}`, `{"query":"q","documents":["a",{"content":[{"type":"text","text":"b"}]}],"top_n":1}`, `{"tokens":[1,-1]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		root, refusal := parse(body)
		clean := []byte(strings.TrimPrefix(string(body), "\xef\xbb\xbf"))
		var object map[string]any
		if err := json.Unmarshal(clean, &object); (err == nil && object != nil && utf8.Valid(clean)) != (refusal == nil) && depth(clean) <= maxDepth {
			if err == nil || !strings.Contains(err.Error(), "cannot unmarshal number") { // 1e999 is JSON, but no float64
				t.Errorf("encoding/json says %v, we say %v: %q", err, refusal, body)
			}
		}
		if refusal != nil {
			return
		}
		for _, decode := range []decodeFunc{decodeChat, decodeCompletion, decodeTokenize, decodeResponses,
			decodeMessages, decodeCount, decodeEmbeddings, decodeScore, decodeRerank, decodeDetokenize} {
			c, refusal := decode(root)
			if (c == nil) == (refusal == nil) {
				t.Errorf("call %v, refusal %v", c, refusal)
			}
			if c != nil && (c.copies < 1 || c.copies > maxSequences || len(c.prompts)*c.copies > maxSequences || c.limit < 0) {
				t.Errorf("accepted %+v", c)
			}
		}
		_, _ = decodeAdapter(root, true)
	})
}

func FuzzForm(f *testing.F) {
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nxy\r\n--b--\r\n"))
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b"))
	f.Add("multipart/form-data", []byte{})
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		fields, file, err := form(contentType, body)
		if err != nil && (fields != nil || file != nil) {
			t.Errorf("refused, but with %v and %q", fields, file)
		}
		if len(file) > len(body) {
			t.Errorf("a file of %d bytes in %d", len(file), len(body))
		}
	})
}

func FuzzFaults(f *testing.F) {
	f.Add([]byte(`{"slow":2,"times":3,"status":503,"metrics":"stale","refuse_s":1}`))
	f.Add([]byte(`{"restart":true,"drop_batches":-1}`))
	f.Add([]byte(`{"statsu":503}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var b FaultBox
		if _, err := b.Merge(text); err != nil && b.Get() != (Faults{}) {
			t.Errorf("refused %q, but kept %+v", text, b.Get())
		}
		if f := b.Get(); f.check() != nil {
			t.Errorf("accepted %+v", f)
		}
	})
}
