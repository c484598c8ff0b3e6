package abi

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// wasi are the WASI functions that every supported Envoy provides; 1.36 to 1.38
// refuse to load a module that imports others. Packages os and fmt, timers and
// the like bring others in, which is why nothing here uses them.
var wasi = []string{
	"args_get", "args_sizes_get", "clock_time_get", "environ_get", "environ_sizes_get",
	"fd_write", "poll_oneoff", "proc_exit", "random_get", "sched_yield",
}

// TestImports compares the imports of a guest that uses the whole package with
// the specification's functions and the WASI that Envoy has.
func TestImports(t *testing.T) {
	binary, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(t.Context())
	m, err := r.CompileModule(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		used[name] = true
		spec, known := functions[name]
		switch {
		case module == "env" && known:
			if !slices.Equal(f.ParamTypes(), wasmTypes(spec)) {
				t.Errorf("%s takes %v, want %v", name, f.ParamTypes(), wasmTypes(spec))
			}
		case module == "wasi_snapshot_preview1" && slices.Contains(wasi, name):
		default:
			t.Errorf("imports %s.%s, which not every Envoy has", module, name)
		}
	}
	for name := range functions {
		// The time comes from WASI, which costs the same.
		if !used[name] && name != "proxy_get_current_time_nanoseconds" {
			t.Errorf("%s is not bound", name)
		}
	}
}

// TestExports: the marker, the allocator and every callback of an HTTP filter.
func TestExports(t *testing.T) {
	h := newHost(t)
	want := strings.Fields(`_initialize proxy_abi_version_0_2_1 proxy_on_memory_allocate
		proxy_on_context_create proxy_on_vm_start proxy_on_configure proxy_on_tick proxy_on_done proxy_on_log proxy_on_delete
		proxy_on_request_headers proxy_on_request_body proxy_on_request_trailers
		proxy_on_response_headers proxy_on_response_body proxy_on_response_trailers
		proxy_on_http_call_response proxy_on_grpc_receive_initial_metadata proxy_on_grpc_receive
		proxy_on_grpc_receive_trailing_metadata proxy_on_grpc_close proxy_on_queue_ready proxy_on_foreign_function`)
	exports := h.module.ExportedFunctionDefinitions()
	for _, name := range want {
		if exports[name] == nil {
			t.Errorf("%s is not exported", name)
		}
	}
	if len(exports) != len(want) {
		t.Errorf("%d exports, want %d: each costs time per stream", len(exports), len(want))
	}
}

// TestWholeABI compares what the host sees and what the guest gets with
// testdata/transcript.txt, call by call.
func TestWholeABI(t *testing.T) {
	h := newHost(t)
	h.call("proxy_on_tick", 1)
	now := regexp.MustCompile(`(Now|Monotonic): \d{5,}`) // wazero's clock is not ours to set
	got := now.ReplaceAllString(strings.Join(h.lines, "\n")+"\n", "$1: a time")
	want, err := os.ReadFile(filepath.Join("testdata", "transcript.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRefusals: each question and command that the host refuses gives its error.
func TestRefusals(t *testing.T) {
	h := newHost(t)
	h.status = 2
	h.call("proxy_on_tick", 1)
	asked, refused := 0, 0
	for _, line := range h.lines {
		switch {
		case strings.HasPrefix(line, "proxy_"):
			asked++
		case strings.HasSuffix(line, " error error status returned by host: bad argument"):
			refused++
		}
	}
	// LastStatus and Shared log two results each.
	if asked == 0 || refused != asked+2 {
		t.Errorf("%d calls, %d results with an error, want %d", asked, refused, asked+2)
	}
}

// TestEmptyAnswers: the host leaves address and size alone when there is nothing.
func TestEmptyAnswers(t *testing.T) {
	h := newHost(t)
	h.call("proxy_on_tick", 1) // leaves old answers in the buffers
	h.lines, h.empty = nil, true
	h.call("proxy_on_tick", 1)
	for _, line := range h.lines {
		if strings.Contains(line, "<") || strings.Contains(line, "error") && !strings.Contains(line, "too large") {
			t.Errorf("got %q for an empty answer", line)
		}
	}
}

func TestAllocator(t *testing.T) {
	h := newHost(t)
	for _, size := range []uint64{0, 1, 255, 257, 1 << 20, 5 << 20, 3} {
		at := h.call("proxy_on_memory_allocate", size)
		if at == 0 || at+size > uint64(h.module.Memory().Size()) {
			t.Errorf("%d bytes at %d of %d", size, at, h.module.Memory().Size())
		}
	}
	if at := h.call("proxy_on_memory_allocate", 1<<32-1); at != 0 {
		t.Errorf("4 GiB were granted, at %d", at)
	}
}

func TestNoGarbagePerCall(t *testing.T) {
	h := newHost(t)
	h.mute = true
	h.call("proxy_on_context_create", 2, 1)
	h.mute = false
	h.call("proxy_on_request_headers", 2, 1, 0)
	// The runtime's own bookkeeping may allocate now and then, but not per call.
	if last := h.lines[len(h.lines)-1]; len(last) != len("  garbage: 0") {
		t.Errorf("1000 rounds of six calls made%s", last)
	}
}

// TestTrapsAreRecovered: panics, also those that begin as a fault of the machine,
// let the stream pass and the VM live.
func TestTrapsAreRecovered(t *testing.T) {
	h := newHost(t)
	h.mute = true
	f := func(size uint64, wantAction uint64) {
		t.Helper()
		h.call("proxy_on_context_create", 10+size, 1)
		if got := h.call("proxy_on_request_body", 10+size, size, 0); got != wantAction {
			t.Errorf("case %d: action %d, want %d", size, got, wantAction)
		}
	}
	f(0, 1)
	f(1, 0)
	f(2, 0)
	f(3, 1) // no failure: a deep stack that moves under a host call
	f(4, 0)
	h.call("proxy_on_request_body", 99, 0, 0)
	h.mute = false
	h.call("proxy_on_delete", 10)
	if got := strings.Join(h.lines, ","); got != "  Panics: 3,  UnknownContexts: 1" {
		t.Errorf("got %s, want three panics and one unknown context", got)
	}
}
