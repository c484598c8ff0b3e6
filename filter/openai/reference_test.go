package openai

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// This file is the scanner once more, written for clearness on top of
// encoding/json: the whole body in memory, a tree of values, recursion.

// value is a JSON value with its members in order, duplicates included.
type value struct {
	kind    valueKind
	text    string // of a string, in canonical spelling, or a number
	name    string // of a string, as it is
	keys    []string
	members []value // of an object or array
}

// expected is what the scanner should find.
type expected struct {
	Request
	model, user *string
	text        []byte
	borders     []int
}

// Bytes that are not UTF-8 pass through encoding/json as private characters.
const invalidBase = 0x10FE00

func hideInvalid(body []byte) []byte {
	var out []byte
	for len(body) > 0 {
		r, n := utf8.DecodeRune(body)
		if r == utf8.RuneError && n == 1 {
			r = invalidBase + rune(body[0])
		}
		out = utf8.AppendRune(out, r)
		body = body[n:]
	}
	return out
}

func showInvalid(s string) string {
	var out []byte
	for _, r := range s {
		if r >= invalidBase && r < invalidBase+256 {
			out = append(out, byte(r-invalidBase))
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// ambiguous reports whether the body has the private characters itself.
func ambiguous(body []byte) bool {
	return bytes.ContainsFunc(body, func(r rune) bool { return r >= invalidBase && r < invalidBase+256 }) ||
		bytes.Contains(bytes.ToLower(body), []byte(`\udbff`))
}

// spell gives the canonical spelling of a string.
var spell = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace

func decode(d *json.Decoder) value {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch t := token.(type) {
	case nil:
		return value{kind: kindNull}
	case bool:
		if t {
			return value{kind: kindTrue}
		}
		return value{kind: kindFalse}
	case json.Number:
		return value{kind: kindNumber, text: t.String()}
	case string:
		return value{kind: kindString, text: spell(showInvalid(t)), name: showInvalid(t)}
	}
	v := value{kind: containerKind(token == json.Delim('{'))}
	for d.More() {
		if v.kind == kindObject {
			key, _ := d.Token()
			v.keys = append(v.keys, spell(showInvalid(key.(string))))
		}
		v.members = append(v.members, decode(d))
	}
	if _, err := d.Token(); err != nil {
		panic(err)
	}
	return v
}

// reference returns what the scanner should find in body, false if body is
// not a JSON object.
func reference(kind Kind, body []byte) (expected, bool) {
	e := expected{Request: Request{Kind: kind, MaxTokens: -1, N: 1}}
	hidden := hideInvalid(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")))
	if !json.Valid(hidden) {
		return e, false
	}
	d := json.NewDecoder(bytes.NewReader(hidden))
	d.UseNumber()
	v := decode(d)
	if v.kind != kindObject {
		return e, false
	}
	e.read(v)
	return e, true
}

func (e *expected) read(v value) {
	last := map[string]value{}
	for i, key := range v.keys {
		last[key] = v.members[i]
		if isRest(e.Kind, key) && v.members[i].kind != kindNull {
			e.Rest += pair(wordSum(key), digestOf(v.members[i], 0))
		}
	}
	e.model, e.user = stringOf(last["model"]), stringOf(last["user"])
	e.Stream = last["stream"].kind == kindTrue
	e.MaxTokens = countOf(last["max_completion_tokens"])
	if e.MaxTokens < 0 {
		e.MaxTokens = countOf(last["max_tokens"])
	}
	e.N = max(countOf(last["n"]), 1)
	for i, key := range last["stream_options"].keys {
		if key == "include_usage" {
			e.StreamIncludeUsage = last["stream_options"].members[i].kind == kindTrue
		}
	}
	e.namespace(last)
	e.AsideBytes = stringBytes(last["tools"]) + stringBytes(last["functions"])
	switch {
	case e.Kind == Chat:
		e.messages(last["messages"])
	case e.Kind == Completions:
		e.prompt(last["prompt"])
	}
	e.PromptBytes = int64(len(e.text))
}

func isRest(kind Kind, key string) bool {
	switch key {
	case "model", "user", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n",
		"cache_salt", "tools", "functions", "chat_template", "chat_template_kwargs", "documents",
		"add_special_tokens", "reasoning_effort", "mm_processor_kwargs", "truncate_prompt_tokens", "suffix":
		return false
	case "messages":
		return kind != Chat
	case "prompt":
		return kind != Completions
	}
	return true
}

func (e *expected) namespace(last map[string]value) {
	combined := func(keys ...string) uint64 {
		var sum uint64
		for i, key := range keys {
			if v := last[key]; v.kind > kindNull {
				sum += pair(uint64(i)+1, digestOf(v, 0))
			}
		}
		return sum
	}
	if v := last["cache_salt"]; v.kind > kindNull {
		e.Salt = digestOf(v, 0)
	}
	e.Untold = combined("documents", "reasoning_effort", "truncate_prompt_tokens", "suffix") != 0
	e.Tools = combined("tools", "functions")
	e.Template = combined("chat_template", "chat_template_kwargs", "documents", "add_special_tokens",
		"reasoning_effort", "mm_processor_kwargs", "truncate_prompt_tokens", "suffix")
}

func (e *expected) fault(f Fault) {
	if e.Malformed.Fault == NoFault {
		e.Malformed.Fault = f
	}
}

func (e *expected) messages(v value) {
	if v.kind <= kindNull {
		e.fault(NoPrompt)
		return
	}
	if v.kind != kindArray {
		e.fault(PromptShape)
		return
	}
	for _, m := range v.members {
		if m.kind != kindObject {
			e.fault(PromptShape)
			continue
		}
		e.message(m)
	}
}

func (e *expected) message(m value) {
	var sum uint64
	for i, key := range m.keys {
		v := m.members[i]
		switch {
		case key == "content" && v.kind == kindString:
			e.text = append(e.text, v.text+"\xFF"...)
		case key == "content" && v.kind == kindArray:
			for _, p := range v.members {
				e.part(p)
			}
		case v.kind != kindNull:
			sum += pair(wordSum(key), digestOf(v, 0))
			if v.kind >= kindArray {
				e.AsideBytes += stringBytes(v)
			}
		}
	}
	e.text = binary.LittleEndian.AppendUint64(append(e.text, 0xFD), sum)
	e.borders = append(e.borders, len(e.text))
}

func (e *expected) part(p value) {
	var sum uint64
	switch p.kind {
	case kindString:
		e.text = append(e.text, p.text...)
	case kindObject:
		for i, key := range p.keys {
			v := p.members[i]
			switch {
			case key == "text" && v.kind == kindString:
				e.text = append(e.text, v.text...)
			case key == "type" && v.kind == kindString && v.text == "text", v.kind == kindNull:
			default:
				sum += pair(wordSum(key), digestOf(v, 0))
			}
		}
	default:
		sum = digestOf(p, 0)
	}
	if sum == 0 {
		e.text = append(e.text, 0xFF)
		return
	}
	e.OtherParts++
	e.text = binary.LittleEndian.AppendUint64(append(e.text, 0xFE), sum)
}

func (e *expected) prompt(v value) {
	switch v.kind {
	case 0, kindNull:
		e.fault(NoPrompt)
	case kindString:
		e.text = []byte(v.text)
		e.borders = []int{len(e.text)}
	case kindArray:
		e.prompts(v.members)
	default:
		e.fault(PromptShape)
	}
}

func (e *expected) prompts(list []value) {
	for i, p := range list {
		if p.kind != list[0].kind {
			e.fault(PromptShape)
			return
		}
		if i > 0 && p.kind != kindNumber {
			e.text = append(e.text, 0xFF)
		}
		switch p.kind {
		case kindString:
			e.text = append(e.text, p.text...)
		case kindNumber:
			e.token(p)
			continue
		case kindArray:
			for _, id := range p.members {
				e.token(id)
			}
		default:
			e.fault(PromptShape)
		}
		e.Prompts++
		e.borders = append(e.borders, len(e.text))
	}
	if len(list) > 0 && list[0].kind == kindNumber {
		e.borders = append(e.borders, len(e.text))
	}
}

func (e *expected) token(v value) {
	id, err := strconv.ParseUint(v.text, 10, 32)
	if v.text == "-0" {
		err = strconv.ErrSyntax
	}
	if v.kind != kindNumber || err != nil {
		e.fault(PromptShape)
		return
	}
	e.text = binary.LittleEndian.AppendUint32(e.text, uint32(id))
	e.PromptTokens++
}

func stringOf(v value) *string {
	if v.kind != kindString {
		return nil
	}
	return &v.name
}

func countOf(v value) int64 {
	if v.kind != kindNumber {
		return -1
	}
	whole, _, fraction := strings.Cut(v.text, ".")
	if strings.ContainsAny(v.text, "eE") {
		if v.text[0] == '-' {
			return -1
		}
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil && whole[0] == '-', n < 0, fraction && whole == "-0":
		return -1
	case err != nil, n > fits*10+9:
		return math.MaxInt64
	}
	return n
}

// stringBytes counts the text of all strings in v, keys aside.
func stringBytes(v value) (n int64) {
	if v.kind == kindString {
		return int64(len(v.text))
	}
	for _, m := range v.members {
		n += stringBytes(m)
	}
	return n
}

// digestOf is the digest of a value that has depth containers around it.
func digestOf(v value, depth int) uint64 {
	switch v.kind {
	case kindString, kindNumber:
		return scalar(v.kind, wordSum(v.text))
	case kindObject, kindArray:
		l := level{object: v.kind == kindObject}
		for i, m := range v.members {
			l.member(v, i, m, depth+1)
		}
		return mix(l.sum + uint64(v.kind))
	}
	return uint64(v.kind)
}

func (l *level) member(v value, i int, m value, depth int) {
	switch {
	case depth == maxTracked && m.kind >= kindArray:
		flat(m, func(h uint64) { l.sum = mix(l.sum ^ h) })
	case v.kind == kindObject:
		l.sum += pair(wordSum(v.keys[i]), digestOf(m, depth))
	default:
		l.sum = mix(l.sum + digestOf(m, depth))
	}
}

// wordSum is the sum of a word, as word.go has it.
func wordSum(s string) uint64 {
	if len(s) > 31 {
		return xxhash.Sum64String(s)
	}
	var sum uint64
	padded := append([]byte(s), make([]byte, 8-len(s)%8)...)
	for b := padded; len(b) > 0; b = b[8:] {
		sum = bits.RotateLeft64((sum^binary.LittleEndian.Uint64(b))*0x9E3779B97F4A7C15, 29)
	}
	return sum + uint64(len(s))
}

// flat gives the tokens of a value that is too deep for a tree.
func flat(v value, take func(uint64)) {
	if v.kind < kindArray {
		take(digestOf(v, 0))
		return
	}
	take(uint64(v.kind))
	for i, m := range v.members {
		if v.kind == kindObject {
			take(wordSum(v.keys[i]))
		}
		flat(m, take)
	}
	take(0)
}
