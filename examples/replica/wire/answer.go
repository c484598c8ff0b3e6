package wire

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// choice is one answer while it is gathered.
type choice struct {
	text   []byte
	finish engine.Finish
}

// whole gathers all choices and sends them in one piece.
func (g *generation) whole() {
	x, f := g.x, g.faults
	switch {
	case f.ErrorAfter > 0:
		x.entry.Outcome = OutcomeFault
		x.refuse(engineDead)
		return
	case f.DieAfter > 0:
		x.entry.Outcome = OutcomeFault
		x.reset()
	case f.StallAfter > 0:
		x.entry.Outcome = OutcomeFault
		x.wait()
		return
	}
	choices := make([]choice, len(g.reqs))
	for g.left > 0 {
		letters, ok := g.next()
		if !ok {
			return
		}
		for i := range letters {
			g.gather(choices, &letters[i])
		}
	}
	body := g.dialect.whole(nil, g, choices)
	x.compress()
	x.json(http.StatusOK, body)
}

// gather adds a token to its choice, or cuts it off when told to abort.
func (g *generation) gather(choices []choice, l *letter) {
	c := &choices[l.choice]
	if c.finish != "" {
		return
	}
	g.x.entry.CompletionTokens++
	c.text = append(c.text, l.out.Text...)
	c.finish = l.out.Finish
	if g.faults.AbortAfter > 0 && l.out.Index >= g.faults.AbortAfter {
		c.finish, g.x.entry.Outcome = finishAbort, OutcomeFault
	}
	if c.finish != "" {
		g.left--
	}
}

// orca adds the load report, if the client asked for one in a format vLLM knows.
// Streams and errors never carry it.
func (x *exchange) orca() {
	format := x.r.Header.Get("Endpoint-Load-Metrics-Format")
	if format == "" {
		return
	}
	waiting, usage := x.s.loadNow()
	w, u := pyFloat(float64(waiting)), pyFloat(usage)
	switch strings.ToUpper(format) {
	case "TEXT":
		x.w.Header().Set("Endpoint-Load-Metrics", "TEXT named_metrics.num_requests_waiting="+w+", named_metrics.kv_cache_usage_perc="+u)
	case "JSON":
		x.w.Header().Set("Endpoint-Load-Metrics", `JSON {"named_metrics": {"num_requests_waiting": `+w+`, "kv_cache_usage_perc": `+u+`}}`)
	}
}

// pyFloat prints a number as Python does: 0.0, not 0.
func pyFloat(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return s
		}
	}
	return s + ".0"
}
