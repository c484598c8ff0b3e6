package hostsim

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Host is one Envoy with one Wasm plugin: a canary, a main thread and workers,
// each with a VM of the guest. Everything in it is virtual and deterministic;
// it is for one goroutine at a time.
type Host struct {
	ctx     context.Context
	opts    Options
	module  *module
	config  string
	main    *worker
	workers []*worker
	closed  bool

	clock     *clock
	shared    *Shared
	queues    *queues
	metrics   *metricStore
	upstreams map[string]Upstream
	streams   []*Stream // live ones, in order of their beginning
	scripts   []*script
	known     map[string]bool
	logs      []LogEntry
	traps     []Trap
	reloads   int
	vms       uint64
	requests  int
}

// New loads a compiled module and starts the proxy: first the canary, which
// must accept the configuration, then the main thread's VM and the workers'.
// The error says what the module lacks or imports, or which VM refused or
// trapped and where. Compiled code is kept for the life of the process, so
// hosting the same module again is cheap.
func New(ctx context.Context, wasm []byte, opts Options) (*Host, error) {
	h, err := start(ctx, wasm, opts)
	if err != nil {
		return nil, fmt.Errorf("hostsim: %w", err)
	}
	return h, nil
}

func start(ctx context.Context, wasm []byte, opts Options) (*Host, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := featuresOf(opts.EnvoyVersion)
	if err != nil {
		return nil, err
	}
	m, err := loadModule(ctx, wasm, f)
	if err != nil {
		return nil, err
	}
	h := newHost(ctx, m, opts)
	if err := h.launch(); err != nil {
		return nil, errors.Join(err, m.runtime.Close(ctx))
	}
	return h, nil
}

func newHost(ctx context.Context, m *module, opts Options) *Host {
	h := &Host{
		ctx: ctx, opts: opts, module: m, config: opts.PluginConfig,
		clock: &clock{start: opts.Start}, shared: newShared(), queues: newQueues(),
		metrics: newMetricStore(), upstreams: map[string]Upstream{},
		known: map[string]bool{},
	}
	for _, fn := range importTable(m.features, m.minor) {
		h.known[fn.name] = true
	}
	h.main = &worker{host: h, index: MainThread}
	for i := range opts.Workers {
		h.workers = append(h.workers, &worker{host: h, index: i})
	}
	return h
}

// launch starts all VMs in the order Envoy does at its own start.
func (h *Host) launch() error {
	if err := h.tryConfig(h.config); err != nil {
		return err
	}
	for _, w := range h.threads() {
		if err := w.launch(h.config); err != nil {
			return err
		}
	}
	return nil
}

// tryConfig runs a configuration in a VM that is thrown away. What it did to
// shared data, queues and metrics stays; its calls and ticks do not.
func (h *Host) tryConfig(config string) error {
	w := &worker{host: h, index: Canary}
	err := w.launch(config)
	if w.vm == nil {
		return err
	}
	for _, c := range w.vm.contexts {
		for _, call := range c.calls {
			call.done.stop()
		}
	}
	return errors.Join(err, w.vm.mod.Close(h.ctx))
}

func (h *Host) threads() []*worker { return append([]*worker{h.main}, h.workers...) }

// Configure gives the plugin another configuration while it runs, as an update
// of Envoy's listener does. A canary tries it first; if that refuses, the old
// one stays and the error says why. In each VM the new configuration gets a
// root context of its own; streams keep the one they began under, and the old
// root context is told to end after its last stream.
func (h *Host) Configure(config string) error {
	if h.closed {
		return fmt.Errorf("configure: %w", ErrClosed)
	}
	if err := h.tryConfig(config); err != nil {
		return fmt.Errorf("hostsim: configure: %w", err)
	}
	h.config = config
	for _, w := range h.threads() {
		if w.vm.failed() {
			continue
		}
		if err := w.reconfigure(config); err != nil {
			return fmt.Errorf("hostsim: configure: VM of %s: %w", threadName(w.index), err)
		}
	}
	return nil
}

func (w *worker) reconfigure(config string) error {
	if w.busy {
		return ErrBusy
	}
	w.busy = true
	defer func() { w.busy = false }()
	old := w.vm.roots[len(w.vm.roots)-1]
	if err := w.vm.addRoot(config); err != nil {
		return err
	}
	if old.streams == 0 {
		old.retire()
	}
	return nil
}

// Advance moves virtual time by d (0 is allowed) and runs all that falls due,
// in order: ticks, callout replies and time-outs, queue wake-ups, time-outs of
// streams, reloads excepted, which wait for a stream.
func (h *Host) Advance(d time.Duration) {
	if !h.closed {
		h.clock.runUntil(h.clock.now + max(d, 0))
	}
}

// Now is the virtual time since the start.
func (h *Host) Now() time.Duration { return h.clock.now }

// Shared is the shared data of the proxy.
func (h *Host) Shared() *Shared { return h.shared }

// Memory is the size of a VM's linear memory in bytes, which never shrinks.
// worker may be MainThread. A dead VM or a wrong index gives 0.
func (h *Host) Memory(worker int) int {
	w, err := h.threadAt(worker)
	if err != nil || w.vm == nil {
		return 0
	}
	return int(w.vm.mem.Size())
}

// Close ends all streams, tells the guest's root contexts to end, and frees
// the VMs. It may be called twice, but not inside a script.
func (h *Host) Close() error {
	if h.closed {
		return nil
	}
	for _, w := range h.threads() {
		if w.busy {
			return fmt.Errorf("close: %s: %w", threadName(w.index), ErrBusy)
		}
	}
	for len(h.streams) > 0 {
		h.streams[0].reset("server_shutdown")
	}
	for _, w := range h.threads() {
		if !w.vm.failed() {
			for _, c := range w.vm.roots {
				c.retire()
			}
		}
	}
	h.closed = true
	if err := h.module.runtime.Close(h.ctx); err != nil {
		return fmt.Errorf("hostsim: close: %w", err)
	}
	return nil
}

func (h *Host) workerAt(i int) (*worker, error) {
	switch {
	case h.closed:
		return nil, ErrClosed
	case i < 0 || i >= len(h.workers):
		return nil, fmt.Errorf("hostsim: worker %d: there are %d", i, len(h.workers))
	}
	return h.workers[i], nil
}

func (h *Host) threadAt(i int) (*worker, error) {
	if i == MainThread && !h.closed {
		return h.main, nil
	}
	return h.workerAt(i)
}
