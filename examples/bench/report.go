package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// line is a contestant in a row, against plain Envoy: medians over the rounds.
type line struct {
	Name        string  `json:"name"` // streams have "-stream" behind the contestant's name
	PromptBytes int     `json:"prompt_bytes"`
	Concurrency int     `json:"concurrency"`
	Throughput  float64 `json:"throughput_ratio"`
	P50         float64 `json:"p50_ratio"`
	P99         float64 `json:"p99_ratio"`
	CPU         float64 `json:"cpu_ratio"`

	row                                     row
	throughputs, p50s, p99s, cpus           spread // of the ratios
	perSecond, latency, slowest, cpuSeconds spread // of this contestant alone
	verdict                                 string
}

// lines makes the report of a row; plain itself comes first, with ratios of 1.
func lines(w row, envoys []*running, samples [][]sample) []line {
	var list []line
	for i, r := range envoys {
		base, own := samples[0], samples[i]
		l := line{
			Name: r.name, PromptBytes: w.size, Concurrency: w.connections, row: w,
			throughputs: ratios(base, own, throughputOf), p50s: ratios(base, own, p50Of),
			p99s: ratios(base, own, p99Of), cpus: ratios(base, own, cpuOf),
			perSecond: absolute(own, throughputOf), latency: absolute(own, p50Of),
			slowest: absolute(own, p99Of), cpuSeconds: absolute(own, cpuOf),
		}
		l.Throughput, l.P50, l.P99, l.CPU = l.throughputs.p50, l.p50s.p50, l.p99s.p50, l.cpus.p50
		l.verdict = budgetOf(r.name, w).judge(l)
		if w.stream {
			l.Name += "-stream"
		}
		list = append(list, l)
	}
	return list
}

// heading is the table's first lines.
func heading(out io.Writer) {
	fmt.Fprintln(out, "ratios to plain Envoy: median (p25-p75) over the rounds; absolute figures are medians and this machine's own")
	fmt.Fprintf(out, "%-15s %9s %3s  %-18s %-18s %-18s %-18s  %8s %8s %8s %9s  %s\n", "", "prompt", "c",
		"throughput", "p50", "p99", "cpu", "req/s", "p50 ms", "p99 ms", "cpu us/rq", "budget")
}

// print writes a line of the table.
func (l line) print(out io.Writer) {
	fmt.Fprintf(out, "%-15s %9s %3d  %-18s %-18s %-18s %-18s  %8.0f %8.2f %8.2f %9.1f  %s\n", l.Name, size(l.PromptBytes), l.Concurrency,
		l.throughputs, l.p50s, l.p99s, l.cpus, l.perSecond.p50, 1e3*l.latency.p50, 1e3*l.slowest.p50, 1e6*l.cpuSeconds.p50, l.verdict)
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.p50, s.p25, s.p75) }

// saveLines writes the figures for programs. Plain Envoy, which is 1 by definition, is left out.
func saveLines(path string, all []line) error {
	kept := make([]line, 0, len(all))
	for _, l := range all {
		if l.Name != plain && l.Name != plain+"-stream" {
			kept = append(kept, l)
		}
	}
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
