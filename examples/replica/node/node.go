// Package node puts a replica together: engine, clock, events, HTTP. It also does
// what no part can do alone: refuse connections for a while, and restart.
//
// A Replica outlives its lives. A life has an engine, an event publisher whose
// numbers start at 0, adapters and counters; a restart ends one and begins the
// next at the same addresses. The request journal and the faults belong to the replica.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/pace"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// Options describe a replica. The zero value serves the model "tiny" on a free
// port of the loopback without events.
type Options struct {
	Listen    string            // address; default 127.0.0.1:0
	Speed     float64           // of the engine's time against the machine's; default 1
	Clock     *pace.Clock       // the engine's time, instead of one of its own with Speed
	Engine    engine.Config     // OnBatch is set here
	Events    *kvevents.Options // nil: no events
	Wire      wire.Config       // Runner, Engine, Events, Journal, Faults and Act are set here
	Log       io.Writer         // of requests, one JSON object a line; nil: none
	Kept      int               // requests kept for /debug/requests; default 10,000
	Faults    wire.Faults       // from the start
	KeepAlive time.Duration     // how long an idle connection stays open; default 5 s, as with vLLM
	Exit      func()            // what the fault "exit" does; default: Kill
}

// Replica is a running replica. Its methods may be called from any goroutine.
type Replica struct {
	opts    Options
	addr    string
	journal *wire.Journal
	faults  *wire.FaultBox
	http    *http.Server
	conns   conns

	mu       sync.Mutex // guards what follows; held while a life ends or begins
	life     *life
	listener net.Listener // nil while connections are refused
	comeback *time.Timer
	stopped  bool
}

// Start binds the addresses and serves.
func Start(o Options) (*Replica, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = pace.NewClock(o.Speed)
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 5 * time.Second
	}
	if len(o.Wire.Models) == 0 {
		o.Wire.Models = []string{"tiny"}
	}
	r := &Replica{opts: o, journal: wire.NewJournal(o.Log, o.Kept), faults: &wire.FaultBox{}}
	if err := r.faults.Set(o.Faults); err != nil {
		return nil, fmt.Errorf("replica: faults: %w", err)
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open binds everything for the first time.
func (r *Replica) open() error {
	l, err := net.Listen("tcp", r.opts.Listen)
	if err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	r.addr = l.Addr().String()
	if r.life, err = r.newLife(r.opts.Events); err != nil {
		_ = l.Close()
		return err
	}
	r.http = &http.Server{
		Handler:           r,
		IdleTimeout:       r.opts.KeepAlive,
		ReadHeaderTimeout: 30 * time.Second,
		ConnContext:       wire.KeepConn,
		ConnState:         r.conns.note,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that reset are what we are for
	}
	r.serve(l)
	return nil
}

func (r *Replica) serve(l net.Listener) {
	r.listener = l
	go func() { _ = r.http.Serve(l) }() // ends when the listener is closed
}

// ServeHTTP hands a request to the present life.
func (r *Replica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	s := r.life.server
	r.mu.Unlock()
	s.ServeHTTP(w, req)
}

// Addr is the host and port of HTTP.
func (r *Replica) Addr() string { return r.addr }

// Events are the endpoints of the event sockets, "" without events.
func (r *Replica) Events() (events, replay string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.events == nil {
		return "", ""
	}
	return r.life.events.Endpoint(), r.life.events.ReplayEndpoint()
}

// Journal holds the requests that were served.
func (r *Replica) Journal() *wire.Journal { return r.journal }

// Stop refuses new connections, waits for requests under way until ctx ends, and
// then cuts what is left.
func (r *Replica) Stop(ctx context.Context) error {
	err := r.http.Shutdown(ctx)
	r.Kill()
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("replica: requests were cut: %w", err)
	}
	return err
}

// Kill cuts every connection and ends the replica, as if its process had died.
func (r *Replica) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.stopped = true
	if r.comeback != nil {
		r.comeback.Stop()
	}
	r.conns.sever(nil)
	_ = r.http.Close()
	r.life.end()
}

// life is one engine with everything that is lost with it.
type life struct {
	runner *pace.Runner
	events *kvevents.Publisher // nil without events
	server *wire.Server
}

// newLife begins a life; events are bound where the given options say.
func (r *Replica) newLife(events *kvevents.Options) (*life, error) {
	l := &life{}
	if events != nil {
		p, err := kvevents.Listen(*events)
		if err != nil {
			return nil, fmt.Errorf("replica: %w", err)
		}
		l.events = p
	}
	cfg := r.opts.Engine
	cfg.OnBatch = func(at time.Duration, ev []engine.Event) {
		if l.events != nil {
			l.events.Publish(l.runner.Wall(at), ev)
		}
	}
	eng := engine.New(cfg)
	l.runner = pace.New(eng, r.opts.Clock)
	w := r.opts.Wire
	w.Runner, w.Engine, w.Events = l.runner, eng.Config(), l.events
	w.Journal, w.Faults, w.Act = r.journal, r.faults, r.act
	l.server = wire.New(w)
	return l, nil
}

func (l *life) end() {
	l.server.Close()
	l.runner.Stop()
	if l.events != nil {
		l.events.Close()
	}
}
