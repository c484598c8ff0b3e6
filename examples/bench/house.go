package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/proc"
)

// readyWithin bounds the start of a part.
const readyWithin = 60 * time.Second

// house is everything that runs while rows are measured.
type house struct {
	dir       string // temporary
	generator string
	backend   *proc.Process
	control   *proc.Process
	envoys    []*running
}

// running is a contestant at work.
type running struct {
	contestant
	process *envoy.Process
	url     string
}

// open starts the backend, control and an Envoy for each contestant.
func open(ctx context.Context, o options, list []contestant) (h *house, err error) {
	h = &house{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.dir, err = os.MkdirTemp("", "warmlane-bench-"); err != nil {
		return h, err
	}
	if h.generator, err = installGenerator(ctx, o.cache); err != nil {
		return h, err
	}
	var s site
	if s.wasm, err = filepath.Abs(filepath.Join(o.build, "warmlane.wasm")); err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if s.replicas, err = h.openBackend(ctx); err != nil {
		return h, err
	}
	if s.control, err = h.openControl(ctx, filepath.Join(o.build, "control"), s.replicas); err != nil {
		return h, err
	}
	return h, h.openEnvoys(ctx, o, list, s)
}

func (h *house) openBackend(ctx context.Context) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if h.backend, err = proc.Start(nil, self, backendWord); err != nil {
		return nil, err
	}
	addresses, err := h.backend.Ready(ctx)
	return strings.Fields(addresses), err
}

func (h *house) openControl(ctx context.Context, program string, replicas []string) (string, error) {
	config, err := yaml.Marshal(object{
		"listen": "127.0.0.1:0",
		"pools":  []any{object{"name": "default", "replicas": replicas}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(h.dir, "control.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return "", err
	}
	if h.control, err = proc.Start(nil, program, "-config", path); err != nil {
		return "", err
	}
	url, err := h.control.Ready(ctx)
	return strings.TrimPrefix(url, "http://"), err
}

func (h *house) openEnvoys(ctx context.Context, o options, list []contestant, s site) error {
	document, err := os.ReadFile(o.config)
	if err != nil {
		return err
	}
	path := o.envoy
	if path == "" {
		cache, err := envoy.CacheDir()
		if err != nil {
			return err
		}
		if path, err = envoy.Fetch(ctx, cache, envoy.Default); err != nil {
			return err
		}
	}
	for _, c := range list {
		config, err := fitted(document, c, s)
		if err != nil {
			return err
		}
		p, err := envoy.Start(ctx, envoy.Options{Path: path, Config: config, Concurrency: o.workers, Log: os.Stderr, LogLevel: "error"})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		h.envoys = append(h.envoys, &running{contestant: c, process: p})
	}
	for _, r := range h.envoys {
		if err := r.awaitFlow(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// awaitFlow asks for the address and, where control is known, waits until the filter has heard from it.
func (r *running) awaitFlow(ctx context.Context) error {
	address, err := r.process.Listener(ctx, "warmlane")
	if err != nil {
		return err
	}
	r.url = "http://" + address
	const clusters, generation = "cluster.warmlane_control.membership_total", "wasmcustom.warmlane_state_generation"
	for {
		stats, err := r.process.Stats(ctx, "")
		if err != nil {
			return err
		}
		if stats[clusters] == 0 || stats[generation] > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the filter has heard nothing from control")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// close ends all of it.
func (h *house) close() {
	for _, r := range h.envoys {
		r.process.Stop()
	}
	if h.control != nil {
		h.control.Stop(time.Second)
	}
	if h.backend != nil {
		h.backend.Kill()
	}
	if h.dir != "" {
		os.RemoveAll(h.dir)
	}
}
