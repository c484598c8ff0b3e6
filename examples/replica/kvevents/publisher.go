package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Options say where and how events are published.
type Options struct {
	Endpoint  string // of the PUB socket, tcp://HOST:PORT; always bound; "*" is any address, port 0 a free one
	Replay    string // of the ROUTER socket; "" none
	Topic     string // first frame of each message
	Shape     Shape
	OldReplay bool // replies without topic and with the short end mark, as before vLLM's change of June 2026
	KeptSteps int  // batches kept for replay; default 10,000
	HighWater int  // batches queued for sending before new ones are dropped; default 100,000
}

// Publisher sends batches to whoever listens. It is safe for concurrent use.
type Publisher struct {
	opts   Options
	cancel context.CancelFunc
	pub    zmq4.Socket
	router zmq4.Socket // nil without replay
	done   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	seq    uint64
	drop   int     // batches not to send
	kept   []batch // ring once it is full; the oldest is at seq % len
}

type batch struct {
	seq     uint64
	payload []byte
}

// Listen binds the sockets.
func Listen(opts Options) (*Publisher, error) {
	if opts.KeptSteps <= 0 {
		opts.KeptSteps = 10000
	}
	if opts.HighWater <= 0 {
		opts.HighWater = 100000
	}
	ctx, cancel := context.WithCancel(context.Background())
	quiet := zmq4.WithLogger(log.New(io.Discard, "", 0)) // it would tell of each peer that leaves early
	p := &Publisher{opts: opts, cancel: cancel, pub: zmq4.NewPub(ctx, quiet)}
	if err := p.bind(ctx, quiet); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Publisher) bind(ctx context.Context, opt zmq4.Option) error {
	if err := p.pub.SetOption(zmq4.OptionHWM, p.opts.HighWater); err != nil {
		return fmt.Errorf("kvevents: high water mark: %w", err)
	}
	if err := p.pub.Listen(p.opts.Endpoint); err != nil {
		return fmt.Errorf("kvevents: events at %s: %w", p.opts.Endpoint, err)
	}
	if p.opts.Replay == "" {
		return nil
	}
	p.router = zmq4.NewRouter(ctx, opt)
	if err := p.router.Listen(p.opts.Replay); err != nil {
		return fmt.Errorf("kvevents: replay at %s: %w", p.opts.Replay, err)
	}
	p.done.Add(1)
	go p.serveReplay()
	return nil
}

// Close shuts the sockets and drops every connection. One idle goroutine of the
// library's PUB socket outlives it.
func (p *Publisher) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	_ = p.pub.Close()
	if p.router != nil {
		_ = p.router.Close()
	}
	p.done.Wait()
}

// Publish sends one batch with the time it stands for.
func (p *Publisher) Publish(at time.Time, events []engine.Event) {
	ts := float64(at.UnixNano()) / 1e9
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return // the library would block for ever
	}
	payload := p.opts.Shape.AppendBatch(nil, ts, events)
	b := batch{p.seq, payload}
	p.seq++
	p.keep(b)
	if p.drop > 0 {
		p.drop--
		return
	}
	// An error means the socket is closing: nobody is left to tell.
	_ = p.pub.SendMulti(zmq4.NewMsgFrom([]byte(p.opts.Topic), seqBytes(b.seq), payload))
}

func (p *Publisher) keep(b batch) {
	if len(p.kept) < p.opts.KeptSteps {
		p.kept = append(p.kept, b)
		return
	}
	p.kept[b.seq%uint64(len(p.kept))] = b
}

// Drop loses the next n batches on their way: subscribers see a gap, a replay has them.
func (p *Publisher) Drop(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = n
}

func seqBytes(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// Next is the sequence number of the next batch.
func (p *Publisher) Next() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq
}

// Endpoint is the bound address of the events, tcp://HOST:PORT.
func (p *Publisher) Endpoint() string { return bound(p.pub, p.opts.Endpoint) }

// ReplayEndpoint is the bound address of the replay, "" without one.
func (p *Publisher) ReplayEndpoint() string {
	if p.router == nil {
		return ""
	}
	return bound(p.router, p.opts.Replay)
}

// Options are those given to Listen, with defaults filled in and the endpoints
// that were really bound, so that a successor can bind the same ones.
func (p *Publisher) Options() Options {
	o := p.opts
	o.Endpoint, o.Replay = p.Endpoint(), p.ReplayEndpoint()
	return o
}

// bound is the configured endpoint with the port that was really taken.
func bound(s zmq4.Socket, configured string) string {
	tcp, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		return configured
	}
	host := configured[:strings.LastIndexByte(configured, ':')]
	return host + ":" + strconv.Itoa(tcp.Port)
}
