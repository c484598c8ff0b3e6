package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
)

// watchEvery is how often the files with replicas and settings are looked at.
const watchEvery = 100 * time.Millisecond

// envoyReady is how long Envoy may take to start. It compiles the filter before it serves, which a busy machine draws out.
const envoyReady = 2 * time.Minute

// Files in the temporary folder. Those that Envoy watches have folders of their own.
const (
	endpointsFile = "endpoints/replicas.yaml"
	filterFile    = "filter/warmlane.yaml"
	controlFile   = "control.yaml"
	rosterFile    = "replicas.txt" // what control watches
)

// house is everything that one run consists of. One goroutine owns it.
type house struct {
	opts     options
	log      *log.Logger
	dir      string // temporary, removed at the end
	roster   *roster
	settings watchedFile
	envoy    *envoy.Process
	control  *warden
	logs     []io.Closer
	lastFuss string // last complaint about a watched file, said once
}

// run sets the house up, prints the ready line to out, and keeps house until ctx ends or Envoy does.
func run(ctx context.Context, opts options, out io.Writer, logger *log.Logger) error {
	h := &house{opts: opts, log: logger, settings: watchedFile{path: opts.configFile, limit: maxSettings}}
	defer h.close()
	address, err := h.open(ctx)
	if err != nil {
		if ctx.Err() != nil { // told to stop while starting: what failed failed for that reason
			return nil
		}
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	line := "ready http://" + address + " admin=http://" + h.envoy.Admin()
	if !opts.roundRobin {
		line += " control=http://" + h.opts.controlListen
	}
	fmt.Fprintln(out, line)
	return h.keep(ctx)
}

// open starts all parts and returns the address that clients connect to, once requests flow.
func (h *house) open(ctx context.Context) (string, error) {
	steps := []func(context.Context) error{h.prepare, h.openControl, h.openEnvoy}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return "", err
		}
	}
	address, err := h.envoy.Listener(ctx, listenerName)
	if err != nil {
		return "", err
	}
	h.awaitFlow(ctx, address)
	return address, nil
}

// prepare makes the temporary folder and reads the lists.
func (h *house) prepare(context.Context) (err error) {
	if h.roster, err = openRoster(h.opts); err != nil {
		return err
	}
	if h.opts.logDir != "" {
		if err := os.MkdirAll(h.opts.logDir, 0o755); err != nil {
			return fmt.Errorf("-log-dir: %w", err)
		}
	}
	if h.dir, err = os.MkdirTemp("", "warmlane-quickstart-"); err != nil {
		return err
	}
	for _, file := range []string{endpointsFile, filterFile} {
		if err := os.Mkdir(filepath.Dir(h.file(file)), 0o755); err != nil {
			return err
		}
	}
	return h.writeReplicas()
}

func (h *house) openControl(ctx context.Context) error {
	if h.opts.roundRobin {
		return nil
	}
	if err := errors.Join(present("-control", h.opts.controlPath), present("-wasm", h.opts.wasmPath)); err != nil {
		return err
	}
	s, _, err := reloadSettings(&h.settings)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	if _, err := h.writeControl(ctx, s); err != nil {
		return err
	}
	out, err := h.logTo("control.log")
	if err != nil {
		return err
	}
	h.control = &warden{program: h.opts.controlPath, config: h.file(controlFile), log: out}
	// A port that was taken freely is kept, for Envoy knows it and a restarted control must be found there.
	if h.opts.controlListen, err = h.control.begin(ctx); err != nil {
		return err
	}
	if _, err := h.writeControl(ctx, s); err != nil {
		return err
	}
	return h.writeFilter(s)
}

func (h *house) openEnvoy(ctx context.Context) error {
	program, err := h.envoyProgram(ctx)
	if err != nil {
		return err
	}
	config, err := bootstrap(h.site())
	if err != nil {
		return err
	}
	out, err := h.logTo("envoy.log")
	if err != nil {
		return err
	}
	h.envoy, err = envoy.Start(ctx, envoy.Options{
		Path: program, Config: config, Concurrency: h.opts.workers, Log: out, ReadyTimeout: envoyReady,
		Args: []string{"--file-flush-interval-msec", "200"}, // or the access log lags by ten seconds
	})
	if err != nil || h.opts.roundRobin {
		return err
	}
	return awaitFilter(ctx, h.envoy, verdicts{})
}

func (h *house) envoyProgram(ctx context.Context) (string, error) {
	if h.opts.envoyPath != "" {
		return h.opts.envoyPath, present("-envoy", h.opts.envoyPath)
	}
	cache, err := envoy.CacheDir()
	if err != nil {
		return "", err
	}
	return envoy.Fetch(ctx, cache, envoy.Default)
}

func (h *house) site() site {
	s := site{
		listen:     h.opts.listen,
		control:    h.opts.controlListen,
		endpoints:  h.file(endpointsFile),
		filter:     h.file(filterFile),
		maxBody:    h.opts.maxBody,
		roundRobin: h.opts.roundRobin,
	}
	if h.opts.logDir != "" {
		s.accessLog = filepath.Join(h.opts.logDir, "access.log")
	}
	return s
}

// awaitFlow waits until requests reach a replica with control's knowledge. If that takes too long there is a reason outside of
// this house, such as replicas that are still loading their model; then it is told, and we go on.
func (h *house) awaitFlow(ctx context.Context, address string) {
	if !h.opts.roundRobin {
		if err := awaitState(ctx, h.envoy); err != nil && ctx.Err() == nil {
			h.log.Printf("the filter has not heard from control yet (%v); requests are routed without it", err)
		}
	}
	if len(h.roster.list) == 0 {
		h.log.Printf("%s names no replica yet: requests are answered with 503", h.opts.replicasFile)
		return
	}
	if err := awaitReplica(ctx, address); err != nil && ctx.Err() == nil {
		h.log.Printf("no replica has answered yet (%v)", err)
	}
}

// keep watches until ctx ends or Envoy does.
func (h *house) keep(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	if h.control == nil {
		h.control = &warden{} // never dies
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.envoy.Done():
			return h.envoy.Fault("has ended")
		case <-h.control.died():
			h.log.Printf("control has ended and is started again in %v; its state is kept and fades", h.control.mourn())
		case <-h.control.due:
			if err := h.control.start(); err != nil {
				h.log.Printf("control: %v; next try in %v", err, h.control.mourn())
			}
		case <-tick.C:
			h.watch(ctx)
		}
	}
}

// close ends everything, in the order that lets requests flow longest.
func (h *house) close() {
	if h.envoy != nil {
		h.envoy.Stop()
	}
	if h.control != nil {
		h.control.stop()
	}
	for _, l := range h.logs {
		l.Close()
	}
	if h.dir != "" {
		os.RemoveAll(h.dir)
	}
}

func (h *house) file(name string) string { return filepath.Join(h.dir, name) }

// logTo is where a part's log goes: a file in the log folder, appended to, or standard error.
func (h *house) logTo(name string) (io.Writer, error) {
	if h.opts.logDir == "" {
		return os.Stderr, nil
	}
	f, err := os.OpenFile(filepath.Join(h.opts.logDir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("-log-dir: %w", err)
	}
	h.logs = append(h.logs, f)
	return f, nil
}

func present(flag, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New(path + " is a folder, want a file")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
