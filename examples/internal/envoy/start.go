package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/internal/proc"
)

// Options say how Envoy is to run. Path and one of Config and ConfigPath are
// required.
type Options struct {
	// Path is the binary, as from Fetch.
	Path string
	// Config is the bootstrap as YAML; it must have an admin address.
	Config []byte
	// ConfigPath names a file with the bootstrap, read by Envoy itself.
	ConfigPath string
	// Concurrency is the number of workers; 0 leaves one for each core.
	Concurrency int
	// LogPath is the file that Envoy's log is appended to. If it is "", the log goes to Log.
	LogPath string
	// Log gets Envoy's log as it comes; nil drops it.
	Log io.Writer
	// LogLevel is Envoy's --log-level; "" is warning.
	LogLevel string
	// Args are further flags, such as --component-log-level.
	Args []string
	// ReadyTimeout bounds the start; 0 is 30 seconds.
	ReadyTimeout time.Duration
}

const (
	defaultReadyTimeout = 30 * time.Second
	readyPoll           = 20 * time.Millisecond
)

// Start runs Envoy and returns when it is live and its workers have bound their
// listeners. ctx bounds the start only. If Envoy ends early or does not become
// ready, the error holds the last lines of its log.
func Start(ctx context.Context, o Options) (*Process, error) {
	if (o.Config == nil) == (o.ConfigPath == "") {
		return nil, errors.New("envoy: one of Config and ConfigPath must be given")
	}
	dir, err := os.MkdirTemp("", "envoy-")
	if err != nil {
		return nil, err
	}
	p, err := run(o, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("envoy: %w", err)
	}
	timeout := o.ReadyTimeout
	if timeout == 0 {
		timeout = defaultReadyTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := p.awaitReady(ctx); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// run starts the process; dir is its temporary directory.
func run(o Options, dir string) (*Process, error) {
	if o.ConfigPath == "" {
		o.ConfigPath = filepath.Join(dir, "envoy.yaml")
		if err := os.WriteFile(o.ConfigPath, o.Config, 0o600); err != nil {
			return nil, err
		}
	}
	p := &Process{dir: dir, logPath: o.LogPath, adminFile: filepath.Join(dir, "admin")}
	log := o.Log
	if o.LogPath != "" {
		f, err := os.OpenFile(o.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		log, p.logFile = f, f
	}
	var err error
	if p.program, err = proc.Start(log, o.Path, arguments(o, p.adminFile)...); err != nil {
		p.clean()
		return nil, err
	}
	return p, nil
}

func arguments(o Options, adminFile string) []string {
	level := o.LogLevel
	if level == "" {
		level = "warning"
	}
	args := []string{
		"--config-path", o.ConfigPath, "--admin-address-path", adminFile,
		"--log-level", level, "--disable-hot-restart",
	}
	if o.Concurrency > 0 {
		args = append(args, "--concurrency", strconv.Itoa(o.Concurrency))
	}
	return append(args, o.Args...)
}

// awaitReady polls until the server is live and its workers run.
func (p *Process) awaitReady(ctx context.Context) error {
	why := errors.New("no admin address yet")
	for {
		if why = p.ready(ctx, why); why == nil {
			return nil
		}
		select {
		case <-p.Done():
			return p.program.Fault(fmt.Sprintf("ended before it was ready (%v)", p.program.Err()))
		case <-ctx.Done():
			return p.program.Fault(fmt.Sprintf("is not ready: %v (%v)", context.Cause(ctx), why))
		case <-time.After(readyPoll):
		}
	}
}

// ready is nil if Envoy serves, else the reason why not; last is kept while
// there is nothing new to say.
func (p *Process) ready(ctx context.Context, last error) error {
	if p.AdminAPI == "" {
		b, err := os.ReadFile(p.adminFile)
		if err != nil || len(b) == 0 {
			return last
		}
		p.AdminAPI = AdminAPI(strings.TrimSpace(string(b)))
	}
	if _, err := p.Get(ctx, "/ready"); err != nil {
		return err
	}
	stats, err := p.Stats(ctx, "listener_manager.workers_started")
	if err != nil {
		return err
	}
	if stats["listener_manager.workers_started"] != 1 {
		return errors.New("workers have not started")
	}
	return nil
}
