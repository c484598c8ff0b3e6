package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/warmlane/warmlane/examples/internal/load"
)

// printTable prints the results next to each other.
func printTable(out io.Writer, results []result) {
	row := func(name string, cell func(result) string) {
		fmt.Fprintf(out, "  %-18s", name)
		for _, r := range results {
			fmt.Fprintf(out, "%22s", cell(r))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	row("", func(r result) string { return r.name })
	row("requests", func(r result) string { return fmt.Sprint(r.report.Requests) })
	row("errors", func(r result) string { return fmt.Sprint(r.report.Errors) })
	row("took", func(r result) string { return fmt.Sprintf("%.1f s", r.took.Seconds()) })
	row("hit ratio", func(r result) string { return fmt.Sprintf("%.1f %%", 100*r.report.HitRatio()) })
	row("TTFT p50", func(r result) string { return fmt.Sprintf("%.3f s", r.report.TTFTAt(0.5).Seconds()) })
	row("TTFT p90", func(r result) string { return fmt.Sprintf("%.3f s", r.report.TTFTAt(0.9).Seconds()) })
	row("share per replica", func(r result) string { return sharesText(r.shares) })
	for i, r := range results {
		for _, b := range r.branches {
			label := "branch " + b.Name
			fmt.Fprintf(out, "  %s%*d\n", label, 18+22*(i+1)-len(label), b.Count)
		}
	}
}

func sharesText(shares []share) string {
	var all int64
	for _, s := range shares {
		all += s.requests
	}
	var cells []string
	for _, s := range shares {
		cells = append(cells, fmt.Sprintf("%.0f", 100*float64(s.requests)/float64(max(all, 1))))
	}
	return strings.Join(cells, " ") + " %"
}

// figures is the shape of build/demo.json for one round. Times are in seconds.
type figures struct {
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
	HitRatio float64 `json:"hit_ratio"` // cached prompt tokens / prompt tokens, 0 to 1
	TTFTp50  float64 `json:"ttft_p50_s"`
	TTFTp90  float64 `json:"ttft_p90_s"`
}

func figuresOf(r load.Report) figures {
	return figures{r.Requests, r.Errors, r.HitRatio(), r.TTFTAt(0.5).Seconds(), r.TTFTAt(0.9).Seconds()}
}

func writeFigures(file string, roundRobin, warmlane load.Report) error {
	text, err := json.MarshalIndent(map[string]figures{"round_robin": figuresOf(roundRobin), "warmlane": figuresOf(warmlane)}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
