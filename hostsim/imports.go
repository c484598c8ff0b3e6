package hostsim

import (
	"context"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// hostFunc is one function a guest may import. The arguments are the wasm
// ones, 32-bit values zero-extended; the result is a status or a WASI errno.
type hostFunc struct {
	module    string
	name      string
	signature string
	run       func(v *vm, a []uint64) uint32
}

func (f hostFunc) fullName() string { return f.module + "." + f.name }

// importTable is what Envoy of these features offers a module of ABI 0.2.minor.
func importTable(f features, minor int) []hostFunc {
	var table []hostFunc
	for _, group := range [][]hostFunc{generalCalls, streamCalls, headerCalls, bufferCalls,
		sharedCalls, metricCalls, calloutCalls, grpcCalls} {
		for _, fn := range group {
			if fn.name == "proxy_get_log_level" && minor < 1 {
				continue
			}
			fn.module = "env"
			table = append(table, fn)
		}
	}
	for _, module := range []string{"wasi_unstable", "wasi_snapshot_preview1"} {
		for _, fn := range wasiTable(f) {
			fn.module = module
			table = append(table, fn)
		}
	}
	return table
}

// bindImports makes the table importable in the runtime.
func bindImports(ctx context.Context, r wazero.Runtime, table []hostFunc) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range table {
		b, ok := builders[f.module]
		if !ok {
			b = r.NewHostModuleBuilder(f.module)
			builders[f.module] = b
		}
		params, results := valueTypes(f.signature)
		b.NewFunctionBuilder().WithGoFunction(f.bound(), params, results).Export(f.name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", name, err)
		}
	}
	return nil
}

// bound wraps f with what holds for every call: it may be forbidden now, and
// a script may want another worker to run first.
func (f hostFunc) bound() api.GoFunc {
	full := f.fullName()
	returns := !strings.HasSuffix(f.signature, ":")
	return func(ctx context.Context, stack []uint64) {
		v := vmOf(ctx)
		if v.allowed != nil && !v.allowed[full] {
			panic(fmt.Errorf("restricted_callback: %s may not be called now", full))
		}
		for i := range strings.IndexByte(f.signature, ':') {
			if f.signature[i] == 'i' {
				stack[i] = uint64(uint32(stack[i])) // the upper half is not defined
			}
		}
		v.host.runScripts(v, f.name)
		if result := f.run(v, stack); returns {
			stack[0] = uint64(result)
		}
	}
}

func valueTypes(signature string) (params, results []api.ValueType) {
	p, r, _ := strings.Cut(signature, ":")
	return typesOf(p), typesOf(r)
}

func typesOf(letters string) []api.ValueType {
	out := make([]api.ValueType, len(letters))
	for i := range letters {
		out[i] = api.ValueTypeI32
		if letters[i] == 'I' {
			out[i] = api.ValueTypeI64
		}
	}
	return out
}

// allowedAtStart are the calls a module may make while _initialize and main
// run. Any other traps.
func allowedAtStart(f features) map[string]bool {
	if f.wasi2026 {
		return startCalls2026
	}
	return startCalls
}

// allowedAtAllocation are the calls an allocator may make.
func allowedAtAllocation(f features) map[string]bool {
	if f.wasi2026 {
		return allocationCalls2026
	}
	return allocationCalls
}

const (
	startWASI = "fd_write args_sizes_get args_get environ_sizes_get environ_get clock_time_get random_get " +
		"fd_fdstat_get fd_fdstat_set_flags fd_prestat_get fd_prestat_dir_name"
	startWASI2026 = startWASI + " clock_res_get poll_oneoff fd_advise fd_allocate fd_datasync fd_fdstat_set_rights " +
		"fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_pwrite fd_readdir fd_renumber " +
		"fd_sync fd_tell path_create_directory path_filestat_get path_filestat_set_times path_link path_readlink " +
		"path_remove_directory path_rename path_symlink path_unlink_file sock_accept sock_recv sock_send sock_shutdown"
)

var (
	startCalls          = callSet(startWASI, "emscripten_notify_memory_growth", "proxy_log")
	startCalls2026      = callSet(startWASI2026, "emscripten_notify_memory_growth", "proxy_log")
	allocationCalls     = callSet("fd_write clock_time_get", "proxy_log")
	allocationCalls2026 = callSet("fd_write clock_time_get poll_oneoff", "proxy_log")
)

func callSet(wasi string, env ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(wasi) {
		set["wasi_unstable."+name] = true
		set["wasi_snapshot_preview1."+name] = true
	}
	for _, name := range env {
		set["env."+name] = true
	}
	return set
}
