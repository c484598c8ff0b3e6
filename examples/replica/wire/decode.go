package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// call is what a body asks for. Of two equal keys the last one counts.
type call struct {
	root      gjson.Result // the body
	model     string       // "": not named
	messages  []engine.Message
	prompts   [][]engine.Token
	text      string // of the prompt, for /tokenize
	tools     string // compact JSON
	generate  bool   // open the answer's frame; only /tokenize may say no
	limit     int    // tokens to generate; 0: not said
	copies    int    // n
	salt      string
	session   string
	full      bool // kv_cache_report_mode
	stream    bool
	usage     bool // stream_options.include_usage
	running   bool // stream_options.continuous_usage_stats
	strings   bool // return_token_strs
	hasPrompt bool
	hasChat   bool

	base64 bool           // how an embedding is written
	heads  []int          // of each prompt, the tokens of its query
	docs   []gjson.Result // the documents, as they stand
	top    int            // documents to tell; 0: all
}

// The most a call may ask for at once. A list of prompts and n multiply.
const (
	maxSequences = 256
	maxMessages  = 100000
)

// decoder gathers a call and what is wrong with it.
type decoder struct {
	call
	prompt   gjson.Result // as it stands
	chat     gjson.Result
	options  bool
	problems []problem
}

// decode reads the fields of a body that any of our paths knows.
func decode(root gjson.Result) *decoder {
	d := &decoder{call: call{root: root, generate: true, copies: 1}}
	root.ForEach(func(k, v gjson.Result) bool {
		d.field(k.String(), v)
		return true
	})
	return d
}

func (d *decoder) field(key string, v gjson.Result) {
	switch key {
	case "model":
		d.string(&d.model, "model", v)
	case "messages":
		d.chat, d.hasChat = v, v.Type != gjson.Null
	case "prompt":
		d.prompt, d.hasPrompt = v, v.Type != gjson.Null
	case "tools":
		d.tools = compact(v)
	case "max_tokens", "max_completion_tokens":
		d.count(&d.limit, key, v)
	case "n":
		d.count(&d.copies, "n", v)
	case "stream":
		d.bool(&d.stream, "stream", v)
	case "stream_options":
		d.options = v.Type != gjson.Null
		d.bool(&d.usage, "stream_options.include_usage", v.Get("include_usage"))
		d.bool(&d.running, "stream_options.continuous_usage_stats", v.Get("continuous_usage_stats"))
	case "cache_salt":
		d.string(&d.salt, "cache_salt", v)
	case "session_id":
		d.string(&d.session, "session_id", v)
	case "vllm_xargs":
		d.full = v.Get("kv_cache_report_mode").String() == "full"
		if s := v.Get("session_id"); s.Exists() {
			d.string(&d.session, "vllm_xargs.session_id", s)
		}
	case "add_generation_prompt":
		d.bool(&d.generate, key, v)
	case "return_token_strs":
		d.bool(&d.strings, key, v)
	}
}

func (d *decoder) wrong(kind, loc, msg string, v gjson.Result) {
	d.problems = append(d.problems, problem{kind: kind, loc: "body." + loc, msg: msg, input: describe(v)})
}

func (d *decoder) missing(loc string) {
	d.problems = append(d.problems, problem{kind: "missing", loc: "body." + loc, msg: "Field required",
		input: describe(d.root)})
}

// string, count and bool take a value of the right kind; null is not there.

func (d *decoder) string(to *string, loc string, v gjson.Result) {
	switch v.Type {
	case gjson.Null:
	case gjson.String:
		*to = v.Str
	default:
		d.wrong("string_type", loc, "Input should be a valid string", v)
	}
}

func (d *decoder) bool(to *bool, loc string, v gjson.Result) {
	switch v.Type {
	case gjson.Null:
	case gjson.True, gjson.False:
		*to = v.Bool()
	default:
		d.wrong("bool_type", loc, "Input should be a valid boolean", v)
	}
}

// count takes a positive whole number; one beyond every limit is as good as the
// largest there is.
func (d *decoder) count(to *int, loc string, v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	n, whole := wholeNumber(v)
	switch {
	case !whole:
		d.wrong("int_type", loc, "Input should be a valid integer", v)
	case n < 1:
		d.problems = append(d.problems, problem{kind: "greater_than_equal", loc: "body." + loc,
			msg: loc + " must be at least 1", input: describe(v)})
	default:
		*to = n
	}
}

// wholeNumber reads an integer, also one written as 4.0; what no int holds is
// the largest or smallest int.
func wholeNumber(v gjson.Result) (n int, ok bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	if i, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
		return int(i), true
	}
	switch f := v.Num; {
	case f != math.Trunc(f):
		return 0, false
	case f >= math.MaxInt:
		return math.MaxInt, true
	case f <= math.MinInt:
		return math.MinInt, true
	default:
		return int(f), true
	}
}

// compact is a JSON value without blanks, "" for null.
func compact(v gjson.Result) string {
	if v.Type == gjson.Null {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(v.Raw)) != nil {
		return v.Raw // valid as a whole, so this is not reached
	}
	return b.String()
}

// decodeChat reads the body of a chat completion.
func decodeChat(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	if d.hasChat {
		d.readMessages(d.chat)
	} else {
		d.missing("messages")
	}
	return d.done()
}

// decodeCompletion reads the body of a completion.
func decodeCompletion(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	if d.limit == 0 {
		d.limit = 16 // the default of this path
	}
	if d.hasPrompt {
		d.readPrompts("prompt", d.prompt)
	} else {
		d.missing("prompt")
	}
	return d.done()
}

// decodeTokenize reads the body of /tokenize, which has either form. Neither
// fits: what is wrong is listed for both.
func decodeTokenize(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	switch {
	case d.prompt.Type == gjson.String:
		d.text = d.prompt.Str
		d.prompts = [][]engine.Token{engine.Tokenize(nil, d.text)}
	case d.hasChat:
		d.readMessages(d.chat)
	default:
		if d.hasPrompt {
			d.wrong("string_type", "prompt", "Input should be a valid string", d.prompt)
		} else {
			d.missing("prompt")
		}
		d.missing("messages")
	}
	return d.done()
}

// done refuses the call or hands it out.
func (d *decoder) done() (*call, *apiError) {
	switch {
	case len(d.problems) > 0:
		return nil, invalid(d.problems[:min(len(d.problems), 20)])
	case d.options && !d.stream:
		return nil, badRequest("Stream options can only be defined when `stream=True`.", "stream_options")
	case max(len(d.prompts), 1) > maxSequences/min(d.copies, maxSequences) || d.copies > maxSequences:
		return nil, badRequest("n times the number of prompts must be at most "+strconv.Itoa(maxSequences), "n")
	}
	return &d.call, nil
}
