package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == backendWord {
		fmt.Fprintln(os.Stderr, "bench:", serveReplicas(os.Stdout))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	build, config, envoy, cache string
	names                       []string
	workers, rounds             int
	seconds                     float64
	sizes, connections          []int
	streams, gate               bool
}

func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{names: []string{"buffer", warmlane}, sizes: []int{2 << 10, 32 << 10, 220 << 10}, connections: []int{1, 8, 32}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.StringVar(&o.build, "build", "build", "`DIR` with warmlane.wasm and control; bench.json goes there")
	flags.StringVar(&o.config, "config", "examples/quickstart/envoy.yaml", "`FILE` with Warmlane's Envoy configuration")
	flags.StringVar(&o.envoy, "envoy", "", "`PATH` of the Envoy to run (default: a pinned version, fetched once)")
	flags.StringVar(&o.cache, "cache", ".cache", "`DIR` where the load generator is installed")
	flags.Func("envoys", "`NAMES` of those to compare with plain, of buffer, warmlane, logged (plain with envoy.yaml's access log and retries),\nunlogged (Warmlane without its access log) (default buffer,warmlane)", words(&o.names))
	flags.IntVar(&o.workers, "workers", 1, "worker threads of each Envoy")
	flags.IntVar(&o.rounds, "rounds", 10, "rounds of each row")
	flags.Float64Var(&o.seconds, "seconds", 1, "`SECONDS` for each contestant in each round, at least 1")
	flags.Func("sizes", "prompts in `BYTES,...` (default 2048,32768,225280)", numbers(&o.sizes))
	flags.Func("concurrency", "connections, as `N,...` (default 1,8,32)", numbers(&o.connections))
	flags.BoolVar(&o.streams, "streams", true, "measure streams too")
	flags.BoolVar(&o.gate, "gate", false, "fail if a budget is exceeded")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 || o.rounds < 1 || o.workers < 1 || !(o.seconds >= 1) {
		return options{}, errors.New("want only flags, and rounds, workers and seconds of at least 1")
	}
	return o, nil
}

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

func run(ctx context.Context, args []string, out, help io.Writer) error {
	o, err := parseFlags(args, help)
	if err != nil {
		return err
	}
	list, err := chosen(o.names)
	if err != nil {
		return err
	}
	h, err := open(ctx, o, list)
	if err != nil {
		return err
	}
	defer h.close()
	all, err := h.compare(ctx, o, out)
	if err != nil {
		return err
	}
	if err := saveLines(filepath.Join(o.build, "bench.json"), all); err != nil {
		return err
	}
	return gate(o, all)
}

// compare measures row by row and prints each as it is done.
func (h *house) compare(ctx context.Context, o options, out io.Writer) ([]line, error) {
	plan, err := rows(o, h.dir)
	if err != nil {
		return nil, err
	}
	var all []line
	heading(out)
	for _, w := range plan {
		samples, err := h.measure(ctx, o, w)
		if err != nil {
			return nil, err
		}
		for _, l := range lines(w, h.envoys, samples) {
			l.print(out)
			all = append(all, l)
		}
	}
	return all, nil
}

// gate is an error if asked for and a budget is exceeded.
func gate(o options, all []line) error {
	for _, l := range all {
		if o.gate && l.verdict == "over" {
			return fmt.Errorf("%s at %s and %d connections is over its budget", l.Name, size(l.PromptBytes), l.Concurrency)
		}
	}
	return nil
}
