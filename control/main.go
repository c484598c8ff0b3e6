package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: 0 if it ended as it was asked to, 1 if something is
// wrong, 2 if it was called the wrong way.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("control", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "the configuration `FILE` (YAML)")
	check := flags.Bool("check", false, "only say whether the configuration is right")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *path == "" || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "control: want -config FILE, and nothing else but -check")
		return 2
	}
	c, err := loadConfig(*path, net.DefaultResolver)
	if err != nil {
		fmt.Fprintf(stderr, "control: %v\n", err)
		return 1
	}
	if *check {
		fmt.Fprintf(stdout, "%s: ok\n", *path)
		return 0
	}
	if err := serve(ctx, c, stdout, slog.New(slog.NewTextHandler(stderr, nil))); err != nil {
		fmt.Fprintf(stderr, "control: %v\n", err)
		return 1
	}
	return 0
}
