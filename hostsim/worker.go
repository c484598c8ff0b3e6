package hostsim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// worker is one thread of the proxy and the VM it has now.
type worker struct {
	host     *Host
	index    int
	vm       *vm
	loadedAt time.Duration
	busy     bool // a callback is running, or what follows from it
}

// launch gives the worker a new VM and configures it.
func (w *worker) launch(config string) error {
	defer func(was bool) { w.busy = was }(w.busy)
	w.busy = true
	v, err := w.host.newVM(w.host.ctx, w)
	if err == nil {
		w.vm, w.loadedAt = v, w.host.clock.now
		err = v.addRoot(config)
	}
	if err != nil {
		return fmt.Errorf("VM of %s: %w%s", threadName(w.index), err, w.host.lastWords(w.index))
	}
	return nil
}

// lastWords is what a VM that would not start had to say for itself.
func (h *Host) lastWords(worker int) string {
	var lines []string
	for _, l := range h.logs {
		if l.Worker == worker && l.Level >= LevelWarn {
			lines = append(lines, l.Message)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\nguest said: " + strings.Join(lines[max(0, len(lines)-maxLastWords):], "\n")
}

const maxLastWords = 20

// addRoot makes a root context and puts the guest's plugin into it.
func (v *vm) addRoot(config string) error {
	c := v.newContext(nil)
	c.config = config
	if err := v.startRoot(c); err != nil {
		delete(v.contexts, c.id)
		return err
	}
	v.roots = append(v.roots, c)
	return nil
}

func (v *vm) startRoot(c *wasmContext) error {
	v.event(c, v.fn.onContextCreate, uint64(c.id), 0)
	if ok, ran := v.event(c, v.fn.onVMStart, uint64(c.id), uint64(len(v.host.opts.VMConfig))); ran && uint32(ok) == 0 {
		return errors.New("proxy_on_vm_start returned false")
	}
	c.configuring = true
	defer func() { c.configuring = false }()
	if ok, ran := v.event(c, v.fn.onConfigure, uint64(c.id), uint64(len(c.config))); ran && uint32(ok) == 0 {
		return errors.New("proxy_on_configure returned false")
	}
	return v.trap
}

// newGuest puts the plugin into a stream's chain. It is nil if the plugin is
// left out, and has no context if it cannot be had and must fail closed.
func (w *worker) newGuest(s *Stream) *guest {
	w.maybeReload()
	g := &guest{stream: s}
	switch {
	case !w.vm.failed():
		root := w.vm.roots[len(w.vm.roots)-1]
		root.streams++
		g.ctx = w.vm.newContext(root)
		g.ctx.http = g
	case w.host.opts.Failure == FailOpen:
		return nil
	}
	return g
}

// maybeReload replaces a dead VM if the policy says so and it is old enough.
func (w *worker) maybeReload() {
	h := w.host
	if !w.vm.failed() || h.opts.Failure != FailReload || h.clock.now-w.loadedAt < h.opts.ReloadBackoff {
		return
	}
	h.reloads++
	old := w.vm
	if err := w.launch(h.config); err != nil {
		h.recordTrap(Trap{Worker: w.index, Err: fmt.Errorf("reload: %w", err)})
		if w.vm != old && w.vm.trap == nil {
			w.vm.trap = err // it runs, but refused its configuration
		}
	}
	if w.vm != old {
		_ = old.mod.Close(h.ctx) // its memory; nothing calls it any more
	}
}

func threadName(index int) string {
	switch index {
	case MainThread:
		return "main thread"
	case Canary:
		return "canary"
	}
	return fmt.Sprintf("worker %d", index)
}

// setTick arms the root context's timer; each VM has its own.
func (c *wasmContext) setTick(millis uint32) {
	c.tick.stop()
	c.tick = nil
	if w := c.vm.worker; millis > 0 && w.index != Canary {
		period := time.Duration(millis) * time.Millisecond
		c.tick = w.host.clock.after(period, w, func() { c.ticked(period) })
	}
}

func (c *wasmContext) ticked(period time.Duration) {
	if c.vm.failed() {
		return
	}
	armed := c.tick
	c.vm.event(c, c.vm.fn.onTick, uint64(c.id))
	if c.tick == armed {
		c.tick = c.vm.host.clock.after(period, c.vm.worker, func() { c.ticked(period) })
	}
}

// retire ends a root context: now, or when the guest calls proxy_done.
func (c *wasmContext) retire() {
	if c.retired || c.vm.failed() {
		return
	}
	c.retired = true
	if ok, ran := c.vm.event(c, c.vm.fn.onDone, uint64(c.id)); (!ran || uint32(ok) != 0) && c.retired {
		c.remove()
	}
}

func (c *wasmContext) remove() {
	c.tick.stop()
	for _, call := range c.calls {
		call.done.stop()
	}
	c.vm.event(c, c.vm.fn.onDelete, uint64(c.id))
	delete(c.vm.contexts, c.id)
}

// streamGone retires a replaced root context with its last stream.
func (c *wasmContext) streamGone() {
	c.streams--
	if v := c.vm; c.streams == 0 && c != v.roots[len(v.roots)-1] {
		v.after = append(v.after, c.retire)
		v.finish()
	}
}

// fail marks the VM dead; fn is the export that trapped.
func (v *vm) fail(c *wasmContext, fn api.FunctionDefinition, err error) {
	v.trap = fmt.Errorf("%s: %w", exportName(fn), err)
	v.host.recordTrap(Trap{Worker: v.worker.index, Context: c.id, Export: exportName(fn), Err: err})
}

func exportName(fn api.FunctionDefinition) string {
	if names := fn.ExportNames(); len(names) > 0 {
		return names[0]
	}
	return fn.Name()
}
