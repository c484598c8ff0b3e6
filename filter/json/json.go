// Package json reads small JSON documents: the plugin's configuration, an
// event of a stream, a load report. (Request bodies are scanned as they pass,
// by package openai.)
//
// It exists because a Wasm module cannot afford the usual readers: all of
// them, gjson included, import encoding/json and with it os, which doubles the
// module and makes Go's runtime call poll_oneoff, a WASI function that Envoy
// before 1.39 answers with an error that is fatal to the VM (golang/go#78513).
//
// [Parse] checks a whole document once, by RFC 8259. The [Value]s that come of
// it point into the document and are walked without garbage.
package json

import (
	"errors"
	"strconv"
)

// Kind says what a value is.
type Kind uint8

// Absent is the zero Kind: no such member.
const (
	Absent Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// Value is one value of a parsed document. The zero Value is absent.
type Value struct {
	Kind Kind
	Raw  []byte // as it stands in the document, without white space around it
}

// maxDepth bounds nesting; what we read has no more than a handful of levels.
const maxDepth = 64

// Parse checks that document is one JSON value and returns it. Errors name
// the byte where the document stops being JSON.
func Parse(document []byte) (Value, error) {
	start := skipSpace(document, 0)
	end, err := check(document, start, 0)
	if err != nil {
		return Value{}, err
	}
	if rest := skipSpace(document, end); rest < len(document) {
		return Value{}, fault(rest, "text after the end")
	}
	return value(document[start:end]), nil
}

func fault(at int, what string) error {
	return errors.New("JSON: byte " + strconv.Itoa(at) + ": " + what)
}

// value names the kind of a checked value.
func value(raw []byte) Value {
	kind := Number
	switch raw[0] {
	case 'n':
		kind = Null
	case 'f':
		kind = False
	case 't':
		kind = True
	case '"':
		kind = String
	case '[':
		kind = Array
	case '{':
		kind = Object
	}
	return Value{Kind: kind, Raw: raw}
}

// Each calls yield for every element of an array (with an absent key) or
// member of an object, in order, until it returns false. Other values have
// none.
func (v Value) Each(yield func(key, element Value) bool) {
	if v.Kind != Array && v.Kind != Object {
		return
	}
	i := skipSpace(v.Raw, 1)
	for v.Raw[i] != ']' && v.Raw[i] != '}' {
		var key, element Value
		if v.Kind == Object {
			key, i = next(v.Raw, i)
			i = skipSpace(v.Raw, skipSpace(v.Raw, i)+1) // the colon
		}
		element, i = next(v.Raw, i)
		if !yield(key, element) {
			return
		}
		if i = skipSpace(v.Raw, i); v.Raw[i] == ',' {
			i = skipSpace(v.Raw, i+1)
		}
	}
}

// next returns the checked value that begins at i, and where it ends.
func next(b []byte, i int) (Value, int) {
	end := skip(b, i)
	return value(b[i:end]), end
}

// Get finds a member of an object; of several with this key the last counts.
// In anything else there is none.
func (v Value) Get(key string) (found Value) {
	if v.Kind != Object {
		return Value{}
	}
	v.Each(func(k, element Value) bool {
		if k.Is(key) {
			found = element
		}
		return true
	})
	return found
}

// Is reports whether v is the string s.
func (v Value) Is(s string) bool {
	if v.Kind != String {
		return false
	}
	if plain := v.Raw[1 : len(v.Raw)-1]; !escaped(plain) {
		return string(plain) == s
	}
	return v.Text() == s
}

// Empty reports whether v is absent, null, or an empty string, array or
// object.
func (v Value) Empty() bool {
	switch v.Kind {
	case Absent, Null:
		return true
	case String:
		return len(v.Raw) == 2
	case Array, Object:
		c := v.Raw[skipSpace(v.Raw, 1)]
		return c == ']' || c == '}'
	}
	return false
}

// Bool reports whether v is true.
func (v Value) Bool() bool { return v.Kind == True }

// IsBool reports whether v is true or false.
func (v Value) IsBool() bool { return v.Kind == True || v.Kind == False }

// Float is v as a number; ok is false if it is none or does not fit.
func (v Value) Float() (f float64, ok bool) {
	if v.Kind != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	return f, err == nil
}

// Text is what a string stands for, and "" for anything else. A surrogate
// escape without its pair is U+FFFD.
func (v Value) Text() string {
	if v.Kind != String {
		return ""
	}
	plain := v.Raw[1 : len(v.Raw)-1]
	if !escaped(plain) {
		return string(plain)
	}
	return string(appendUnescaped(make([]byte, 0, len(plain)), plain))
}
