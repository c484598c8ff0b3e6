package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	opts, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "quickstart: %v\n(quickstart -h lists the flags)\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := log.New(os.Stderr, "quickstart: ", log.LstdFlags|log.Lmsgprefix)
	if err := run(ctx, opts, os.Stdout, logger); err != nil {
		logger.Print(err)
		os.Exit(1)
	}
}
