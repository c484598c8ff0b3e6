// Command policy compares routing policies in virtual time (see the package
// lab): simulated engines, a trace or a synthetic workload, and a table of
// what each policy achieves.
//
//	go run ./examples/bench/policy -trace conversation_trace.jsonl.gz -window 600-1000 -speedup 2
//
// Without -trace it plays synthetic conversations.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/warmlane/warmlane/examples/bench/lab"
)

type options struct {
	trace, policies, json string
	window                lab.Window
	fleet                 int
	seed                  uint64
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = compare(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	var window string
	f := flag.NewFlagSet("policy", flag.ExitOnError)
	f.StringVar(&o.trace, "trace", os.Getenv("WARMLANE_TRACE"), "JSON lines trace, .gz or plain; default $WARMLANE_TRACE, else synthetic")
	f.StringVar(&window, "window", "600-1000", "seconds of the trace, from-to")
	f.Float64Var(&o.window.Speedup, "speedup", 2, "how many times as fast as the trace requests arrive")
	f.StringVar(&o.policies, "policies", "rr,work,oracle:0,oracle:1,warmlane,warmlane:4,warmlane:4:report", "policies, separated by commas:\n"+lab.Policies)
	f.IntVar(&o.fleet, "replicas", 8, "engines")
	f.Uint64Var(&o.seed, "seed", 1, "order of equal arrivals, ties, workers")
	f.StringVar(&o.json, "json", "", "also write the results to this file")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if _, err := fmt.Sscanf(window, "%g-%g", &o.window.From, &o.window.To); err != nil || o.window.To <= o.window.From {
		return o, fmt.Errorf("-window %q: want from-to in seconds", window)
	}
	if o.window.Speedup <= 0 || o.fleet < 1 {
		return o, fmt.Errorf("-speedup and -replicas must be positive")
	}
	return o, nil
}

func compare(o options) error {
	reqs := lab.Conversations(o.seed)
	if o.trace != "" {
		var err error
		if reqs, err = lab.ReadTrace(o.trace, o.window, o.seed); err != nil {
			return err
		}
	}
	var results []lab.Result
	for name := range strings.SplitSeq(o.policies, ",") {
		res, err := lab.Run(name, reqs, o.fleet, lab.DefaultEngine(), o.seed)
		if err != nil {
			return err
		}
		results = append(results, res)
	}
	if err := table(results); err != nil {
		return err
	}
	if o.json == "" {
		return nil
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

func table(results []lab.Result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\trequests\thit %\tmean TTFT s\tp50\tp90\tp99\tend to end s\twork max/mean\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t\n",
			r.Policy, r.Requests, 100*r.HitRatio, r.TTFTMean, r.TTFTP50, r.TTFTP90, r.TTFTP99, r.EndToEnd, r.Skew)
	}
	return w.Flush()
}
