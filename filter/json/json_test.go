package json

import (
	std "encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// decode turns a value into what encoding/json makes of it.
func decode(v Value) any {
	switch v.Kind {
	case True, False:
		return v.Bool()
	case Number:
		return std.Number(v.Raw)
	case String:
		return strings.ToValidUTF8(v.Text(), "\uFFFD")
	case Array:
		list := []any{}
		v.Each(func(_, e Value) bool { list = append(list, decode(e)); return true })
		return list
	case Object:
		object := map[string]any{}
		v.Each(func(k, e Value) bool { object[decode(k).(string)] = decode(e); return true })
		return object
	}
	return nil
}

func compare(t *testing.T, in []byte) {
	t.Helper()
	v, err := Parse(in)
	d := std.NewDecoder(strings.NewReader(string(in)))
	d.UseNumber()
	var want any
	stdErr := d.Decode(&want)
	if stdErr == nil && !std.Valid(in) {
		return // text after the end
	}
	if err != nil && strings.Contains(err.Error(), "too deep") {
		return
	}
	if (err == nil) != (stdErr == nil) {
		t.Fatalf("%q: %v, encoding/json: %v", in, err, stdErr)
	}
	if err == nil && utf8.Valid(in) {
		if got := decode(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, encoding/json: %#v", in, got, want)
		}
	}
}

var seeds = []string{
	`null`, ` true `, `-0.5e+3`, `""`, `"a\u00e9\ud83d\ude00\ud83dx\n\/"`, `[]`, `[ 1 , [ ] , {} ]`,
	`{"a":{"b":[1,"x",null]},"c":1e3,"a":2}`, `{"a" : 1 , "b":[true,false]}`,
	`{`, `{"a"}`, `{"a":}`, `[1,]`, `01`, `1.`, `1e`, `-`, `"\x"`, `"\u12g4"`, "\"\x01\"", `nul`, `1 2`, `"abc`, ``, `[}`, `{"a":1,}`,
}

func TestLikeEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		compare(t, []byte(s))
	}
}

func TestValue(t *testing.T) {
	v, err := Parse([]byte(`{"n":1.5,"s":"a\"b","t":"x","e":[ ],"z":null,"big":1e999,"n":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := v.Get("n").Float(); !ok || f != 2 {
		t.Errorf("of two members the last counts: %v %v", f, ok)
	}
	if _, ok := v.Get("big").Float(); ok {
		t.Error("a number that does not fit was taken")
	}
	if !v.Get("s").Is(`a"b`) || !v.Get("t").Is("x") || v.Get("t").Is("y") || v.Get("n").Is("2") {
		t.Error("Is")
	}
	if !v.Get("e").Empty() || !v.Get("z").Empty() || !v.Get("none").Empty() || v.Get("t").Empty() || v.Empty() {
		t.Error("Empty")
	}
	if v.Get("t").Get("x").Kind != Absent || v.Get("none").Text() != "" {
		t.Error("what is not there is not absent")
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	f(`{"a":x}`, "byte 5: no value")
	f(`{"a" 1}`, "byte 5: ':'")
	f(`[1 2]`, "byte 3: ','")
	f(`{} x`, "byte 3: text after")
	f(strings.Repeat("[", 20000), "byte 64: nested too deep")
	f(``, "byte 0: a value is missing")
}

func TestNoGarbage(t *testing.T) {
	doc := []byte(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}`)
	n := testing.AllocsPerRun(100, func() {
		v, _ := Parse(doc)
		v.Get("choices").Each(func(_, c Value) bool { return c.Get("delta").Get("content").Empty() })
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) { compare(t, in) })
}
