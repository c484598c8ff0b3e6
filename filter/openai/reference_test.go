package openai

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
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
	model, user       *string
	session, previous *string
	head              []byte
	text              []byte
	borders           []int
	inHead            bool // what is being read is the head
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

// roleOf says what a member of the body is for in a dialect; empty if it has no
// field in the Request.
func roleOf(kind Kind, key string) string {
	if role, ok := dialectRoles[kind][key]; ok {
		return role
	}
	switch key {
	case "model", "user", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n", "session_id",
		"cache_salt", "tools", "functions", "chat_template", "chat_template_kwargs", "documents",
		"add_special_tokens", "reasoning_effort", "mm_processor_kwargs", "truncate_prompt_tokens", "suffix":
		return key
	}
	return ""
}

// Roles in capital letters are names of roles only, never of members.
var dialectRoles = map[Kind]map[string]string{
	Chat:        {"messages": "MESSAGES"},
	Completions: {"prompt": "PROMPT"},
	Responses: {
		"input": "ITEMS", "instructions": "HEAD", "max_output_tokens": "max_completion_tokens",
		"previous_response_id": "PREVIOUS", "reasoning": "REASONING",
	},
	Messages: {
		"messages": "MESSAGES", "system": "HEAD", "thinking": "THINKING", "output_config": "OUTPUT",
		"cache_control": "IGNORED",
	},
	Embeddings: {"input": "PROMPT", "messages": "MESSAGES"},
	Rerank: {
		"query": "HEAD", "queries": "HEAD", "text_1": "HEAD", "data_1": "HEAD",
		"documents": "PROMPT", "items": "PROMPT", "text_2": "PROMPT", "data_2": "PROMPT",
		"instruction": "INSTRUCTION",
	},
}

func (e *expected) read(v value) {
	last := map[string]value{}
	prompt := ""
	for i, key := range v.keys {
		role := roleOf(e.Kind, key)
		last[role] = v.members[i]
		switch role {
		case "":
			if v.members[i].kind != kindNull {
				e.Rest += pair(wordSum(key), digestOf(v.members[i], 0))
			}
		case "MESSAGES", "PROMPT", "ITEMS":
			prompt = role
		}
	}
	e.model, e.user = stringOf(last["model"]), stringOf(last["user"])
	e.session, e.previous = stringOf(last["session_id"]), stringOf(last["PREVIOUS"])
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
	e.readHead(last["HEAD"], last["PREVIOUS"])
	switch prompt {
	case "MESSAGES":
		e.messages(last[prompt])
	case "ITEMS":
		e.items(last[prompt])
	case "PROMPT":
		e.prompt(last[prompt])
	default:
		if e.Kind != Other {
			e.fault(NoPrompt)
		}
	}
	e.PromptBytes = int64(len(e.text))
	e.AsideBytes += stringBytes(last["tools"]) + stringBytes(last["functions"]) + e.HeadBytes*max(e.Prompts, 1)
}

// readHead reads what the engine renders before the prompt.
func (e *expected) readHead(v, previous value) {
	e.inHead = true
	switch v.kind {
	case 0, kindNull:
	case kindString:
		e.text = []byte(v.text + "\xFF")
	case kindArray:
		e.parts(v.members, false)
	default:
		e.digestPart(digestOf(v, 0))
	}
	e.head, e.text = e.text, nil
	e.inHead = false
	if e.HeadBytes = int64(len(e.head)); e.HeadBytes > 0 {
		e.Head = mix(xxhash.Sum64(e.head))
	}
	if previous.kind > kindNull {
		e.Head = pair(e.Head, digestOf(previous, 0))
	}
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
	e.Untold = e.Kind > Completions || combined("documents", "reasoning_effort", "truncate_prompt_tokens", "suffix") != 0
	if e.Kind == Messages {
		last["TOOLS"] = unmarked(last["tools"])
		e.Tools = combined("TOOLS", "functions")
	} else {
		e.Tools = combined("tools", "functions")
	}
	e.Template = combined("chat_template", "chat_template_kwargs", "documents", "add_special_tokens",
		"reasoning_effort", "mm_processor_kwargs", "truncate_prompt_tokens", "suffix",
		"REASONING", "THINKING", "OUTPUT", "INSTRUCTION")
}

