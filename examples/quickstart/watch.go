package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// watch looks at the files that may change and applies what has changed. Whatever is wrong with them is said once, and what was
// there stays in force.
func (h *house) watch(ctx context.Context) {
	fuss := ""
	if err := errors.Join(h.watchReplicas(), h.watchSettings(ctx)); err != nil {
		fuss = err.Error()
	}
	if fuss != "" && fuss != h.lastFuss && ctx.Err() == nil {
		h.log.Print(fuss)
	}
	h.lastFuss = fuss
}

func (h *house) watchReplicas() error {
	changed, err := h.roster.reload()
	if err != nil {
		return fmt.Errorf("-replicas-file: %w; the replicas stay as they were", err)
	}
	if !changed {
		return nil
	}
	h.log.Printf("replicas: %v", h.roster.list)
	return h.writeReplicas()
}

func (h *house) watchSettings(ctx context.Context) error {
	if h.opts.roundRobin {
		return nil
	}
	s, changed, err := reloadSettings(&h.settings)
	if err == nil && changed {
		err = h.apply(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("-config: %w; the configuration stays as it was", err)
	}
	if changed {
		h.log.Printf("%s has changed and is applied", h.settings.path)
	}
	return nil
}

// apply brings settings into force: control is asked first, Envoy decides, and then control is started anew if its part has changed.
func (h *house) apply(ctx context.Context, s settings) error {
	before, err := askVerdicts(ctx, h.envoy)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(h.file(controlFile))
	if err != nil {
		return err
	}
	controlChanged, err := h.writeControl(ctx, s)
	if err != nil {
		return err
	}
	if err = h.writeFilter(s); err == nil {
		err = awaitFilter(ctx, h.envoy, before)
	}
	if err != nil {
		return errors.Join(err, replace(h.file(controlFile), old))
	}
	if controlChanged {
		return h.control.restart()
	}
	return nil
}

// writeReplicas tells Envoy and, if the list can change, control.
func (h *house) writeReplicas() error {
	data, err := endpointsResource(h.roster.list)
	if err != nil {
		return err
	}
	if err := replace(h.file(rosterFile), []byte(h.roster.text())); err != nil {
		return err
	}
	return replace(h.file(endpointsFile), data)
}

// writeControl writes control's configuration, if control finds nothing wrong with it, and tells whether it differs from what was there.
func (h *house) writeControl(ctx context.Context, s settings) (changed bool, err error) {
	file := ""
	if h.opts.replicasFile != "" {
		file = h.file(rosterFile)
	}
	data, err := controlConfig(h.opts.controlListen, h.roster.list, h.opts.kvEvents, file, s)
	if err != nil {
		return false, err
	}
	if old, err := os.ReadFile(h.file(controlFile)); err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	draft := h.file("draft-" + controlFile)
	if err := replace(draft, data); err != nil {
		return false, err
	}
	if err := checkControl(ctx, h.opts.controlPath, draft); err != nil {
		return false, err
	}
	return true, os.Rename(draft, h.file(controlFile))
}

func (h *house) writeFilter(s settings) error {
	wasm, err := filepath.Abs(h.opts.wasmPath)
	if err != nil {
		return err
	}
	data, err := filterResource(wasm, s)
	if err != nil {
		return err
	}
	return replace(h.file(filterFile), data)
}
