package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth is how deep a body may nest. Beyond it Python gives up too.
const maxDepth = 900

// parse checks a body and returns its root, which is an object. A byte order
// mark is skipped, as Python does.
func parse(body []byte) (gjson.Result, *apiError) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if len(body) == 0 {
		return gjson.Result{}, invalid([]problem{{kind: "missing", loc: "body", msg: "Field required", input: "None"}})
	}
	if !utf8.Valid(body) || depth(body) > maxDepth {
		return gjson.Result{}, &apiError{400, badBody, "There was an error parsing the body", ""}
	}
	if !gjson.ValidBytes(body) {
		return gjson.Result{}, syntaxError(body)
	}
	root := gjson.ParseBytes(body)
	if !root.IsObject() {
		return root, invalid([]problem{{kind: "model_attributes_type", loc: "body",
			msg: "Input should be a valid dictionary or object to extract fields from", input: describe(root)}})
	}
	return root, nil
}

// depth is how deep the arrays and objects of a text nest, whether or not it is
// JSON. It keeps a recursive reader from running out of stack.
func depth(body []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}

// syntaxError says where a body stops being JSON, in the words of Python's parser
// as far as they can be told.
func syntaxError(body []byte) *apiError {
	at, msg := int64(len(body)), "'Expecting value'"
	var v any
	var se *json.SyntaxError
	if err := json.Unmarshal(body, &v); errors.As(err, &se) {
		at = se.Offset
		if at < int64(len(body)) || !bytes.Contains([]byte(se.Error()), []byte("unexpected end")) {
			at--
		}
		msg = pythonSays(body, at)
	}
	loc := "body." + strconv.FormatInt(max(at, 0), 10)
	return invalid([]problem{{kind: "json_invalid", loc: loc, msg: "JSON decode error", input: "'<dict of 0 items>'",
		tail: ", 'ctx': {'error': " + msg + "}"}})
}

// pythonSays guesses the parser's message, in quotes, from what stands before the fault.
func pythonSays(body []byte, at int64) string {
	before := bytes.TrimRight(body[:at], " \t\r\n")
	if len(before) == 0 {
		return "'Expecting value'"
	}
	switch before[len(before)-1] {
	case '{', ',':
		return "'Expecting property name enclosed in double quotes'"
	case '"':
		return `"Expecting ':' delimiter"`
	case ':', '[':
		return "'Expecting value'"
	}
	return `"Expecting ',' delimiter"`
}

// describe prints a value the way vLLM's messages do: containers by size only.
func describe(v gjson.Result) string {
	switch {
	case v.IsArray():
		return "'<list of " + strconv.Itoa(len(v.Array())) + " items>'"
	case v.IsObject():
		return "'<dict of " + strconv.Itoa(countKeys(v)) + " items>'"
	case v.Type == gjson.Null:
		return "None"
	case v.Type == gjson.True:
		return "True"
	case v.Type == gjson.False:
		return "False"
	case v.Type == gjson.String:
		return "'" + clip(v.Str) + "'"
	}
	return "'" + clip(v.Raw) + "'"
}

func countKeys(v gjson.Result) int {
	keys := map[string]bool{}
	v.ForEach(func(k, _ gjson.Result) bool {
		keys[k.Str] = true
		return true
	})
	return len(keys)
}

// clip bounds what is quoted from a body in an error.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	for n := most; ; n-- {
		if utf8.RuneStart(s[n]) {
			return s[:n] + "..."
		}
	}
}

// appendJSON appends s as a JSON string. Text without anything to escape, which
// is nearly all of it, is copied.
func appendJSON(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
