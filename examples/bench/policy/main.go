// Command policy compares routing policies in virtual time (see the package
// lab): simulated engines, conversations made of a trace or made up, and a
// table of what each policy achieves.
//
//	go run ./examples/bench/policy -trace conversation_trace.jsonl.gz -settings conv-mid,conv-high
//
// Without -trace it plays a minute of made-up conversations.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/bench/lab"
)

type options struct {
	trace, json        string
	settings, policies []string
	workers, proxies   []int
	seeds              []int
	lab                lab.Options
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

func run(args []string, out, help io.Writer) error {
	o, err := parse(args, help)
	if err != nil {
		return err
	}
	results, err := o.compare(out)
	if err != nil || o.json == "" {
		return err
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

func parse(args []string, help io.Writer) (options, error) {
	o := options{
		settings: []string{"conv-mid", "conv-high"}, policies: strings.Split(defaultPolicies, ","),
		workers: []int{4}, proxies: []int{1}, seeds: []int{1},
	}
	f := flag.NewFlagSet("policy", flag.ContinueOnError)
	f.SetOutput(help)
	f.StringVar(&o.trace, "trace", os.Getenv("WARMLANE_TRACE"), "`FILE` of JSON lines, .gz or plain (default $WARMLANE_TRACE, else made-up conversations)")
	f.Func("settings", "`NAMES` of windows of the trace: conv-mid, conv-high, synth, or FROM-TO@SPEEDUP (default conv-mid,conv-high)", words(&o.settings))
	f.Func("policies", "`NAMES` of policies (default "+defaultPolicies+"):\n"+lab.Policies, words(&o.policies))
	f.Func("workers", "`NUMBERS` of workers a proxy has, each in turn (default 4)", numbers(&o.workers))
	f.Func("proxies", "`NUMBERS` of proxies (default 1)", numbers(&o.proxies))
	f.Func("seeds", "`NUMBERS` that choose words, order of equal arrivals, dice (default 1)", numbers(&o.seeds))
	f.IntVar(&o.lab.Fleet, "replicas", 8, "engines")
	f.DurationVar(&o.lab.Delay, "delay", 40*time.Millisecond, "until KV events and loads are with the proxies")
	f.StringVar(&o.lab.Routing, "routing", "", "`JSON` object \"routing\" of the plugin's configuration")
	f.StringVar(&o.json, "json", "", "also write the results to `FILE`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.lab.Fleet < 1 {
		return o, errors.New("want only flags, and replicas of at least 1")
	}
	return o, nil
}

const defaultPolicies = "round-robin,least-request,work,text,precise-ask,precise-learned,oracle:1"

func words(dst *[]string) func(string) error {
	return func(text string) error {
		*dst = strings.Split(text, ",")
		return nil
	}
}

func numbers(dst *[]int) func(string) error {
	return func(text string) error {
		*dst = nil
		for word := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("%q: want a number above 0", word)
			}
			*dst = append(*dst, n)
		}
		return nil
	}
}

// workload reads the setting's window of the trace.
func (o *options) workload(setting string, seed uint64) (*lab.Workload, error) {
	if o.trace == "" {
		return lab.Conversations(seed), nil
	}
	window, known := lab.Settings[setting]
	window.Name = setting
	if !known {
		n, err := fmt.Sscanf(setting, "%g-%g@%g", &window.From, &window.To, &window.Speedup)
		if n < 3 || err != nil {
			return nil, fmt.Errorf("setting %q: want a name, or FROM-TO@SPEEDUP in seconds", setting)
		}
	}
	return lab.ReadTrace(o.trace, window, seed)
}

// compare plays everything and prints each result as it is there.
func (o *options) compare(out io.Writer) (results []lab.Result, err error) {
	settings := o.settings
	if o.trace == "" {
		settings = []string{""}
	}
	fmt.Fprintf(out, "%-10s %-16s %7s %7s %5s %9s %6s %6s %6s %6s %10s %6s %9s\n", "setting", "policy", "workers", "proxies", "seed",
		"mean TTFT", "p50", "p90", "p99", "hit %", "end to end", "skew", "tokenize")
	for _, setting := range settings {
		for _, seed := range o.seeds {
			w, err := o.workload(setting, uint64(seed))
			if err != nil {
				return nil, err
			}
			if results, err = o.play(out, w, uint64(seed), results); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func (o *options) play(out io.Writer, w *lab.Workload, seed uint64, results []lab.Result) ([]lab.Result, error) {
	for _, name := range o.policies {
		for _, proxies := range o.proxies {
			for _, workers := range o.workers {
				l := o.lab
				l.Workers, l.Proxies, l.Seed = workers, proxies, seed
				r, err := lab.Run(name, w, l)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", w.Setting, name, err)
				}
				fmt.Fprintf(out, "%-10s %-16s %7d %7d %5d %9.3f %6.2f %6.2f %6.2f %6.1f %10.2f %6.2f %9.3f\n", r.Setting, r.Policy, r.Workers, r.Proxies, seed,
					r.TTFTMean, r.TTFTP50, r.TTFTP90, r.TTFTP99, 100*r.HitRatio, r.EndToEnd, r.Skew, r.TokenizeCalls)
				results = append(results, r)
			}
		}
	}
	return results, nil
}
