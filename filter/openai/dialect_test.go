package openai

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSpellingOfDialectsLeavesNoTrace(t *testing.T) {
	f := func(kind Kind, a, b string) {
		t.Helper()
		same(t, kind, a, b)
	}
	// Responses: text, items, parts.
	f(Responses, `{"input":"hi"}`, `{"input":[{"role":"user","content":"hi"}]}`)
	f(Responses, `{"input":"hi"}`, `{"input":[{"content":[{"text":"\u0068i","type":"input_text"}],"type":"message","role":"user"}]}`)
	f(Responses, `{"input":"hi","instructions":"be nice","model":"m"}`, `{"model":"m","instructions":["be nice"],"input":"hi"}`)
	f(Responses, `{"input":[{"role":"assistant","content":"ok"}]}`,
		`{"input":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[],"logprobs":[]}]}]}`)
	f(Responses, `{"input":[{"type":"function_call_output","call_id":"c","output":"12"}]}`,
		`{"input":[{"output":[{"type":"input_text","text":"12"}],"call_id":"c","type":"function_call_output","id":"o","status":"completed"}]}`)
	f(Responses, `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","id":"fc_1"}]}`,
		`{"input":[{"arguments":"{}","name":"f","status":"completed","id":"fc_2","call_id":"c","type":"function_call"}]}`)
	f(Responses, `{"input":"x","instructions":null,"previous_response_id":null}`, `{"input":"x"}`)
	f(Responses, `{"input":"x","max_output_tokens":7}`, `{"max_output_tokens":7,"input":"x"}`)
	// Messages: system on either side, marks for the cache, results of tools.
	f(Messages, `{"system":"be nice","messages":[{"role":"user","content":"hi"}]}`,
		`{"messages":[{"content":[{"type":"text","text":"hi"}],"role":"user"}],"system":[{"type":"text","text":"be nice"}]}`)
	f(Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"cache_control":{"type":"ephemeral"}}`,
		`{"messages":[{"role":"user","content":"hi"}]}`)
	f(Messages, `{"messages":[],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
		`{"tools":[{"input_schema":{"type":"object"},"name":"f","cache_control":null}],"messages":[]}`)
	f(Messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out"}]}]}`,
		`{"messages":[{"role":"user","content":[{"content":[{"text":"out","type":"text","cache_control":{}}],"type":"tool_result","tool_use_id":"t"}]}]}`)
	f(Messages, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"source":{"url":"u","type":"url"},"type":"image"}]}]}`)
	f(Messages, `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h\u006d","signature":"s"}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"signature":"s","thinking":"hm","type":"thinking"}]}]}`)
	f(Messages, `{"messages":[],"system":[{"type":"text","text":"x-anthropic-billing-header: cch=123;"},{"type":"text","text":"be nice"}]}`,
		`{"messages":[],"system":"be nice"}`)
	// Embeddings and rerank.
	f(Embeddings, `{"input":"one"}`, `{"input":["one"]}`)
	f(Embeddings, `{"input":[1,2]}`, `{"input":[[1,2]]}`)
	f(Embeddings, `{"messages":[{"role":"user","content":"a"}]}`, `{"input":[{"content":["a"],"role":"user"}]}`)
	f(Rerank, `{"query":"q","documents":["one"]}`, `{"documents":"one","query":["q"]}`)
	f(Rerank, `{"query":"q","documents":["one","two"]}`, `{"text_2":[{"text":"one"},{"text":"two"}],"text_1":"q"}`)
	f(Rerank, `{"queries":"q","items":["one","two"]}`, `{"data_1":["q"],"data_2":["one","two"]}`)
}

// shuffled spells v with the members of each object in another order.
func shuffled(v value, r *rand.Rand) string {
	var b strings.Builder
	switch v.kind {
	case kindString:
		return `"` + v.text + `"`
	case kindNumber:
		return v.text
	case kindArray:
		for i, m := range v.members {
			b.WriteString([]string{"[", ","}[min(i, 1)] + shuffled(m, r))
		}
		return b.String() + []string{"[]", "]"}[min(len(v.members), 1)]
	case kindObject:
		for i, n := range r.Perm(len(v.keys)) {
			b.WriteString([]string{"{", ","}[min(i, 1)] + `"` + v.keys[n] + `":` + shuffled(v.members[n], r))
		}
		return b.String() + []string{"{}", "}"}[min(len(v.members), 1)]
	}
	return [...]string{kindNull: "null", kindFalse: "false", kindTrue: "true"}[v.kind]
}

func TestKeyOrderLeavesNoTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	f := func(kind Kind, body string) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(body))
		d.UseNumber()
		v := decode(d)
		for range 50 {
			same(t, kind, body, shuffled(v, r))
		}
	}
	const tools = `"tools":[{"type":"function","name":"f","parameters":{"a":[1,2.5,true],"b":null}}],"model":"m","stream":true,"n":2,"seed":1,"user":"u","session_id":"s"`
	f(Chat, `{`+tools+`,"messages":[{"role":"system","content":"be nice"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u","detail":"low"}}]},{"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]}`)
	f(Completions, `{`+tools+`,"prompt":[[1,2],[3]],"suffix":"s","echo":false}`)
	f(Responses, `{`+tools+`,"instructions":[{"type":"input_text","text":"be nice"},{"type":"input_image","image_url":"u"}],"previous_response_id":"p","reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":5,`+
		`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_file","file_id":"f"}]},{"type":"message","role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"b","annotations":[{"x":1}]}]},`+
		`{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"d"}]},{"type":"item_reference","id":"r"},{"type":"reasoning","id":"q","summary":[{"type":"summary_text","text":"e"}]}]}`)
	f(Messages, `{`+tools+`,"max_tokens":5,"thinking":{"type":"enabled","budget_tokens":1024},"system":[{"type":"text","text":"x-anthropic-billing-header: a"},{"type":"text","text":"be nice","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"image","source":{"a":1,"b":2}}],`+
		`"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"document","title":"t","source":{"type":"text","data":"d"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{"x":1,"y":"z"}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":false,"content":[{"type":"text","text":"o"},{"type":"image","source":{"a":1,"b":2}}]}]}]}`)
	f(Embeddings, `{`+tools+`,"input":["a","b"],"dimensions":5,"encoding_format":"float"}`)
	f(Rerank, `{`+tools+`,"query":"q","documents":["a",{"title":"t","text":"b"}],"instruction":"i","top_n":5}`)
}

// Marks for the cache inside of a schema are what they look like: its properties.
func TestSchemaMayNameTheCache(t *testing.T) {
	_, with := canonical(t, Messages, `{"messages":[],"tools":[{"input_schema":{"cache_control":1}}]}`)
	_, without := canonical(t, Messages, `{"messages":[],"tools":[{"input_schema":{}}]}`)
	if with.Tools == without.Tools {
		t.Error("a property of a schema leaves no trace")
	}
}

func TestMeaningInDialectsLeavesATrace(t *testing.T) {
	type trace struct {
		text string
		head uint64
	}
	seen := map[trace]string{}
	f := func(kind Kind, body string) {
		t.Helper()
		text, r := canonical(t, kind, body)
		key := trace{string(kind) + string(text), r.Head}
		if other, ok := seen[key]; ok {
			t.Errorf("one trace of %s and %s", body, other)
		}
		seen[key] = body
	}
	for _, item := range []string{
		`{"role":"user","content":"x"}`, `{"role":"system","content":"x"}`, `{"type":"function_call_output","call_id":"c","output":"x"}`,
		`{"type":"function_call_output","call_id":"d","output":"x"}`, `{"type":"function_call","call_id":"c","name":"f","arguments":"x"}`,
		`{"type":"function_call","call_id":"c","name":"g","arguments":"x"}`, `{"type":"item_reference","id":"a"}`, `{"type":"item_reference","id":"b"}`,
		`{"id":"a"}`, `{"id":"b"}`, `{"output":"x"}`, `{"arguments":"x"}`, `{"content":"x"}`, `{"type":"reasoning","summary":[]}`,
		`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"x"}]}`, `{"role":"user","content":[{"type":"input_image","image_url":"x"}]}`,
		`{"role":"user","content":[{"type":"input_image","image_url":"y"}]}`,
	} {
		f(Responses, `{"input":[`+item+`]}`)
	}
	f(Responses, `{"input":"x","instructions":"a"}`)
	f(Responses, `{"input":"x","instructions":"b"}`)
	f(Responses, `{"input":"x","previous_response_id":"resp_1"}`)
	f(Responses, `{"input":"x","previous_response_id":"resp_2"}`)
	f(Responses, `{"input":"x","previous_response_id":"resp_2","instructions":"b"}`)
	for _, block := range []string{
		`{"type":"text","text":"x"}`, `{"type":"thinking","thinking":"x"}`, `{"type":"tool_result","tool_use_id":"t","content":"x"}`,
		`{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t"}`, `{"type":"tool_result","tool_use_id":"u","content":"x"}`,
		`{"type":"tool_result","tool_use_id":"t","content":"x","is_error":true}`, `{"type":"tool_use","id":"t","name":"f","input":{"a":1}}`,
		`{"type":"tool_use","id":"t","name":"f","input":{"a":2}}`, `{"type":"image","source":{"data":"x"}}`, `{"type":"document","source":{"data":"x"}}`,
		`{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"data":"x"}}]}`, `{"type":"redacted_thinking","data":"x"}`,
	} {
		f(Messages, `{"messages":[{"role":"user","content":[`+block+`]}]}`)
	}
	f(Messages, `{"system":"a","messages":[]}`)
	f(Messages, `{"system":["a","b"],"messages":[]}`)
	f(Messages, `{"system":[{"type":"text","text":"ab"}],"messages":[]}`)
	f(Embeddings, `{"input":"ab"}`)
	f(Embeddings, `{"input":["a","b"]}`)
	f(Embeddings, `{"input":[1,2]}`)
	f(Embeddings, `{"messages":[{"role":"user","content":"ab"}]}`)
	f(Rerank, `{"query":"a","documents":["b"]}`)
	f(Rerank, `{"query":"b","documents":["a"]}`)
	f(Rerank, `{"query":"a","documents":["b",""]}`)
	f(Rerank, `{"query":"a","documents":[{"text":"b","title":"t"}]}`)
}

