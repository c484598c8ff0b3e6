// Command replica is a stand-in for a vLLM server: it speaks the same HTTP, the
// same metrics and the same KV events, and takes the same time in the same
// situations, but computes nothing. A router in front of it can not tell the
// difference; a laptop runs a dozen of them. README.md shows how to use it.
//
// A tour, from the inside out:
//
//	engine       cache, scheduler and step times, as a model without a clock
//	pace         the engine in real time, or faster
//	kvevents     cache events over ZMQ, with replay
//	wire         HTTP as vLLM speaks it, and faults
//	node         one replica made of these, with its lives and deaths
//	replicatest  replicas for Go tests, in the process or beside it
//	testdata     captures of vLLM 0.32 that the tests hold all this against
//
// This file only reads flags. Standard output gets one line, when requests are
// served: ready http://ADDR, followed by the event endpoints if there are any.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// run serves until SIGTERM or SIGINT.
func run(args []string, stdout, stderr io.Writer) error {
	s, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	if s.logPath != "" {
		f, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		defer func() { _ = f.Close() }()
		s.node.Log = f
	}
	s.node.Exit = func() { os.Exit(137) } // what a shell reports after SIGKILL
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	r, err := node.Start(s.node)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, readyLine(r))
	<-ctx.Done()
	drain, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	return r.Stop(drain)
}

func readyLine(r *node.Replica) string {
	line := "ready http://" + r.Addr()
	events, replay := r.Events()
	if events != "" {
		line += " kv_events=" + events
	}
	if replay != "" {
		line += " kv_replay=" + replay
	}
	return line
}

// settings are the flags' values.
type settings struct {
	node    node.Options
	events  kvevents.Options
	logPath string
	faults  string
	drain   time.Duration
}

const usage = `replica: a stand-in for a vLLM server, for testing routers without a GPU.

  replica -listen 127.0.0.1:8001 -model tiny -kv-events tcp://127.0.0.1:5557 -kv-replay tcp://127.0.0.1:5558

It prints "ready http://ADDR" when it serves. SIGTERM ends it after the streams
under way, or after -drain. Port 0 is a free port. Flags:

`

