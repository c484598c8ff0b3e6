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
	"syscall"
	"time"
)

// hardCap ends the demo whatever happens, so that it never hangs where nobody looks.
const hardCap = 4 * time.Minute

var errCap = errors.New("the demo took too long and was ended")

func main() {
	build := flag.String("build", "build", "`DIR` with the programs that make build makes")
	out := flag.String("out", "", "`FILE` for the figures (default: demo.json in the folder of -build)")
	seed := flag.Uint64("seed", 1, "`N` that the conversations are made from")
	flag.Parse()
	if *out == "" {
		*out = filepath.Join(*build, "demo.json")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, hardCap, errCap)
	defer cancel()
	if err := run(ctx, *build, *out, *seed, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays both rounds and reports.
func run(ctx context.Context, build, file string, seed uint64, out io.Writer) error {
	fmt.Fprintf(out, "%d replicas, %d users in conversations of %d turns, %d requests in each round\n",
		replicas, talk.Users, talk.Turns, talk.Users*talk.Conversations*talk.Turns)
	var results []result
	for _, r := range []round{{name: "round robin", flags: []string{"-round-robin"}}, {name: "Warmlane", explain: true}} {
		r.build, r.seed, r.out = build, seed, out
		got, err := r.play(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		results = append(results, got)
	}
	printStory(out, results[1].story)
	printTable(out, results)
	return writeFigures(file, results[0].report, results[1].report)
}
