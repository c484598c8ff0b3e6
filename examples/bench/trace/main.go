package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/warmlane/warmlane/examples/bench/lab"
)

type options struct {
	trace, build, out  string
	settings, policies []string
	workers            []int
	speed              float64
	seed               uint64
	together           bool
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}

// allPolicies are in the order of the table. The oracle runs in virtual time.
const allPolicies = "round-robin,least-request,text,precise-ask,precise-learned,oracle"

func parse(args []string) (options, error) {
	var o options
	var settings, policies, workers string
	f := flag.NewFlagSet("trace", flag.ExitOnError)
	f.StringVar(&o.trace, "trace", os.Getenv("WARMLANE_TRACE"), "conversation trace, JSON lines, .gz or plain; default $WARMLANE_TRACE")
	f.StringVar(&o.build, "build", "build", "`DIR` with the programs that make build makes")
	f.StringVar(&o.out, "json", "", "`FILE` for the figures (default: trace.json in the folder of -build)")
	f.StringVar(&settings, "settings", "conv-mid,conv-high", "windows of the trace, separated by commas")
	f.StringVar(&policies, "policies", allPolicies, "ways of routing, separated by commas")
	f.StringVar(&workers, "workers", "1,4", "numbers of Envoy workers, separated by commas; the instrument is checked with 1")
	f.Float64Var(&o.speed, "speed", 2, "how much faster than the clock the engines run")
	f.Uint64Var(&o.seed, "seed", 1, "order of equal arrivals, words")
	f.BoolVar(&o.together, "together", false, "send requests of one moment at once, not one after the other")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.settings, o.policies = strings.Split(settings, ","), strings.Split(policies, ",")
	for s := range strings.SplitSeq(workers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-workers %q: want numbers from 1", workers)
		}
		o.workers = append(o.workers, n)
	}
	if o.out == "" {
		o.out = filepath.Join(o.build, "trace.json")
	}
	return o, o.check()
}

func (o *options) check() error {
	if o.trace == "" {
		return errors.New("-trace: a file is needed: conversation_trace.jsonl of github.com/kvcache-ai/Mooncake, FAST25-release/traces")
	}
	if o.speed <= 0 {
		return errors.New("-speed: must be positive")
	}
	for _, s := range o.settings {
		if _, ok := lab.Settings[s]; !ok {
			return fmt.Errorf("-settings: %q is not known", s)
		}
	}
	for _, p := range o.policies {
		if !strings.Contains(","+allPolicies+",", ","+p+",") {
			return fmt.Errorf("-policies: %q is not one of %s", p, allPolicies)
		}
	}
	return nil
}

// run measures every policy in every setting, and the instrument.
func run(ctx context.Context, o options) error {
	var rows []row
	for _, setting := range o.settings {
		w, err := lab.ReadTrace(o.trace, lab.Settings[setting], o.seed)
		if err != nil {
			return err
		}
		w.Setting = setting
		more, err := measure(ctx, o, w)
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		rows = append(rows, more...)
	}
	if err := printTable(os.Stdout, rows); err != nil {
		return err
	}
	if err := save(o.out, rows); err != nil {
		return err
	}
	return checkInstrument(rows)
}

// measure plays one workload under each policy.
func measure(ctx context.Context, o options, w *lab.Workload) (rows []row, err error) {
	for _, policy := range o.policies {
		for _, workers := range o.counts(policy) {
			var r row
			switch policy {
			case "oracle":
				r, err = virtual(w, "oracle:1", "oracle", o.seed)
			default:
				r, err = onWire(ctx, o, w, policy, workers)
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %d workers: %w", policy, workers, err)
			}
			rows = append(rows, r)
			r.progress(os.Stderr)
		}
		if policy == "round-robin" && slices.Contains(o.workers, 1) {
			r, err := virtual(w, "round-robin", virtualRoundRobin, o.seed)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// counts are the numbers of workers that a policy runs with.
func (o *options) counts(policy string) []int {
	if policy == "oracle" {
		return []int{1}
	}
	return o.workers
}

// onWire plays the workload through Envoy.
func onWire(ctx context.Context, o options, w *lab.Workload, policy string, workers int) (row, error) {
	world, err := newWorld(o.speed)
	if err != nil {
		return row{}, err
	}
	defer world.close()
	router, err := openRouter(ctx, o, policy, workers, world.addresses())
	if err != nil {
		return row{}, err
	}
	defer router.stop()
	p := newReplay(world.clock, router.url, o.together)
	if err := p.run(ctx, w.Requests); err != nil {
		return row{}, err
	}
	r, err := score(w.Setting, policy, workers, world, p.inside)
	if err != nil {
		return r, err
	}
	r.branches, err = router.admin.Branches(ctx)
	return r, err
}