func parseFlags(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	fs := flag.NewFlagSet("replica", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	s.serverFlags(fs)
	s.engineFlags(fs)
	s.eventFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return s, s.finish()
}

func (s *settings) serverFlags(fs *flag.FlagSet) {
	n := &s.node
	fs.StringVar(&n.Listen, "listen", "127.0.0.1:0", "`address` of HTTP")
	fs.Func("model", "served model `name`; repeat for several, the first is the metrics' label (default tiny)", func(v string) error {
		if v == "" {
			return errors.New("a model needs a name")
		}
		n.Wire.Models = append(n.Wire.Models, v)
		return nil
	})
	fs.StringVar(&n.Wire.Name, "name", "", "the replica's `name`; it makes the system_fingerprint of answers")
	fs.Float64Var(&n.Speed, "speed", 1, "let engine time pass so many `times` as fast as the clock")
	fs.StringVar(&s.logPath, "log", "", "append each request as a line of JSON to `file`")
	fs.IntVar(&n.Kept, "keep", 10000, "`requests` kept for /debug/requests")
	fs.StringVar(&s.faults, "faults", "", "faults from the start, `JSON` as for POST /debug/faults")
	fs.DurationVar(&s.drain, "drain", 10*time.Second, "how `long` to wait for requests under way at SIGTERM")
	fs.DurationVar(&n.KeepAlive, "keep-alive", 5*time.Second, "how `long` an idle connection stays open")
	fs.IntVar(&n.Wire.MaxBody, "max-body", 64<<20, "largest request body in `bytes`")
	fs.StringVar(&n.Wire.Version, "version", "0.32.0", "`version` that /version tells")
	fs.BoolFunc("no-prompt-tokens-details", "leave cached_tokens out of usage, as vLLM does by default", on(&n.Wire.NoDetails))
	fs.BoolFunc("no-lora", "refuse adapters at run time", on(&n.Wire.NoLoRA))
	fs.IntVar(&n.Wire.MaxLoRAs, "max-loras", 4, "different `adapters` that may run at the same time")
	fs.DurationVar(&n.Wire.LoRALoad, "lora-load", 0, "engine `time` that loading an adapter takes")
	fs.BoolFunc("old-metric-names", "name metrics as vLLM did before its V1 engine", on(&n.Wire.OldNames))
	fs.BoolFunc("enable-request-id-headers", "answer with the request's X-Request-Id", on(&n.Wire.EchoIDs))
	fs.BoolFunc("still", "make ids of the request's body and let times be 0: equal requests get equal bytes", on(&n.Wire.Still))
	fs.BoolFunc("enable-force-include-usage", "send usage in every stream", on(&n.Wire.ForceUse))
}

func (s *settings) engineFlags(fs *flag.FlagSet) {
	e := &s.node.Engine
	fs.IntVar(&e.BlockSize, "block-size", 16, "`tokens` in a cache block")
	fs.IntVar(&e.Blocks, "num-gpu-blocks", 31250, "cache `blocks`, one of which is never used")
	fs.IntVar(&e.MaxSeqs, "max-num-seqs", 64, "`requests` that run at the same time")
	fs.IntVar(&e.BatchTokens, "max-num-batched-tokens", 2048, "`tokens` a step may compute")
	fs.IntVar(&e.MaxQueued, "max-num-queued-reqs", 0, "answer 503 when so many `requests` wait (0: never)")
	fs.IntVar(&e.MaxModelLen, "max-model-len", 131072, "`tokens` of prompt and answer")
	fs.Float64Var(&e.PrefillRate, "prefill-rate", 8000, "uncached prompt `tokens` per second")
	fs.Float64Var(&e.DecodeRate, "decode-rate", 60, "answer `tokens` per second of a request that runs alone")
	fs.Float64Var(&e.DecodeFull, "decode-rate-full", 25, "answer `tokens` per second of each of max-num-seqs requests")
	fs.IntVar(&e.AnswerTokens, "answer-tokens", 64, "longest answer in `tokens` to a request without a limit")
	fs.StringVar(&e.HashSeed, "hash-seed", "", "`seed` of the block hashes; replicas with equal seeds publish equal hashes")
	fs.BoolFunc("single-copy", "keep one copy of equal blocks; vLLM keeps one for each request that computed it", on(&e.SingleCopy))
}

func (s *settings) eventFlags(fs *flag.FlagSet) {
	v := &s.events
	fs.StringVar(&v.Endpoint, "kv-events", "", "publish KV events at `tcp://HOST:PORT`")
	fs.StringVar(&v.Replay, "kv-replay", "", "replay KV events at `tcp://HOST:PORT`")
	fs.StringVar(&v.Topic, "kv-topic", "", "`topic` of the event messages")
	fs.IntVar(&v.KeptSteps, "kv-keep", 10000, "event `batches` kept for replay")
	fs.BoolFunc("kv-array-events", "send events as positional arrays, as before vLLM 0.28", on(&v.Shape.ArrayEvents))
	fs.BoolFunc("kv-bytes-hashes", "send hashes as bytes, as with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0", on(&v.Shape.BytesHashes))
	fs.BoolFunc("kv-old-replay", "reply to replay requests without topic frames, as older versions did", on(&v.OldReplay))
}

func on(to *bool) func(string) error {
	return func(v string) error {
		switch v {
		case "true":
			*to = true
		case "false":
			*to = false
		default:
			return errors.New("want true or false")
		}
		return nil
	}
}

// finish checks what the flags say together.
func (s *settings) finish() error {
	if s.events.Endpoint != "" {
		s.node.Events = &s.events
	} else if s.events.Replay != "" {
		return errors.New("-kv-replay needs -kv-events")
	}
	for _, e := range []string{s.events.Endpoint, s.events.Replay} {
		if e != "" && !strings.HasPrefix(e, "tcp://") {
			return fmt.Errorf("event endpoint %q does not begin with tcp://", e)
		}
	}
	if s.faults != "" {
		dec := json.NewDecoder(strings.NewReader(s.faults))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&s.node.Faults); err != nil {
			return fmt.Errorf("-faults: %w", err)
		}
	}
	s.node.Engine.MaxAdapters = s.node.Wire.MaxLoRAs
	return nil
}
