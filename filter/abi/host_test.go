package abi

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// functions spells the parameters of the host's functions a second time, from the
// specification's table: u a number, l a signed 64-bit number, s bytes or text,
// m an encoded header map; and for results b bytes that the guest allocates, w a
// number, q a 64-bit number.
var functions = map[string]string{
	"proxy_log":                          "us",
	"proxy_get_log_level":                "w",
	"proxy_get_current_time_nanoseconds": "q",
	"proxy_set_tick_period_milliseconds": "u",
	"proxy_done":                         "",
	"proxy_set_effective_context":        "u",
	"proxy_continue_stream":              "u",
	"proxy_close_stream":                 "u",
	"proxy_get_status":                   "wb",
	"proxy_send_local_response":          "ussmu",
	"proxy_get_buffer_bytes":             "uuub",
	"proxy_get_buffer_status":            "uww",
	"proxy_set_buffer_bytes":             "uuus",
	"proxy_get_header_map_size":          "uw",
	"proxy_get_header_map_pairs":         "ub",
	"proxy_set_header_map_pairs":         "um",
	"proxy_get_header_map_value":         "usb",
	"proxy_add_header_map_value":         "uss",
	"proxy_replace_header_map_value":     "uss",
	"proxy_remove_header_map_value":      "us",
	"proxy_get_property":                 "sb",
	"proxy_set_property":                 "ss",
	"proxy_get_shared_data":              "sbw",
	"proxy_set_shared_data":              "ssu",
	"proxy_register_shared_queue":        "sw",
	"proxy_resolve_shared_queue":         "ssw",
	"proxy_enqueue_shared_queue":         "us",
	"proxy_dequeue_shared_queue":         "ub",
	"proxy_define_metric":                "usw",
	"proxy_increment_metric":             "ul",
	"proxy_record_metric":                "ul",
	"proxy_get_metric":                   "uq",
	"proxy_http_call":                    "smsmuw",
	"proxy_grpc_call":                    "sssmsuw",
	"proxy_grpc_stream":                  "sssmw",
	"proxy_grpc_send":                    "usu",
	"proxy_grpc_cancel":                  "u",
	"proxy_grpc_close":                   "u",
	"proxy_call_foreign_function":        "ssb",
}

// host runs the guest of testdata and writes down what it asks.
type host struct {
	t      *testing.T
	module api.Module
	lines  []string
	mute   bool
	status uint64 // what every call answers
	empty  bool   // bytes are answered with no byte at all
}

var guest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

// newHost instantiates the guest and creates plugin 1.
func newHost(t *testing.T) *host {
	t.Helper()
	binary, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { r.Close(context.Background()) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	h := &host{t: t}
	env := r.NewHostModuleBuilder("env")
	for name, spec := range functions {
		env.NewFunctionBuilder().WithGoModuleFunction(h.function(name, spec), wasmTypes(spec), []api.ValueType{api.ValueTypeI32}).Export(name)
	}
	if _, err := env.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	h.module, err = r.InstantiateWithConfig(ctx, binary, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	h.call("proxy_on_context_create", 1, 0)
	return h
}

// wasmTypes are the wasm parameters of a function.
func wasmTypes(spec string) []api.ValueType {
	var list []api.ValueType
	for _, c := range spec {
		switch c {
		case 'l':
			list = append(list, api.ValueTypeI64)
		case 's', 'm', 'b':
			list = append(list, api.ValueTypeI32, api.ValueTypeI32)
		default:
			list = append(list, api.ValueTypeI32)
		}
	}
	return list
}

// call runs an export of the guest.
func (h *host) call(name string, args ...uint64) uint64 {
	h.t.Helper()
	results, err := h.module.ExportedFunction(name).Call(h.t.Context(), args...)
	if err != nil {
		h.t.Fatalf("%s: %v", name, err)
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// function is the host's side of one import.
func (h *host) function(name, spec string) api.GoModuleFunc {
	return func(_ context.Context, _ api.Module, stack []uint64) {
		status, args, words := h.status, stack, []string{name}
		for _, c := range spec {
			if word := h.in(c, args); word != "" {
				words = append(words, word)
			}
			args = args[len(wasmTypes(string(c))):]
		}
		if name == "proxy_log" {
			words, status = []string{words[2]}, 0
		}
		if status == 0 {
			h.out(name, spec, stack)
		}
		if !h.mute {
			h.lines = append(h.lines, strings.Join(words, " "))
		}
		stack[0] = status
	}
}

// in spells a parameter.
func (h *host) in(c rune, args []uint64) string {
	switch c {
	case 'u':
		return fmt.Sprint(int32(args[0]))
	case 'l':
		return fmt.Sprint(int64(args[0]))
	case 's':
		return strings.ReplaceAll(string(h.read(args)), "\x00", "|")
	case 'm':
		pairs, err := ParsePairs(h.read(args))
		if err != nil {
			h.t.Error(err)
		}
		return "{" + spell(pairs) + "}"
	}
	return ""
}

func (h *host) read(args []uint64) []byte {
	b, ok := h.module.Memory().Read(uint32(args[0]), uint32(args[1]))
	if !ok {
		h.t.Errorf("no memory at %d for %d bytes", args[0], args[1])
	}
	return b
}

// out answers: every number is 77, every text names its question.
func (h *host) out(name, spec string, args []uint64) {
	args = append([]uint64(nil), args...) // the allocator is called in between
	memory := h.module.Memory()
	for _, c := range spec {
		switch c {
		case 'w':
			memory.WriteUint32Le(uint32(args[0]), 77)
		case 'q':
			memory.WriteUint64Le(uint32(args[0]), 77<<32)
		case 'b':
			h.outBytes(answer(name), args)
		}
		args = args[len(wasmTypes(string(c))):]
	}
}

func (h *host) outBytes(b []byte, args []uint64) {
	if h.empty {
		return
	}
	at := uint32(h.call("proxy_on_memory_allocate", uint64(len(b))))
	memory := h.module.Memory()
	if !memory.Write(at, b) {
		h.t.Errorf("allocated %d bytes at %d, outside of memory", len(b), at)
	}
	memory.WriteUint32Le(uint32(args[0]), at)
	memory.WriteUint32Le(uint32(args[1]), uint32(len(b)))
}

func answer(name string) []byte {
	if name != "proxy_get_header_map_pairs" {
		return []byte("<" + name + ">")
	}
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, 4)
	b = binary.LittleEndian.AppendUint32(b, 1)
	return append(b, "name\x00v\x00"...)
}