// unmarked is a list of tools without their marks for the cache.
func unmarked(v value) value {
	members := slices.Clone(v.members)
	for i, m := range members {
		if m.kind != kindObject {
			continue
		}
		members[i].keys, members[i].members = nil, nil
		for j, key := range m.keys {
			if key != "cache_control" {
				members[i].keys = append(members[i].keys, key)
				members[i].members = append(members[i].members, m.members[j])
			}
		}
	}
	v.members = members
	return v
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

// items reads the input of /v1/responses. A text is what the user says.
func (e *expected) items(v value) {
	if v.kind == kindString {
		v = value{kind: kindArray, members: []value{{kind: kindObject, keys: []string{"role", "content"},
			members: []value{{kind: kindString, text: "user"}, v}}}}
	}
	e.messages(v)
}

func (e *expected) message(m value) {
	var sum, id uint64
	reference := false
	for i, key := range m.keys {
		v := m.members[i]
		responses := e.Kind == Responses
		streams := key == "content" || responses && (key == "output" || key == "arguments")
		if streams && (v.kind == kindString || v.kind == kindArray) {
			if key != "content" {
				sum += pair(wordSum(key), uint64(kindString))
			}
			e.content(v, false)
			continue
		}
		if v.kind >= kindArray || e.Kind == Chat && (key == "reasoning_content" || key == "reasoning" || key == "thinking") {
			e.AsideBytes += stringBytes(v)
		}
		switch {
		case v.kind == kindNull, responses && key == "status":
		case responses && key == "id":
			id = pair(wordSum(key), digestOf(v, 0))
		case responses && key == "type" && v.kind == kindString && v.text == "message":
		default:
			sum += pair(wordSum(key), digestOf(v, 0))
			reference = reference || responses && key == "type" && v.kind == kindString && v.text == "item_reference"
		}
	}
	if reference || sum == 0 {
		sum += id
	}
	e.text = binary.LittleEndian.AppendUint64(append(e.text, 0xFD), sum)
	e.borders = append(e.borders, len(e.text))
}

// content reads a text or a list of parts.
func (e *expected) content(v value, nested bool) {
	if v.kind == kindString {
		e.text = append(e.text, v.text+"\xFF"...)
		return
	}
	e.parts(v.members, nested)
}

func (e *expected) parts(list []value, nested bool) {
	for _, p := range list {
		switch p.kind {
		case kindString:
			e.text = append(e.text, p.text+"\xFF"...)
		case kindObject:
			sum, dropped := e.part(p, nested)
			switch {
			case dropped:
			case sum == 0:
				e.text = append(e.text, 0xFF)
			default:
				e.digestPart(sum)
			}
		default:
			e.digestPart(digestOf(p, 0))
		}
	}
}

func (e *expected) digestPart(sum uint64) {
	if !e.inHead {
		e.OtherParts++
	}
	e.text = binary.LittleEndian.AppendUint64(append(e.text, 0xFE), sum)
}

// part reads what a part says and returns the digest of its other members. A
// nested one is in the content of a part itself.
func (e *expected) part(p value, nested bool) (sum uint64, dropped bool) {
	for i, key := range p.keys {
		v := p.members[i]
		messages := e.Kind == Messages
		text := v.kind == kindString || v.kind == kindArray
		switch {
		case v.kind == kindNull:
		case key == "text" && v.kind == kindString:
			if e.inHead && messages && len(v.text) <= 256 && strings.HasPrefix(v.text, "x-anthropic-billing-header") {
				dropped = true
				continue
			}
			e.text = append(e.text, v.text...)
		case key == "type" && v.kind == kindString && e.isTextType(v.text):
		case messages && key == "cache_control", e.Kind == Responses && (key == "annotations" || key == "logprobs"):
		case messages && (key == "content" || key == "thinking") && text && !nested:
			sum += pair(wordSum(key), uint64(kindString))
			e.content(v, true)
		default:
			sum += pair(wordSum(key), digestOf(v, 0))
			if messages && key == "input" && !e.inHead {
				e.AsideBytes += stringBytes(v)
			}
		}
	}
	return sum, dropped
}

func (e *expected) isTextType(name string) bool {
	return name == "text" || e.Kind == Responses && (name == "input_text" || name == "output_text")
}

func (e *expected) prompt(v value) {
	switch v.kind {
	case 0, kindNull:
		e.fault(NoPrompt)
	case kindString:
		e.text = []byte(v.text)
		e.borders = []int{len(e.text)}
	case kindArray:
		if e.Kind == Embeddings && len(v.members) > 0 && v.members[0].kind == kindObject {
			e.messages(v)
			return
		}
		e.prompts(v.members)
	default:
		e.fault(PromptShape)
	}
}

func (e *expected) prompts(list []value) {
	for i, p := range list {
		if p.kind != list[0].kind && e.Kind != Rerank || e.Kind == Rerank && p.kind != kindString && p.kind != kindObject {
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
		case kindObject:
			if e.Kind != Rerank {
				e.fault(PromptShape)
			} else if sum, _ := e.part(p, false); sum != 0 {
				e.digestPart(sum)
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
