package wire

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// scores is the dialect of /score, reranking that of /rerank. The engine computes
// a query and a document as one prompt, as a cross-encoder does.
type (
	scores    struct{}
	reranking struct{}
)

func (s *Server) score(x *exchange) { x.generate(scores{}, x.fields(decodeScore)) }

func (s *Server) rerank(x *exchange) { x.generate(reranking{}, x.fields(decodeRerank)) }

// sides are the names that queries and documents may have.
var sides = [][2]string{{"queries", "documents"}, {"queries", "items"}, {"data_1", "data_2"}, {"text_1", "text_2"}}

// decodeScore reads the body of /score.
func decodeScore(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.onlyPrompt()
	for _, names := range sides {
		if queries, docs := last(root, names[0]), last(root, names[1]); queries.Exists() && docs.Exists() {
			return d.pair(names, queries, docs)
		}
	}
	for _, names := range sides { // what is missing in each of the forms
		for _, name := range names {
			if !last(root, name).Exists() {
				d.missing(name)
			}
		}
	}
	return d.done()
}

// decodeRerank reads the body of /rerank.
func decodeRerank(root gjson.Result) (*call, *apiError) {
	d := decode(root)
	d.onlyPrompt()
	names := [2]string{"query", "documents"}
	query, docs := last(root, names[0]), last(root, names[1])
	for i, v := range []gjson.Result{query, docs} {
		if !v.Exists() {
			d.missing(names[i])
		}
	}
	if n := last(root, "top_n"); n.Raw != "0" {
		d.count(&d.top, "top_n", n)
	}
	if len(d.problems) > 0 {
		return d.done()
	}
	return d.pair(names, query, docs)
}

// pair makes prompts of queries and documents: as many of both, or one query.
func (d *decoder) pair(names [2]string, queries, docs gjson.Result) (*call, *apiError) {
	heads := d.texts(names[0], list(queries))
	d.docs = list(docs)
	tails := d.texts(names[1], d.docs)
	switch {
	case len(d.problems) > 0:
		return d.done()
	case len(heads) == 0 || len(tails) == 0:
		return nil, badRequest("At least one text element must be given", "")
	case len(heads) != 1 && len(heads) != len(tails):
		return nil, badRequest("Input lengths must be either 1:1, 1:N or N:N", "")
	case len(tails) > maxSequences:
		return nil, badRequest("there may be at most "+strconv.Itoa(maxSequences)+" documents", names[1])
	}
	for i, tail := range tails {
		head := heads[min(i, len(heads)-1)]
		d.heads = append(d.heads, len(head))
		d.prompts = append(d.prompts, slices.Concat(head, tail))
	}
	return d.done()
}

// list is a value or, if it is one, what the list has.
func list(v gjson.Result) []gjson.Result {
	if v.IsArray() {
		return v.Array()
	}
	return []gjson.Result{v}
}

// texts reads texts, or objects with a list of content.
func (d *decoder) texts(loc string, values []gjson.Result) (all [][]engine.Token) {
	for i, v := range values {
		at := loc + "." + strconv.Itoa(i)
		var parts []engine.Part
		switch content := v.Get("content"); {
		case v.Type == gjson.String:
			parts = []engine.Part{{Text: v.Str}}
		case content.IsArray():
			parts = d.content(at+".content", content)
		default:
			d.wrong("string_type", at, "Input should be a valid string", v)
		}
		all = append(all, engine.Chat(nil, "", []engine.Message{{Role: "text", Parts: parts}}, false))
	}
	return all
}

// relevance is from 0 to 1.
func (g *generation) relevance(i int) float64 {
	head := g.call.heads[i]
	query, doc := embed(g.call.prompts[i][:head]), embed(g.call.prompts[i][head:])
	return float64(float32((1 + query.dot(&doc)) / 2))
}

func (scores) prefix() string { return "score-" }

func (scores) whole(b []byte, g *generation, _ []choice) []byte {
	b = g.appendList(b)
	for i := range g.call.prompts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = append(append(b, `,"object":"score","score":`...), pyFloat(g.relevance(i))...)
		b = append(b, '}')
	}
	return g.appendListEnd(b)
}

func (reranking) prefix() string { return "score-" }

// whole lists the documents, the most relevant ones first.
func (reranking) whole(b []byte, g *generation, _ []choice) []byte {
	g.x.entry.CompletionTokens = 0
	order, relevance := make([]int, len(g.call.docs)), make([]float64, len(g.call.docs))
	for i := range order {
		order[i], relevance[i] = i, g.relevance(i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(relevance[j], relevance[i]) })
	if n := g.call.top; n > 0 {
		order = order[:min(n, len(order))]
	}
	n := strconv.Itoa(g.x.entry.PromptTokens)
	b = appendJSON(append(b, `{"id":`...), g.id)
	b = appendJSON(append(b, `,"model":`...), g.model)
	b = append(b, `,"usage":{"prompt_tokens":`+n+`,"total_tokens":`+n+`},"results":[`...)
	for k, i := range order {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendResult(b, i, g.call.docs[i], relevance[i])
	}
	return append(b, `]}`...)
}

func appendResult(b []byte, i int, doc gjson.Result, score float64) []byte {
	b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
	if doc.Type == gjson.String {
		b = append(appendJSON(append(b, `,"document":{"text":`...), doc.Str), `,"multi_modal":null}`...)
	} else {
		b = append(append(append(b, `,"document":{"text":null,"multi_modal":`...), compact(doc.Get("content"))...), '}')
	}
	return append(append(append(b, `,"relevance_score":`...), pyFloat(score)...), '}')
}
