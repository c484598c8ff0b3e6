package openai

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// record is a Sink that keeps everything.
type record struct {
	text    []byte
	borders []int
	resets  int
	head    *record
}

func (r *record) Text(b []byte) { r.text = append(r.text, b...) }
func (r *record) Border()       { r.borders = append(r.borders, len(r.text)) }
func (r *record) Reset()        { r.text, r.borders, r.resets = r.text[:0], r.borders[:0], r.resets+1 }

// scan scans body in pieces of at most size bytes.
func scan(s *Scanner, kind Kind, body []byte, size int) *record {
	r := &record{head: &record{}}
	s.Reset(kind, r)
	s.SetHead(r.head)
	for len(body) > size {
		s.Write(body[:size])
		body = body[size:]
	}
	s.Write(body)
	s.Close()
	return r
}

// check compares the scanner with the reference, at some cuts.
func check(t *testing.T, kind Kind, body []byte) {
	t.Helper()
	want, isObject := reference(kind, body)
	var s Scanner
	var places [4]int64
	for i, size := range []int{len(body) + 1, 1, 2, 3, 7, 13, 64} {
		got := scan(&s, kind, body, size)
		at := [...]int64{s.req.ModelAt, s.req.ModelEnd, s.req.OptionsEnd, s.req.BodyEnd}
		if i > 0 && at != places {
			t.Fatalf("%.2000q in pieces of %d: places %v, want %v", body, size, at, places)
		}
		places = at
		if diff := compare(&s.req, got, &want, isObject); diff != "" {
			t.Fatalf("%.2000q in pieces of %d: %s", body, size, diff)
		}
		if s.req.BodyBytes != int64(len(body)) {
			t.Fatalf("BodyBytes %d, want %d", s.req.BodyBytes, len(body))
		}
	}
	if isObject {
		checkPlaces(t, kind, body, &s.req)
	}
}

// checkPlaces changes the body where the request says that something stands.
func checkPlaces(t *testing.T, kind Kind, body []byte, r *Request) {
	t.Helper()
	rescan := func(at, end int64, insert string) *Request {
		changed := slices.Concat(body[:at], []byte(insert), body[end:])
		var s Scanner
		scan(&s, kind, changed, 1<<16)
		if s.req.Malformed.Fault != r.Malformed.Fault {
			t.Fatalf("%.2000q is %v, became %.2000q, which is %v", body, r.Malformed, changed, s.req.Malformed)
		}
		return &s.req
	}
	if r.Model.Present() != (r.ModelAt >= 0) || r.ModelAt < 0 && r.ModelEnd >= 0 {
		t.Fatalf("%.2000q: model %q from %d to %d", body, r.Model.Bytes(), r.ModelAt, r.ModelEnd)
	}
	if r.ModelAt >= 0 {
		if after := rescan(r.ModelAt, r.ModelEnd, `an\/other`); string(after.Model.Bytes()) != "an/other" {
			t.Fatalf("%.2000q: model from %d to %d", body, r.ModelAt, r.ModelEnd)
		}
	}
	if after := rescan(r.BodyEnd, r.BodyEnd, commaAfter(body[:r.BodyEnd])+`"stream_options":{"include_usage":true}`); !after.StreamIncludeUsage {
		t.Fatalf("%.2000q ends at %d", body, r.BodyEnd)
	}
	if r.OptionsEnd < 0 {
		return
	}
	if after := rescan(r.OptionsEnd, r.OptionsEnd, commaAfter(body[:r.OptionsEnd])+`"include_usage":true`); !after.StreamIncludeUsage {
		t.Fatalf("%.2000q: stream_options end at %d", body, r.OptionsEnd)
	}
}

// commaAfter is what an object that b ends inside of needs before another member.
func commaAfter(b []byte) string {
	if bytes.HasSuffix(bytes.TrimRight(b, " \t\r\n"), []byte("{")) {
		return ""
	}
	return ","
}