// The next turn begins with the bytes of the one before, whether the client has
// moved its marks or sends the answer as it came.
func TestTurnsOfDialectsShareTheirBeginning(t *testing.T) {
	f := func(kind Kind, first, second string) {
		t.Helper()
		a, ra := canonical(t, kind, first)
		b, rb := canonical(t, kind, second)
		if !bytes.HasPrefix(b, a) || len(a) == len(b) || ra.Head != rb.Head {
			t.Errorf("%q does not begin with %q", b, a)
		}
	}
	f(Responses, `{"input":"hi","instructions":"be nice"}`,
		`{"instructions":"be nice","input":[{"role":"user","content":"hi"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"ok"}]},{"role":"user","content":"more"}]}`)
	f(Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"system":"be nice"}`,
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out","cache_control":{"type":"ephemeral"}}]}],"system":"be nice"}`)
}

func TestHead(t *testing.T) {
	f := func(kind Kind, body string, head string, text string) {
		t.Helper()
		var s Scanner
		for _, size := range []int{1, 7, 1 << 16} {
			r := scan(&s, kind, []byte(body), size)
			if string(r.head.text) != head || !strings.HasPrefix(string(r.text), text) {
				t.Errorf("%s: head %q, text %q; want %q, %q", body, r.head.text, r.text, head, text)
			}
			if s.req.HeadBytes != int64(len(head)) || (s.req.Head == 0) != (head == "") {
				t.Errorf("%s: %d bytes, hash %x", body, s.req.HeadBytes, s.req.Head)
			}
			if n := len(r.head.borders); (n == 0) != (head == "") || n > 0 && r.head.borders[n-1] != len(head) {
				t.Errorf("%s: borders %d", body, r.head.borders)
			}
		}
	}
	f(Messages, `{"system":"one","messages":[{"content":"x"}]}`, "one\xFF", "x\xFF")
	f(Messages, `{"messages":[{"content":"x"}],"system":["one",{"type":"text","text":"two"}]}`, "one\xFFtwo\xFF", "x\xFF")
	f(Messages, `{"system":"one","messages":[{"content":"x"}],"system":null}`, "", "x\xFF")
	f(Messages, `{"system":[],"messages":[{"content":"x"}]}`, "", "x\xFF")
	f(Messages, `{"system":"one","messages":[{"content":"y"}],"system":"two","messages":[{"content":"x"}]}`, "two\xFF", "x\xFF")
	f(Responses, `{"input":"x","instructions":"one"}`, "one\xFF", "x\xFF")
	f(Rerank, `{"query":"one","documents":["x"]}`, "one\xFF", "x")
	f(Chat, `{"system":"one","messages":[{"content":"x"}]}`, "", "x\xFF")
}

func TestSessions(t *testing.T) {
	f := func(kind Kind, members, session, previous string) {
		t.Helper()
		var s Scanner
		scan(&s, kind, []byte(`{`+members+`}`), 1<<16)
		if string(s.req.Session.Bytes()) != session || string(s.req.Previous.Bytes()) != previous {
			t.Errorf("%s: session %q, previous %q", members, s.req.Session.Bytes(), s.req.Previous.Bytes())
		}
	}
	f(Chat, `"session_id":"s\u00e9","messages":[]`, "sé", "")
	f(Responses, `"input":"x","previous_response_id":"resp_1"`, "", "resp_1")
	f(Responses, `"session_id":"a","previous_response_id":"resp_1","session_id":"b"`, "b", "resp_1")
	f(Responses, `"previous_response_id":"resp_1","previous_response_id":null`, "", "")
	f(Chat, `"previous_response_id":"resp_1","messages":[]`, "", "")
}

