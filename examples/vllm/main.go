// Command vllm runs real vLLM servers without a GPU, as replicas to try Warmlane on. They serve a tiny model with random
// weights; package engine says what that is good for and what it costs.
//
//	go run ./examples/vllm -n 2
//
// When all are healthy, standard output gets one line, "ready" and their addresses with commas between, as quickstart's
// -replicas takes them. What they log goes to standard error. An interrupt ends them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/warmlane/warmlane/examples/vllm/engine"
)

// maxServers is a guard against a slip: each takes 2 GB of memory.
const maxServers = 16

func main() {
	n := flag.Int("n", 2, "how many servers")
	blocks := flag.Int("blocks", 256, "size of the KV cache of each, in blocks of 32 tokens")
	adapters := flag.Bool("adapters", false, "load the LoRA adapters lora-a and lora-b")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	if err := run(ctx, *n, engine.Options{Blocks: *blocks, Log: os.Stderr}, *adapters, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vllm:", err)
		os.Exit(1)
	}
}

// run keeps n servers until ctx ends or one of them does.
func run(ctx context.Context, n int, o engine.Options, adapters bool, out io.Writer) error {
	if n < 1 || n > maxServers {
		return fmt.Errorf("-n %d: want 1 to %d", n, maxServers)
	}
	servers, err := start(ctx, n, o)
	defer stop(servers)
	if err != nil {
		return err
	}
	addresses := make([]string, n)
	for i, s := range servers {
		addresses[i] = s.Address
		if adapters {
			if err := load(ctx, s); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(out, "ready", strings.Join(addresses, ","))
	return watch(ctx, servers)
}

// start starts n servers side by side. Those that did start are returned also if there is an error.
func start(ctx context.Context, n int, o engine.Options) ([]*engine.Server, error) {
	servers, errs := make([]*engine.Server, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { servers[i], errs[i] = engine.Start(ctx, o) })
	}
	all.Wait()
	return slices.DeleteFunc(servers, func(s *engine.Server) bool { return s == nil }), errors.Join(errs...)
}

func load(ctx context.Context, s *engine.Server) error {
	for _, name := range engine.Adapters {
		if err := s.LoadAdapter(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// watch waits for the end of ctx, which is no error, or of any server, which is one.
func watch(ctx context.Context, servers []*engine.Server) error {
	ended := make(chan string, len(servers))
	for _, s := range servers {
		go func() {
			<-s.Done()
			ended <- s.Address
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case address := <-ended:
		return fmt.Errorf("the server at %s has ended", address)
	}
}

func stop(servers []*engine.Server) {
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(s.Stop)
	}
	all.Wait()
}