func compare(r *Request, got *record, want *expected, isObject bool) string {
	fault := r.Malformed.Fault
	if !isObject {
		if fault == NoFault || fault > NotObject {
			return fmt.Sprintf("fault %v, want one of the JSON", fault)
		}
		return ""
	}
	if fault != want.Malformed.Fault {
		return fmt.Sprintf("fault %v, want %v", fault, want.Malformed.Fault)
	}
	if d := compareName(&r.Model, want.model) + compareName(&r.User, want.user) +
		compareName(&r.Session, want.session) + compareName(&r.Previous, want.previous); d != "" {
		return d
	}
	a, b := withoutPlaces(*r), want.Request
	a.Model, a.User, a.Session, a.Previous = Name{}, Name{}, Name{}, Name{}
	a.BodyBytes, a.Malformed, b.Malformed = 0, Malformed{}, Malformed{}
	if fault != NoFault {
		a.PromptBytes, a.PromptTokens, a.AsideBytes = b.PromptBytes, b.PromptTokens, b.AsideBytes
		a.Prompts, a.OtherParts = b.Prompts, b.OtherParts
	}
	if a != b {
		return strings.ReplaceAll(fmt.Sprintf("request %+v\nwant    %+v", a, b), " 0", "")
	}
	if fault == NoFault && (!bytes.Equal(got.text, want.text) || !slices.Equal(got.borders, want.borders)) {
		return fmt.Sprintf("text %.400q, borders %d\nwant %.400q, borders %d", got.text, got.borders, want.text, want.borders)
	}
	if got.head != nil && !bytes.Equal(got.head.text, want.head) {
		return fmt.Sprintf("head %.400q\nwant %.400q", got.head.text, want.head)
	}
	return ""
}

func withoutPlaces(r Request) Request {
	r.ModelAt, r.ModelEnd, r.OptionsEnd, r.BodyEnd = 0, 0, 0, 0
	return r
}

func compareName(n *Name, want *string) string {
	switch {
	case want == nil && !n.Present():
	case want != nil && n.Present() && len(spell(*want)) > maxName && n.TooLong() && len(n.Bytes()) == 0:
	case want != nil && n.Present() && !n.TooLong() && string(n.Bytes()) == *want:
	default:
		return fmt.Sprintf("name %q (present %v, too long %v), want %v", n.Bytes(), n.Present(), n.TooLong(), want)
	}
	return ""
}