func TestDialectCounts(t *testing.T) {
	f := func(kind Kind, body string, prompts, aside, tokens, maxTokens int64) {
		t.Helper()
		_, r := canonical(t, kind, body)
		if r.Prompts != prompts || r.AsideBytes != aside || r.PromptTokens != tokens || r.MaxTokens != maxTokens {
			t.Errorf("%s: %d prompts, %d bytes aside, %d tokens, at most %d", body, r.Prompts, r.AsideBytes, r.PromptTokens, r.MaxTokens)
		}
		if r.Untold != (kind > Completions) {
			t.Errorf("%s: Untold %v", body, r.Untold)
		}
	}
	f(Chat, `{"messages":[{"role":"assistant","content":"a","reasoning_content":"12345"}]}`, 0, 5, 0, -1)
	f(Chat, `{"messages":[{"role":"assistant","reasoning":"123","thinking":"4567"}]}`, 0, 7, 0, -1)
	f(Responses, `{"input":"x","instructions":"123","max_output_tokens":9}`, 0, 4, 0, 9)
	f(Messages, `{"system":"123","max_tokens":5,"messages":[{"content":[{"type":"tool_use","name":"f","input":{"a":"bc","d":["e"]}},{"type":"image","source":{"data":"AAAA"}}]}]}`, 0, 4+3, 0, 5)
	f(Embeddings, `{"input":["a","b"]}`, 2, 0, 0, -1)
	f(Embeddings, `{"input":[7,8,9]}`, 0, 0, 3, -1)
	f(Rerank, `{"query":"123","documents":["a","b","c"]}`, 3, 3*4, 0, -1)
	f(Rerank, `{"query":"123","documents":"a"}`, 0, 4, 0, -1)
}

func TestNamespaceOfDialects(t *testing.T) {
	f := func(kind Kind, prompt, member string) {
		t.Helper()
		_, with := canonical(t, kind, `{`+prompt+`,`+member+`}`)
		_, without := canonical(t, kind, `{`+prompt+`}`)
		if with.Template == without.Template || with.Rest != without.Rest {
			t.Errorf("%s: template %x and %x, rest %x", member, with.Template, without.Template, with.Rest)
		}
	}
	f(Responses, `"input":"x"`, `"reasoning":{"effort":"low"}`)
	f(Messages, `"messages":[]`, `"thinking":{"type":"disabled"}`)
	f(Messages, `"messages":[]`, `"output_config":{"effort":"low"}`)
	f(Rerank, `"query":"q","documents":[]`, `"instruction":"find"`)
	f(Embeddings, `"input":"x"`, `"chat_template_kwargs":{"a":1}`)
}

// Token ids reach the sink that takes them in embeddings too.
func TestIDsOfEmbeddings(t *testing.T) {
	var s Scanner
	var sink idRecord
	s.Reset(Embeddings, &sink)
	s.Write([]byte(`{"input":[[1,2],[3]],"model":"m"}`))
	if bad := s.Close(); bad.Fault != NoFault || string(sink.ids) != "\x01\x00\x00\x00\x02\x00\x00\x00" {
		t.Errorf("%v, ids %q", bad, sink.ids)
	}
}

func TestMalformedDialects(t *testing.T) {
	f := func(kind Kind, body string, want Fault) {
		t.Helper()
		var s Scanner
		if scan(&s, kind, []byte(body), 3); s.req.Malformed.Fault != want || string(s.req.Model.Bytes()) != "m" {
			t.Errorf("%s: %v, model %q; want %v", body, s.req.Malformed, s.req.Model.Bytes(), want)
		}
	}
	f(Responses, `{"model":"m"}`, NoPrompt)
	f(Responses, `{"model":"m","input":null}`, NoPrompt)
	f(Responses, `{"model":"m","input":7}`, PromptShape)
	f(Responses, `{"model":"m","input":["text"]}`, PromptShape)
	f(Responses, `{"model":"m","messages":[]}`, NoPrompt)
	f(Messages, `{"model":"m","system":"s"}`, NoPrompt)
	f(Messages, `{"model":"m","messages":"text"}`, PromptShape)
	f(Messages, `{"model":"m","system":"s`, Truncated)
	f(Messages, `{"model":"m","system":[{"text":"x\q"}]}`, Syntax)
	f(Embeddings, `{"model":"m"}`, NoPrompt)
	f(Embeddings, `{"model":"m","input":[1,"a"]}`, PromptShape)
	f(Embeddings, `{"model":"m","input":[1.5]}`, PromptShape)
	f(Rerank, `{"model":"m","query":"q"}`, NoPrompt)
	f(Rerank, `{"model":"m","query":"q","documents":[1]}`, PromptShape)
	f(Rerank, `{"model":"m","documents":"d"}`, NoFault)
	f(Other, `{"model":"m"}`, NoFault)
}
