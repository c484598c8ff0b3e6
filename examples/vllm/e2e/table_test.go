//go:build vllm

package e2e

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// row is a line of the table of figures.
type row struct {
	requests, tier2           int
	agreed                    int // requests whose cached tokens are those that the engine's events tell of
	resident, home            int // requests with a resident prefix, and those of them that went where it is
	right                     int // of tier2
	prompt, predicted, cached int // tokens
}

func (r *row) add(s *sample) {
	r.requests++
	r.prompt += s.length
	r.predicted += s.matched
	r.cached += s.cached
	if s.agreed() {
		r.agreed++
	}
	if s.most() > 0 {
		r.resident++
		if s.home() {
			r.home++
		}
	}
	if s.tier == 2 {
		r.tier2++
		if s.right() {
			r.right++
		}
	}
}

// table shows figures by kind of request, and over all of them.
func table(samples []sample) string {
	var kinds []string
	rows := map[string]*row{"all": {}}
	for i := range samples {
		s := &samples[i]
		if rows[s.kind] == nil {
			kinds, rows[s.kind] = append(kinds, s.kind), &row{}
		}
		rows[s.kind].add(s)
		rows["all"].add(s)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "requests of\tall\ttier 2\tprefix resident\twent there\tpredicted within a block\tprompt tokens\tpredicted\tcached\t")
	for _, kind := range append(kinds, "all") {
		r := rows[kind]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t\n", kind, r.requests, r.tier2, r.resident, percent(r.home, r.resident),
			percent(r.right, r.tier2), r.prompt, r.predicted, r.cached)
	}
	w.Flush()
	return text.String()
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