// bodies are whole requests and fragments of them; the fuzz target starts
// from them too.
var bodies = []string{
	`{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	` { "model" : "m" ,` + "\n\n" + `  "stream":true , "messages" : [ {"role":"user","content":"hi"} ] } ` + "\n",
	"\xEF\xBB\xBF" + `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	"\xEF\xBB" + `{"model":"m"}`, "\xEF \xBB\xBF{}", " \xEF\xBB\xBF{}", "\xEF\xBB\xBF", "\xEF\xBB\xBF\xEF\xBB\xBF{}",
	`{"messages":[{"content":"text first","role":"user","name":"n"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"now","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"12:00"}],"model":"org/base-7b"}`,
	`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"T"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
	`{"model":"m","messages":[{"role":"user","content":["a",{"text":"b"},{"type":"input_text","text":"c"},5,null,[1,[2]],{},{"text":7},{"type":null,"text":null}]}]}`,
	`{"model":"m","messages":[{"role":"user","content":{"odd":[1,{"a":"b"}]}},{"content":5},{"content":true},{}]}`,
	`{"model":"small","model":"big","messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"hi"}]}`,
	`{"stream":false,"stream":true,"n":3,"n":null,"messages":5,"messages":[]}`,
	`{"messages":[{"content":"x"}],"messages":null}`, `{"messages":[{"content":"x"}],"messages":"no"}`, `{"messages":[1,{"content":"x"}]}`,
	`{"mod\u0065l":"a\"b:c@1","messages":[],"\u006d\u0065ssages":[{"c\u006fntent":"\u00e9\n\t\\\/\b\f\r"}]}`,
	`{"messages":[{"content":"\/path\/\u0022quoted\u0022 \u005c\u000a\u001F \\] \"# \\\\\"\\"},{"content":"caf\u00e9 au lait, s'il vous pla\u00eet\n\tet un croissant, et un jus d'orange, et puis encore autre chose qui va loin\n\u00e0"}]}`,
	`{"m\u006fdel":"\"a\n\u0022\/","user":"\\","t\"k":"\u0009\t","model ":"` + strings.Repeat(`\"`, 200) + `"}`,
	`{"model":"` + strings.Repeat(`\n`, 128) + `","user":"` + strings.Repeat(`\n`, 129) + `"}`,
	`{"messages":[{"content":"\ud83d\ude00 \ud83d \ud83dx \ude00 \ud83d\n \ud83d\ud83d\ude00 \ud83d\u0041 \ud83d"}]}`,
	`{"messages":[{"content":"\u65e5\u672c\u8a9e text \u0000 \uFFFF long enough for the fast path to be taken"}]}`,
	"{\"messages\":[{\"content\":\"\xff\xfe raw \xc3\x28 \xed\xa0\x80\"}]}",
	`{"messages":[{"content":"\x"}]}`, `{"messages":[{"content":"\u12G4"}]}`, `{"messages":[{"content":"\ud83d\u12"}]}`, "{\"a\":\"line\nbreak\"}", "{\"a\":\"tab\there\"}",
	`{"max_tokens":5,"max_completion_tokens":7,"n":2}`, `{"max_tokens":99999999999999999999,"n":-3}`, `{"max_tokens":1e3,"n":2.5}`, `{"max_tokens":-1e3}`, `{"max_tokens":"5","n":"2"}`,
	`{"max_tokens":-0,"n":0}`, `{"max_tokens":9223372036854775807}`, `{"max_tokens":922337203685477580}`, `{"max_tokens":-9223372036854775809}`, `{"max_tokens":-0.5}`,
	`{"n":01}`, `{"n":-}`, `{"n":1.}`, `{"n":.5}`, `{"n":1e}`, `{"n":1e+}`, `{"n":1e+5}`, `{"n":1E-2}`, `{"n":+1}`, `{"n":1.5e3,"m":-2.25,"o":0.0,"p":0e0}`, `{"n":NaN}`,
	`{"user":"u","cache_salt":"s","tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":[true,false,null]}}}],"chat_template_kwargs":{"x":1},"seed":7}`,
	`{"tools":null,"cache_salt":null,"chat_template":"{{ x }}","functions":[{"name":"g"}],"stream_options":{"include_usage":true,"other":[1]}}`,
	`{"stream_options":{"include_usage":true},"stream_options":{}}`, `{"stream_options":{"include_usage":true},"stream_options":null}`, `{"stream_options":[true]}`, `{"stream_options":{"include_usage":"yes"}}`,
	`{"prompt":"","max_tokens":4}`, `{"prompt":"one"}`, `{"prompt":["one","two"]}`, `{"prompt":["one"]}`, `{"prompt":[]}`, `{"prompt":null}`, `{"prompt":5}`, `{"prompt":{}}`, `{"prompt":true}`,
	`{"prompt":[15,27,99]}`, `{"prompt":[[15,27],[99]]}`, `{"prompt":[[]]}`, `{"prompt":[[],[]]}`, `{"prompt":[4294967295,0]}`, `{"prompt":[4294967296]}`, `{"prompt":[-1]}`, `{"prompt":[1.0]}`, `{"prompt":[-0]}`,
	`{"prompt":[1,"a"]}`, `{"prompt":["a",1]}`, `{"prompt":[[1],2]}`, `{"prompt":[[1,"a"]]}`, `{"prompt":[null]}`, `{"prompt":[[[1]]]}`, `{"prompt":[{}]}`, `{"prompt":["a",["b"]]}`, `{"prompt":[[1],"a"]}`,
	`{"prompt":[1,2],"prompt":"text"}`, `{"prompt":"text","prompt":[1,2]}`, `{"prompt":"long","prompt":null}`,
	``, ` `, `{`, `{}`, `[]`, `"a"`, `5`, `null`, `true`, `nul`, `}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{"a":[1,]}`, `{"a":[,]}`, `{"a":[1 2]}`, `{"a":[}`, `{"a":{]}`, `{}{}`, `{} x`, `{"a":tru}`, `{"a":truE}`, `{"a":nullx}`, `{a:1}`, `{"a":1`, `{"a`, `{"a\`, `{"a":"b\u00`, `{"a":-`, `{"a":1}` + "\x00",
	`{"user":"` + strings.Repeat("u", 256) + `","model":"` + strings.Repeat("m", 257) + `"}`,
	`{"model":"` + strings.Repeat("m", 600) + `","` + strings.Repeat("k", 600) + `":"` + strings.Repeat("v", 600) + `\n` + strings.Repeat("v", 600) + `"}`,
	`{"model":"` + strings.Repeat("m", 600) + `","model":"short"}`,
	`{"messages":[{"tool_calls":[{"a":"` + strings.Repeat("v", 700) + `\"` + strings.Repeat("w", 300) + `"}],"content":"\ud83d\ude00\ud83d\ude00\u65e5\ud83d\u65e5\ud83d\ude00"}]}`,
	// Responses.
	`{"model":"m","stream":true,"input":"hi","max_output_tokens":4}`,
	`{"input":[{"role":"user","content":"hi"}],"instructions":"be \u00e9","previous_response_id":"resp_1","session_id":"s","reasoning":{"effort":"low"}}`,
	`{"instructions":["a",{"type":"input_text","text":"b"},5],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:","detail":"auto"}]},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[{"a":1}],"logprobs":null}]}]}`,
	`{"input":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"now","arguments":"{\"a\":1}","status":"completed"},{"type":"function_call_output","call_id":"c1","output":"12:00"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"12:00"},{"type":"input_file","file_id":"f"}]}]}`,
	`{"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"r"}],"encrypted_content":"x"},{"type":"item_reference","id":"msg_9"},{"id":"msg_10"},{"type":null,"id":5},{"output":{"a":"bc"},"arguments":7,"status":["x"]}]}`,
	`{"input":null}`, `{"input":[]}`, `{"input":5,"instructions":5}`, `{"input":{"a":1},"instructions":{"a":[1]}}`, `{"input":"a","input":"b","instructions":"one","instructions":"two"}`, `{"instructions":"x","instructions":null,"input":""}`, `{"input":[5,"a",null,[]]}`, `{"previous_response_id":7,"session_id":null,"input":"x"}`,
	`{"input":"` + strings.Repeat("long text ", 90) + `","instructions":"` + strings.Repeat(`line\n`, 500) + `"}`,
	// Messages.
	`{"model":"m","max_tokens":9,"system":"be nice","messages":[{"role":"user","content":"hi"}],"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"low"},"cache_control":{"type":"ephemeral"}}`,
	`{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"document","source":{"type":"text","data":"d"}}]}],"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"be nice","cache_control":{"type":"ephemeral"}}]}`,
	`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm\n","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"t1","name":"f","input":{"a":"b","c":["d"]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"out"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"out"},{"type":"image","source":{}},"x",5,{"content":"deep","thinking":["y"]},{"content":[{"type":"text","text":"deeper"}]}]},{"content":7,"thinking":{"a":1}},{"input":"text"}]}]}`,
	`{"system":[{"text":"x-anthropic-billing-header","type":"image"},{"text":"x-anthropic-billing-header\n","text":"b"},{"text":"x-anthropic-billing-heade"},"x-anthropic-billing-header",{"text":"x-anthropic-billing-header` + strings.Repeat(".", 230) + `"},{"text":"x-anthropic-billing-header` + strings.Repeat(".", 231) + `"},{"input":{"a":"b"}}],"messages":[{"content":[{"text":"x-anthropic-billing-header"}]}]}`,
	`{"tools":[{"name":"f","cache_control":{"type":"ephemeral"},"input_schema":{"properties":{"cache_control":{"type":"string"}}}},["a",{"cache_control":1}],"b"],"tools2":1,"messages":[]}`, `{"tools":{"a":{"cache_control":1,"":2},"cache_control":3},"messages":[]}`,
	`{"system":null,"messages":[]}`, `{"system":[],"messages":[]}`, `{"system":"","messages":[]}`, `{"system":true,"messages":[]}`, `{"messages":[{"content":[{"image":1}]}],"system":[{"image":1},{"image":2}]}`,
	// Embeddings and rerank.
	`{"input":"text"}`, `{"input":["a","b"]}`, `{"input":[1,2,3]}`, `{"input":[[1,2],[3]]}`, `{"input":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]}`, `{"input":[{"content":"a"},"b"]}`, `{"input":["b",{"content":"a"}]}`, `{"input":[[{"content":"a"}]]}`, `{"input":"a","messages":[{"content":"b"}]}`, `{"messages":[{"content":"b"}],"input":"a"}`,
	`{"query":"q","documents":["one","two"],"instruction":"find"}`, `{"documents":[{"text":"one"},"two",{"title":"t","text":"three"},{"content":[{"type":"image_url"}]},{}],"query":{"content":[{"type":"text","text":"q"}]}}`, `{"text_1":["a","b"],"text_2":"c"}`, `{"queries":["a"],"items":[],"data_1":"last"}`, `{"query":"q","documents":[1]}`, `{"query":"q","documents":[["a"]]}`, `{"query":"q","documents":["a",null]}`, `{"query":5,"documents":{"a":1}}`, `{"data_1":"q","data_2":"one \u00e9"}`, `{"query":"q"}`,
	`{"messages":[{"role":"assistant","content":"a","reasoning_content":"because","reasoning":"so","thinking":["x","y"]}]}`,
	`{"model":5,"model":"a"}`, `{"model":"a","model":null}`, `{"model" : "a\u00e9\/b" , "stream_options" : { "include_usage" : false , "continuous_usage_stats" : true } }`, `{"stream_options":{ }}`, `{ }`, "\xEF\xBB\xBF { } ",
	`{"x":` + strings.Repeat("[", 40) + `{"a":{"b":1},"c":2}` + strings.Repeat("]", 40) + `}`,
	`{"x":` + strings.Repeat(`{"k":`, 40) + `[1,{"b":null}]` + strings.Repeat("}", 40) + `}`,
	`{"messages":[{"content":"` + strings.Repeat("plain text of some length, ", 200) + `"},{"content":"` + strings.Repeat(`a line of a good sixty characters, then what ends it all: \n`, 90) + `"}]}`,
}

func TestScannerAgreesWithReference(t *testing.T) {
	for kind := Other; kind <= Rerank; kind++ {
		for _, body := range bodies {
			check(t, kind, []byte(body))
		}
	}
}

func TestScannerAtEveryCut(t *testing.T) {
	var s Scanner
	for _, body := range bodies {
		if len(body) > 1000 {
			continue
		}
		for kind := Chat; kind <= Rerank; kind++ {
			want, isObject := reference(kind, []byte(body))
			for cut := range len(body) + 1 {
				r := &record{}
				s.Reset(kind, r)
				s.Write([]byte(body[:cut]))
				s.Write([]byte(body[cut:]))
				s.Close()
				if diff := compare(&s.req, r, &want, isObject); diff != "" {
					t.Fatalf("%q cut at %d: %s", body, cut, diff)
				}
			}
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, body := range bodies {
		for kind := Chat; kind <= Rerank; kind++ {
			f.Add([]byte(body), uint8(kind), 5)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, dialect uint8, cut int) {
		kind := Kind(dialect) % (Rerank + 1)
		if ambiguous(body) {
			return
		}
		check(t, kind, body)
		if cut < 0 || cut > len(body) {
			return
		}
		want, isObject := reference(kind, body)
		var s Scanner
		r := &record{}
		s.Reset(kind, r)
		s.Write(body[:cut])
		s.Write(body[cut:])
		s.Close()
		if diff := compare(&s.req, r, &want, isObject); diff != "" {
			t.Fatalf("%q cut at %d: %s", body, cut, diff)
		}
	})
}
