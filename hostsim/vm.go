package hostsim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// vm is one instance of the guest on one thread, with the host's book-keeping
// for it. After a trap it is failed for good and nothing calls it again.
type vm struct {
	host   *Host
	worker *worker
	ctx    context.Context // carries the vm to host functions
	mod    api.Module
	mem    api.Memory
	fn     callbacks
	malloc api.Function

	contexts map[uint32]*wasmContext
	nextID   uint32
	self     *wasmContext   // context 0, for the allocator and _initialize
	roots    []*wasmContext // oldest first; streams are born of the last

	current   *wasmContext // whose callback runs
	effective uint32       // set by the guest; 0 means current
	allowed   map[string]bool
	stopped   bool     // a local reply was asked for: ignore the returned action
	after     []func() // deferred until the callback has returned
	trap      error
	polled    time.Duration // what the guest has spent polling

	metrics  vmMetrics
	nextCall uint32
	rand     *rand.ChaCha8
}

type vmKey struct{}

func vmOf(ctx context.Context) *vm { return ctx.Value(vmKey{}).(*vm) }

// newVM instantiates the module and runs its start functions.
func (h *Host) newVM(ctx context.Context, w *worker) (*vm, error) {
	v := &vm{host: h, worker: w, contexts: map[uint32]*wasmContext{}, nextID: 1, metrics: newVMMetrics()}
	v.ctx = context.WithValue(ctx, vmKey{}, v)
	v.self = &wasmContext{vm: v}
	h.vms++
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], h.opts.Seed)
	binary.LittleEndian.PutUint64(seed[8:], h.vms)
	v.rand = rand.NewChaCha8(seed)

	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	mod, err := h.module.runtime.InstantiateModule(v.ctx, h.module.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("instantiate module: %w", err)
	}
	v.mod, v.mem = mod, mod.Memory()
	v.bind()
	v.start()
	return v, v.trap
}

// start runs what a module runs before any callback, with few calls allowed.
func (v *vm) start() {
	v.allowed = allowedAtStart(v.host.module.features)
	defer func() { v.allowed = nil }()
	exported := v.mod.ExportedFunction
	if exported("_initialize") == nil {
		v.call(v.self, exported("_start"))
		return
	}
	v.call(v.self, exported("_initialize"))
	if main := exported("main"); main != nil {
		v.call(v.self, main, 0, 0)
		return
	}
	v.call(v.self, exported("__main_void"))
}

func (v *vm) failed() bool { return v == nil || v.trap != nil }

// call runs an export on behalf of c. A missing export does nothing; a trap
// fails the VM. It returns the export's result and whether it ran to the end.
func (v *vm) call(c *wasmContext, fn api.Function, args ...uint64) (uint64, bool) {
	if fn == nil || v.failed() {
		return 0, false
	}
	current, effective := v.current, v.effective
	v.current, v.effective = c, 0
	defer func() { v.current, v.effective = current, effective }()
	results, err := fn.Call(v.ctx, args...)
	if err != nil {
		v.fail(c, fn.Definition(), err)
		return 0, false
	}
	if len(results) == 0 {
		return 0, true
	}
	return results[0], true
}

// event is a callback with nothing to decide afterwards: call, then what was
// deferred.
func (v *vm) event(c *wasmContext, fn api.Function, args ...uint64) (uint64, bool) {
	defer v.finish()
	return v.call(c, fn, args...)
}

// finish does what the guest asked for during a callback.
func (v *vm) finish() {
	v.stopped = false
	for len(v.after) > 0 {
		f := v.after[0]
		v.after = v.after[1:]
		f()
	}
}

// context returns the context host calls act on.
func (v *vm) context() *wasmContext {
	if c, ok := v.contexts[v.effective]; ok && v.effective != 0 {
		return c
	}
	return v.current
}

// read returns guest memory; the bytes are valid until the guest runs again.
func (v *vm) read(ptr, size uint64) ([]byte, bool) { return v.mem.Read(uint32(ptr), uint32(size)) }

func (v *vm) readString(ptr, size uint64) (string, bool) {
	b, ok := v.read(ptr, size)
	return string(b), ok
}

func (v *vm) put32(ptr uint64, value uint32) bool { return v.mem.WriteUint32Le(uint32(ptr), value) }

func (v *vm) put64(ptr uint64, value uint64) bool { return v.mem.WriteUint64Le(uint32(ptr), value) }

// give allocates in the guest, copies b there and writes address and size. The
// host never allocates for nothing: empty is a null pointer.
func (v *vm) give(b []byte, ptrOut, sizeOut uint64) status {
	var ptr uint32
	if len(b) > 0 {
		var ok bool
		if ptr, ok = v.allocate(len(b)); !ok || !v.mem.Write(ptr, b) {
			return statusInvalidMemory
		}
	}
	if !v.put32(ptrOut, ptr) || !v.put32(sizeOut, uint32(len(b))) {
		return statusInvalidMemory
	}
	return statusOK
}

// allocate calls the guest's allocator, during which it may call next to
// nothing.
func (v *vm) allocate(size int) (uint32, bool) {
	v.allowed = allowedAtAllocation(v.host.module.features)
	p, ok := v.call(v.self, v.malloc, uint64(size))
	v.allowed = nil
	return uint32(p), ok && uint32(p) != 0
}
