package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// words are the tokens of the part of PromQL that is used here.
var words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[0-9a-z$_]+\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9.]*[smhd]?|=~|!~|!=|==|>=|<=|[-+*/<>=(){},]|\s+`)

// functions are those in use, and whether they want a range.
var functions = map[string]bool{
	"rate": true, "increase": true,
	"sum": false, "max": false, "histogram_quantile": false, "vector": false,
}

// query is an expression while it is read.
type query struct {
	known catalogue
	words []string
	at    int
	open  []string // what the parentheses are of: a function or ""
	by    []string // labels that aggregations keep
	uses  []string // metrics
	err   error
}

// read checks an expression: its words, its parentheses, that its metrics are
// known with their labels and these with the values asked for, that ranges are
// where they belong, and that what is kept of labels exists.
func read(expr string, known catalogue) *query {
	q := &query{known: known}
	rest := words.ReplaceAllStringFunc(expr, func(w string) string {
		if strings.TrimSpace(w) != "" {
			q.words = append(q.words, w)
		}
		return ""
	})
	if rest != "" {
		q.fail("cannot read %q", rest)
	}
	for q.err == nil && q.at < len(q.words) {
		q.step()
	}
	if len(q.open) > 0 {
		q.fail("a parenthesis stays open")
	}
	q.checkLabels()
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = fmt.Errorf(format, args...)
	}
}

// next takes a word; there is none at the end.
func (q *query) next() string {
	w := q.peek()
	q.at++
	return w
}

func (q *query) peek() string {
	if q.at < len(q.words) {
		return q.words[q.at]
	}
	return ""
}

var name = regexp.MustCompile(`^[a-zA-Z_:]`)

func (q *query) step() {
	switch w := q.next(); {
	case w == "(":
		q.open = append(q.open, "")
	case w == ")" && len(q.open) == 0:
		q.fail("a parenthesis too many")
	case w == ")":
		q.open = q.open[:len(q.open)-1]
	case w == "by" || w == "on":
		q.by = append(q.by, q.list()...)
	case slices.Contains([]string{"and", "or", "unless", "offset"}, w) || !name.MatchString(w):
	case q.peek() == "(" || q.peek() == "by":
		q.call(w)
	default:
		q.metric(w)
	}
}

// call reads the head of a function's call.
func (q *query) call(function string) {
	if _, ok := functions[function]; !ok {
		q.fail("function %s is not known", function)
	}
	if q.peek() == "by" {
		q.next()
		q.by = append(q.by, q.list()...)
	}
	if w := q.next(); w != "(" {
		q.fail("%s: %q in place of a parenthesis", function, w)
	}
	q.open = append(q.open, function)
}

// list reads labels in parentheses.
func (q *query) list() (labels []string) {
	if w := q.next(); w != "(" {
		q.fail("labels begin with %q", w)
	}
	for {
		label, end := q.next(), q.next()
		labels = append(labels, label)
		if end == ")" {
			return labels
		}
		if end != "," || !name.MatchString(label) {
			q.fail("a list of labels has %q %q", label, end)
			return labels
		}
	}
}

// metric reads what follows a metric's name.
func (q *query) metric(metric string) {
	s, ok := q.known[metric]
	if !ok {
		q.fail("metric %s is not known", metric)
	}
	q.uses = append(q.uses, metric)
	if q.peek() == "{" {
		q.next()
		for q.err == nil && q.matcher(metric, s) == "," {
		}
	}
	ranged := strings.HasPrefix(q.peek(), "[")
	if ranged {
		q.next()
	}
	if wants := len(q.open) > 0 && functions[q.open[len(q.open)-1]]; wants != ranged {
		q.fail("%s: a range belongs into rate or increase, and these need one", metric)
	}
	if ranged && s.kind != "counter" {
		q.fail("%s: a %s has no rate", metric, s.kind)
	}
}

// matcher reads `label="value"` and returns what stands behind it.
func (q *query) matcher(metric string, s series) (end string) {
	label, op, quoted := q.next(), q.next(), q.next()
	value, err := strconv.Unquote(quoted)
	known, ok := s.labels[label]
	if err != nil || !ok {
		q.fail("%s: label %s%s%s is not known", metric, label, op, quoted)
		return ""
	}
	if known != nil && !strings.Contains(value, "$") && !slices.ContainsFunc(known, func(v string) bool { return matches(op, value, v) }) {
		q.fail("%s: label %s is never %q but one of %q", metric, label, value, known)
	}
	if end = q.next(); end != "," && end != "}" {
		q.fail("%s: %q after a matcher", metric, end)
	}
	return end
}

// matches says whether a value of a label is what a matcher is about.
func matches(op, pattern, value string) bool {
	if op == "=" || op == "!=" {
		return pattern == value
	}
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	return err == nil && re.MatchString(value)
}

// checkLabels sees that what aggregations keep is there, and that quantiles
// have their buckets.
func (q *query) checkLabels() {
	there := map[string]bool{}
	for _, m := range q.uses {
		for l := range q.known[m].labels {
			there[l] = true
		}
	}
	for _, l := range q.by {
		if !there[l] {
			q.fail("no metric has the label %s", l)
		}
	}
	if slices.Contains(q.words, "histogram_quantile") && !slices.Contains(q.by, "le") {
		q.fail("a quantile without le")
	}
}

// result is the labels that the expression's value has.
func (q *query) result() []string {
	if len(q.by) > 0 {
		return q.by
	}
	var labels []string
	for _, m := range q.uses {
		labels = slices.AppendSeq(labels, maps.Keys(q.known[m].labels))
	}
	return labels
}

// TestReadRefuses has one mistake in each expression.
func TestReadRefuses(t *testing.T) {
	known := catalogue{}
	known.add("a_total", series{"counter", map[string][]string{"pool": nil, "outcome": {"ok", "error"}}})
	known.add("b", series{"gauge", map[string][]string{}})
	known.add("c_ms", series{"histogram", map[string][]string{"pool": nil}})
	good := `sum by (pool) (rate(a_total{outcome=~"ok|error", pool="$pool"}[5m])) / (sum(b offset 10m) > 0.5) or vector(0)`
	if q := read(good, known); q.err != nil {
		t.Errorf("%s: %v", good, q.err)
	}
	for _, bad := range []string{
		`d`, `c_ms`, `a_total{model="x"}`, `a_total{outcome="okay"}`, `a_total{outcome=~"o"}`, `a_total{outcome="ok"`,
		`rate(b[5m])`, `rate(a_total)`, `a_total[5m]`, `sum(rate(a_total[5m])`, `sum(b))`, `sum by (model) (b)`, `summ(b)`,
		`sum by pool (b)`, `histogram_quantile(0.9, sum(rate(c_ms_bucket[5m])))`, `b ? 1`, `sum by (pool`,
	} {
		if q := read(bad, known); q.err == nil {
			t.Errorf("%s is taken for right", bad)
		}
	}
}
