package lab

import (
	"slices"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// The frame of a message in tokens: see engine.Chat. A message begins with a
// mark, its role and a line end, and ends with a mark and a line end. A prompt
// ends with the beginning of the answer's frame.
var (
	frameTokens = map[string]int{
		"system": frameOf("system"), "user": frameOf("user"), "assistant": frameOf("assistant"),
	}
	openTokens = frameTokens["assistant"] - closeTokens
)

const closeTokens = 2

func frameOf(role string) int {
	return len(engine.Chat(nil, "", []engine.Message{{Role: role}}, false))
}

// leastTokens is the least a message has, frame and all.
const leastTokens = 8

// border is where a message of the role begins.
type border struct {
	at   int
	role string
}

// converse makes up the text of prompts of which only lengths and equal
// beginnings are known. Messages end where conversations part, and where a
// prompt ended that another goes on from: there the answer follows, as long as
// the trace says but of other words, and then the next question. So equal ids
// are equal text, and text parts where the text of real clients does.
func converse(setting string, all []arrival, seed uint64) *Workload {
	w := &Workload{Setting: setting, Requests: make([]Request, 0, len(all))}
	for _, p := range plant(all, seed).prompts {
		r := Request{At: p.at, Output: p.output, Turn: p.turn}
		r.Messages, r.Tokens = p.messages()
		w.Requests = append(w.Requests, r)
	}
	return w
}

// messages writes the prompt's messages, which have so many tokens in all.
func (p *prompt) messages() (list []Message, tokens int) {
	from, role := 0, "user"
	if p.path[0].parts {
		role = "system" // what many begin with
	}
	for _, next := range append(p.borders(), border{at: p.input - openTokens}) {
		frame := frameTokens[role]
		first := from + frame - closeTokens
		last := max(next.at-closeTokens, first+1)
		text := p.appendWords(make([]byte, 0, 5*(last-first)), first, last)
		list = append(list, Message{Role: role, Content: string(text)})
		tokens += frame + last - first
		from, role = next.at, next.role
	}
	return list, tokens + openTokens
}

// borders are those of all prompts that pass through n, in order, up to
// wherever the conversations that n knows of have come.
func (n *node) borders() []border {
	if n.parent == nil {
		return nil
	}
	if q := n.after; q != nil {
		answered := q.input + q.output + closeTokens
		return append(q.borders(), border{q.input - openTokens, "assistant"}, border{answered, "user"})
	}
	all := n.parent.borders()
	if n.parent.parts {
		all = insert(all, border{n.start, "user"})
	}
	return all
}

// insert puts a border into its place, unless a message would become too short.
func insert(all []border, b border) []border {
	i := len(all)
	for i > 0 && all[i-1].at > b.at {
		i--
	}
	if i > 0 && b.at-all[i-1].at < leastTokens || i < len(all) && all[i].at-b.at < leastTokens {
		return all
	}
	return slices.Insert(all, i, b)
}

// borders are those of the prompt's messages but the first.
func (p *prompt) borders() []border {
	all := p.last().borders()
	for len(all) > 0 && all[len(all)-1].at > p.input-openTokens-leastTokens {
		all = all[:len(all)-1]
	}
	return all
}
