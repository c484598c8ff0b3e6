package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/warmlane/warmlane/examples/internal/proc"
)

const (
	// BlockSize is the number of tokens in a block of the cache: the least that vLLM takes on a CPU.
	BlockSize = 32
	// MaxTokens bounds prompt and answer together.
	MaxTokens = 4096

	startLimit = 5 * time.Minute // 30 s on an idle machine
	healthPoll = 200 * time.Millisecond
	stopGrace  = 10 * time.Second // it needs 2 to 4 s, but a stream in flight may keep it for ever
)

// Adapters are the names of the LoRA adapters that a server can load.
var Adapters = []string{"lora-a", "lora-b"}

// Options say how a server is to run. The zero value is fine.
type Options struct {
	// Model is the name it is served under; "" is tiny.
	Model string
	// Blocks is the size of its KV cache, of which one is set apart. It must hold MaxTokens. 0 is 256: 8,160 tokens.
	Blocks int
	// Log gets what is installed and what the server logs; nil drops it.
	Log io.Writer
}

// Server is a running vLLM with KV events, replay of events, and LoRA adapters at run time. Its pages for developers are
// on: POST /reset_prefix_cache empties the cache.
type Server struct {
	// Address is where it serves HTTP, as 127.0.0.1:PORT.
	Address string
	// Events and Replay are where it publishes KV events, as tcp://127.0.0.1:PORT.
	Events, Replay string

	home    home
	options Options
	ports   [3]int // HTTP, events, replay
	process *proc.Process
}

// Start runs a server and returns when it is healthy. vLLM is installed first if it is not there yet. ctx bounds the start.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Model == "" {
		o.Model = "tiny"
	}
	if o.Blocks == 0 {
		o.Blocks = 256
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if least := MaxTokens/BlockSize + 1; o.Blocks < least {
		return nil, fmt.Errorf("vllm: %d blocks: want at least %d, for one prompt of %d tokens and a block set apart", o.Blocks, least, MaxTokens)
	}
	h, err := install(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	free, err := ports(3)
	if err != nil {
		return nil, fmt.Errorf("vllm: %w", err)
	}
	return start(ctx, h, o, [3]int(free))
}

// Restart starts the server again, on the same ports, after Stop or Kill.
func (s *Server) Restart(ctx context.Context) error {
	again, err := start(ctx, s.home, s.options, s.ports)
	if err != nil {
		return err
	}
	s.process = again.process
	return nil
}

func start(ctx context.Context, h home, o Options, ports [3]int) (*Server, error) {
	s := &Server{
		Address: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		Events:  fmt.Sprintf("tcp://127.0.0.1:%d", ports[1]),
		Replay:  fmt.Sprintf("tcp://127.0.0.1:%d", ports[2]),
		home:    h,
		options: o,
		ports:   ports,
	}
	arguments, err := s.arguments()
	if err != nil {
		return nil, err
	}
	if s.process, err = proc.Start(o.Log, "/usr/bin/env", slices.Concat(environment, arguments)...); err != nil {
		return nil, fmt.Errorf("vllm: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.healthy(ctx); err != nil {
		s.Kill()
		return nil, fmt.Errorf("vllm: %w", err)
	}
	return s, nil
}

// environment keeps vLLM from asking other hosts and from taking all cores, and turns on what is off by default.
var environment = []string{
	"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1",
	"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
	"VLLM_ALLOW_RUNTIME_LORA_UPDATING=True", "VLLM_SERVER_DEV_MODE=1",
}

// arguments is the command line.
func (s *Server) arguments() ([]string, error) {
	events, err := json.Marshal(map[string]any{
		"enable_kv_cache_events": true,
		"publisher":              "zmq",
		"endpoint":               fmt.Sprintf("tcp://*:%d", s.ports[1]), // with a star vLLM binds, with an address it would connect
		"replay_endpoint":        fmt.Sprintf("tcp://*:%d", s.ports[2]),
		"topic":                  "kv@" + s.Address + "@" + s.options.Model,
	})
	if err != nil {
		return nil, err
	}
	return []string{
		s.home.python(), s.home.path("setup/serve.py"),
		"--model", s.home.path("model"), "--served-model-name", s.options.Model,
		"--host", "127.0.0.1", "--port", fmt.Sprint(s.ports[0]),
		"--load-format", "dummy", "--dtype", "bfloat16", "--enforce-eager",
		"--max-model-len", fmt.Sprint(MaxTokens), "--max-num-seqs", "8", "--max-num-batched-tokens", "2048",
		"--block-size", fmt.Sprint(BlockSize), "--num-gpu-blocks-override", fmt.Sprint(s.options.Blocks), "--kv-cache-memory-bytes", "67108864",
		"--enable-prefix-caching", "--enable-prompt-tokens-details", "--kv-events-config", string(events),
		"--enable-lora", "--max-loras", "2", "--max-cpu-loras", "2", "--max-lora-rank", "8",
	}, nil
}

// healthy waits until the server answers.
func (s *Server) healthy(ctx context.Context) error {
	for {
		if status, _, err := s.call(ctx, http.MethodGet, "/health", nil); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-s.process.Done():
			return s.process.Fault("ended before it was healthy")
		case <-ctx.Done():
			return s.process.Fault("is not healthy: " + context.Cause(ctx).Error())
		case <-time.After(healthPoll):
		}
	}
}

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Ended tells whether the server has ended.
func (s *Server) Ended() bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// Stop asks the server to end and kills what is left after some seconds. Its ports are free then.
func (s *Server) Stop() { s.process.Stop(stopGrace) }

// Kill ends the server and all its processes at once, as the loss of a machine would.
func (s *Server) Kill() { s.process.Kill() }

// LoadAdapter loads one of Adapters, under its name.
func (s *Server) LoadAdapter(ctx context.Context, name string) error {
	if !slices.Contains(Adapters, name) {
		return fmt.Errorf("vllm: adapter %q: there are %v", name, Adapters)
	}
	return s.post(ctx, "/v1/load_lora_adapter", map[string]string{"lora_name": name, "lora_path": s.home.path(name)})
}

// ResetCache empties the prefix cache. The server tells of it only when it has its next request.
func (s *Server) ResetCache(ctx context.Context) error {
	return s.post(ctx, "/reset_prefix_cache", nil)
}

func (s *Server) post(ctx context.Context, page string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	status, answer, err := s.call(ctx, http.MethodPost, page, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, bytes.TrimSpace(answer))
	}
	if err != nil {
		return fmt.Errorf("vllm: %s: %w", page, err)
	}
	return nil
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

func (s *Server) call(ctx context.Context, method, page string, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.Address+page, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("content-type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, errors.Join(err, response.Body.Close())
}
