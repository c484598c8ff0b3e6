package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/warmlane/warmlane/examples/bench/lab"
	"github.com/warmlane/warmlane/examples/internal/envoy"
)

// row is what one play gave. Times are in seconds of the engines.
type row struct {
	Setting  string  `json:"setting"`
	Policy   string  `json:"policy"`
	Workers  int     `json:"workers"`
	Proxies  int     `json:"proxies"`
	HitRatio float64 `json:"hit_ratio"` // cached prompt tokens / prompt tokens
	Mean     float64 `json:"ttft_mean_s"`
	P50      float64 `json:"ttft_p50_s"`
	P90      float64 `json:"ttft_p90_s"`
	P99      float64 `json:"ttft_p99_s"`
	Calls    float64 `json:"tokenize_calls_per_request"`

	router   time.Duration  // real time inside the router, median; 0 in virtual time
	branches []envoy.Branch // how Warmlane decided
}

// virtualRoundRobin is the row the wire's round robin is held against.
const virtualRoundRobin = "round-robin (virtual)"

// score reads the engines' journals.
func score(setting, policy string, workers int, w *world, inside []time.Duration) (row, error) {
	entries := w.entries("/v1/chat/completions")
	r := row{Setting: setting, Policy: policy, Workers: workers, Proxies: 1}
	var ttft []float64
	prompt, cached := 0, 0
	for _, e := range entries {
		if e.TTFT <= 0 {
			return r, fmt.Errorf("a request ended as %q without a token", e.Outcome)
		}
		ttft = append(ttft, e.TTFT)
		prompt, cached = prompt+e.PromptTokens, cached+e.CachedTokens
	}
	if len(ttft) == 0 || len(ttft) != len(inside) {
		return r, fmt.Errorf("%d requests were sent, the engines served %d", len(inside), len(ttft))
	}
	slices.Sort(ttft)
	for _, t := range ttft {
		r.Mean += t / float64(len(ttft))
	}
	r.P50, r.P90, r.P99 = at(ttft, 0.5), at(ttft, 0.9), at(ttft, 0.99)
	r.HitRatio = float64(cached) / float64(prompt)
	r.Calls = float64(len(w.entries("/tokenize"))) / float64(len(ttft))
	slices.Sort(inside)
	r.router = inside[len(inside)/2]
	return r, nil
}

func at(sorted []float64, share float64) float64 {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// virtual plays the workload in virtual time under a policy of the lab.
func virtual(w *lab.Workload, policy, name string, seed uint64) (row, error) {
	res, err := lab.Run(policy, w, lab.Options{Fleet: fleet, Workers: 1, Seed: seed})
	if err != nil {
		return row{}, err
	}
	return row{
		Setting: w.Setting, Policy: name, Workers: 1, Proxies: 1, HitRatio: res.HitRatio,
		Mean: res.TTFTMean, P50: res.TTFTP50, P90: res.TTFTP90, P99: res.TTFTP99,
	}, nil
}

func (r row) progress(out io.Writer) {
	fmt.Fprintf(out, "%s, %s, %d workers: mean TTFT %.2f s, hits %.1f %%", r.Setting, r.Policy, r.Workers, r.Mean, 100*r.HitRatio)
	for _, b := range r.branches {
		fmt.Fprintf(out, ", %s %d", b.Name, b.Count)
	}
	fmt.Fprintln(out)
}

// printTable prints the rows, each mean also as a multiple of the oracle's.
func printTable(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "setting\tpolicy\tworkers\thit %\tmean TTFT s\tp50\tp90\tp99\tx oracle\ttokenize/request\trouter ms p50\t")
	for _, r := range rows {
		ratio := "-"
		if o := find(rows, r.Setting, "oracle"); o != nil {
			ratio = fmt.Sprintf("%.2f", r.Mean/o.Mean)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%.3f\t%.1f\t\n", r.Setting, r.Policy, r.Workers,
			100*r.HitRatio, r.Mean, r.P50, r.P90, r.P99, ratio, r.Calls, float64(r.router)/1e6)
	}
	return w.Flush()
}

func find(rows []row, setting, policy string) *row {
	for i := range rows {
		if rows[i].Setting == setting && rows[i].Policy == policy {
			return &rows[i]
		}
	}
	return nil
}

// save writes the rows of the policies; the one that checks the instrument is
// none of them.
func save(file string, rows []row) error {
	kept := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Policy == virtualRoundRobin })
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// tolerance is how far round robin on the wire may be from that in virtual
// time, as a share of its mean.
const tolerance = 0.05

// checkInstrument compares round robin with itself.
func checkInstrument(rows []row) error {
	for _, r := range rows {
		if r.Policy != "round-robin" || r.Workers != 1 {
			continue
		}
		v := find(rows, r.Setting, virtualRoundRobin)
		if off := math.Abs(r.Mean-v.Mean) / v.Mean; off > tolerance {
			return fmt.Errorf("%s: round robin has a mean of %.2f s on the wire and %.2f s in virtual time; the figures are not to be trusted",
				r.Setting, r.Mean, v.Mean)
		}
	}
	return nil
}
