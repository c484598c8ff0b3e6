package wire

import (
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// readPrompts takes over a prompt in any of its forms: text, token ids, a list
// of texts, a list of lists of token ids.
func (d *decoder) readPrompts(loc string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		d.prompts = [][]engine.Token{engine.Tokenize(nil, v.Str)}
	case !v.IsArray():
		d.wrong("prompt_type", loc, "Input should be a string, a list of strings, or token ids", v)
	case v.Get("0").Type == gjson.Number:
		d.prompts = [][]engine.Token{d.ids(loc, v)}
	default:
		d.batch(loc, v)
	}
}

// batch reads a list of prompts.
func (d *decoder) batch(where string, list gjson.Result) {
	list.ForEach(func(_, p gjson.Result) bool {
		loc := where + "." + strconv.Itoa(len(d.prompts))
		switch {
		case p.Type == gjson.String:
			d.prompts = append(d.prompts, engine.Tokenize(nil, p.Str))
		case p.IsArray():
			d.prompts = append(d.prompts, d.ids(loc, p))
		default:
			d.wrong("prompt_type", loc, "Input should be a string or a list of token ids", p)
		}
		return len(d.problems) == 0 && len(d.prompts) <= maxSequences
	})
	if len(d.prompts) == 0 && len(d.problems) == 0 {
		d.wrong("too_short", where, "List should have at least 1 item", list)
	}
}

// ids reads a list of token ids.
func (d *decoder) ids(loc string, list gjson.Result) (tokens []engine.Token) {
	list.ForEach(func(_, v gjson.Result) bool {
		n, ok := wholeNumber(v)
		if !ok || n < 0 || n >= engine.Vocabulary {
			d.wrong("token_id", loc+"."+strconv.Itoa(len(tokens)),
				"Token ids are integers from 0 to "+strconv.Itoa(engine.Vocabulary-1), v)
			return false
		}
		tokens = append(tokens, engine.Token(n))
		return true
	})
	return tokens
}
