package hostsim

import (
	"context"
	"strings"
	"testing"
)

// load starts a hand-made module and returns the error.
func load(t *testing.T, a *asm, opts Options) (*Host, error) {
	t.Helper()
	h, err := New(context.Background(), a.bytes(), opts)
	if err == nil {
		t.Cleanup(func() { _ = h.Close() })
	}
	return h, err
}

func TestLoadErrors(t *testing.T) {
	f := func(name string, change func(*asm), opts Options, want string) {
		t.Helper()
		a := minimal()
		change(a)
		if _, err := load(t, a, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	none := func(*asm) {}
	f("no marker", func(a *asm) { a.funcs = a.funcs[1:] }, Options{}, "unknown Proxy-Wasm ABI version")
	f("old marker", func(a *asm) { a.funcs[0].name = "proxy_abi_version_0_1_0" }, Options{}, "0.1.0")
	f("no allocator", func(a *asm) { a.funcs = a.funcs[:1] }, Options{}, "malloc")
	f("no memory", func(a *asm) { a.memory = false }, Options{}, "no memory")
	f("callback type", func(a *asm) { a.export("proxy_on_tick", "ii:") }, Options{}, "bad function signature")
	f("missing import", func(a *asm) { a.imported("env.proxy_frobnicate", ":i") }, Options{}, "missing import")
	f("import type", func(a *asm) { a.imported("env.proxy_log", "i:i") }, Options{}, "Envoy has iii:i")
	f("old WASI", func(a *asm) { a.imported("wasi_snapshot_preview1.clock_res_get", "ii:i") }, Options{EnvoyVersion: "1.38"}, "Envoy 1.38 does not provide it")
	f("log level in 0.2.0", func(a *asm) {
		a.funcs[0].name = "proxy_abi_version_0_2_0"
		a.imported("env.proxy_get_log_level", "i:i")
	}, Options{}, "missing import")
	f("trap at start", func(a *asm) { a.export("_initialize", ":", opUnreachable) }, Options{}, "canary: _initialize")
	f("trap in main", func(a *asm) {
		a.export("_initialize", ":")
		a.export("main", "ii:i", opUnreachable)
	}, Options{}, "canary: main")
	f("trap in _start", func(a *asm) { a.export("_start", ":", opUnreachable) }, Options{}, "canary: _start")
	f("vm start refused", func(a *asm) { a.export("proxy_on_vm_start", "ii:i", i32Const(0)...) }, Options{}, "proxy_on_vm_start returned false")
	f("configuration refused", func(a *asm) { a.export("proxy_on_configure", "ii:i", i32Const(0)...) }, Options{}, "proxy_on_configure returned false")
	f("workers", none, Options{Workers: 65}, "Workers 65")
	f("version", none, Options{EnvoyVersion: "1.12"}, "known are")
	f("buffer", none, Options{Buffer: -1}, "must not be negative")
	f("mutation", none, Options{Mutations: []Mutation{{Append: "x"}}}, "Mutations[0]")
	f("mutation", none, Options{Mutations: []Mutation{{Remove: "x", FilterState: "y"}}}, "Mutations[0]")
	if _, err := New(context.Background(), []byte("not wasm"), Options{}); err == nil || !strings.Contains(err.Error(), "compile") {
		t.Errorf("garbage: error %v", err)
	}
}

func TestLoadSucceeds(t *testing.T) {
	f := func(name string, change func(*asm), opts Options) {
		t.Helper()
		a := minimal()
		change(a)
		if _, err := load(t, a, opts); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("minimal", func(*asm) {}, Options{})
	f("ABI 0.2.0", func(a *asm) { a.funcs[0].name = "proxy_abi_version_0_2_0" }, Options{})
	f("other allocator", func(a *asm) { a.funcs[1].name = "proxy_on_memory_allocate" }, Options{})
	f("new WASI", func(a *asm) { a.imported("wasi_snapshot_preview1.clock_res_get", "ii:i") }, Options{EnvoyVersion: "1.39"})
	f("old WASI name", func(a *asm) { a.imported("wasi_unstable.fd_write", "iiii:i") }, Options{})
	f("start", func(a *asm) { a.export("_start", ":") }, Options{Workers: 3})
}

// calling is a module whose callback makes one call and drops the result.
func calling(export, signature, name, importSignature string, arguments ...byte) *asm {
	a := minimal()
	code := append(arguments, call(a.imported(name, importSignature))...)
	if !strings.HasSuffix(importSignature, ":") {
		code = append(code, opDrop)
	}
	if !strings.HasSuffix(signature, ":") {
		code = append(code, i32Const(1)...)
	}
	a.export(export, signature, code...)
	return a
}

func TestRestrictedCalls(t *testing.T) {
	f := func(version, name, signature string, allowed bool, arguments ...byte) {
		t.Helper()
		a := calling("_initialize", ":", name, signature, arguments...)
		_, err := load(t, a, Options{EnvoyVersion: version})
		if allowed && err != nil {
			t.Errorf("%s on %s: %v", name, version, err)
		}
		if !allowed && (err == nil || !strings.Contains(err.Error(), "restricted_callback")) {
			t.Errorf("%s on %s: error %v, want restricted_callback", name, version, err)
		}
	}
	zeros := func(n int) (out []byte) {
		for range n {
			out = append(out, i32Const(0)...)
		}
		return out
	}
	f("", "env.proxy_log", "iii:i", true, zeros(3)...)
	f("", "env.proxy_set_tick_period_milliseconds", "i:i", false, zeros(1)...)
	f("", "env.proxy_get_current_time_nanoseconds", "i:i", false, zeros(1)...)
	f("", "wasi_snapshot_preview1.poll_oneoff", "iiii:i", true, zeros(4)...)
	f("1.38", "wasi_snapshot_preview1.poll_oneoff", "iiii:i", false, zeros(4)...)
	f("1.38", "wasi_snapshot_preview1.fd_prestat_get", "ii:i", true, zeros(2)...)
	f("", "wasi_snapshot_preview1.sched_yield", ":i", false)
	f("", "wasi_snapshot_preview1.proc_exit", "i:", false, zeros(1)...)
}

// TestAllocatorCalls has an allocator that makes a call: the host call that
// needed memory fails, and so does the VM.
func TestAllocatorCalls(t *testing.T) {
	a := &asm{memory: true}
	tick := a.imported("env.proxy_set_tick_period_milliseconds", "i:i")
	get := a.imported("env.proxy_get_property", "iiii:i")
	a.export("proxy_abi_version_0_2_1", ":")
	a.export("malloc", "i:i", append(append(i32Const(1000), call(tick)...), opDrop, 0x41, 8)...)
	code := append(i32Const(16), i32Const(11)...)
	code = append(append(append(code, i32Const(0)...), i32Const(4)...), call(get)...)
	// the path "plugin_name" at 16, stored in two words and a half
	store := func(at int64, text string) (out []byte) {
		var word [8]byte
		copy(word[:], text)
		var n int64
		for i := 7; i >= 0; i-- {
			n = n<<8 | int64(word[i])
		}
		out = append(i32Const(at), i64Const(n)...)
		return append(out, opI64Store, 3, 0)
	}
	code = append(append(store(16, "plugin_n"), store(24, "ame")...), code...)
	a.export("proxy_on_request_headers", "iii:i", append(code, opDrop, 0x41, 0)...)
	h, err := load(t, a, Options{PluginName: "x"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Do(Request{}, Respond(200, ""))
	if err != nil || r.Status != 503 {
		t.Fatalf("status %d, error %v", r.Status, err)
	}
	if traps := h.Traps(); len(traps) != 1 || traps[0].Export != "malloc" || !strings.Contains(traps[0].Err.Error(), "restricted_callback") {
		t.Errorf("traps %v", traps)
	}
}

// TestWildPointers calls everything a guest can import with arguments far
// outside its memory: every call must answer, none may trap or panic.
func TestWildPointers(t *testing.T) {
	f, err := featuresOf("")
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range importTable(f, 1) {
		var arguments []byte
		params, _, _ := strings.Cut(fn.signature, ":")
		for _, p := range params {
			if p == 'I' {
				arguments = append(arguments, i64Const(-16)...)
				continue
			}
			arguments = append(arguments, i32Const(-16)...)
		}
		a := calling("proxy_on_request_headers", "iii:i", fn.fullName(), fn.signature, arguments...)
		h, err := load(t, a, Options{})
		if err != nil {
			t.Fatalf("%s: %v", fn.fullName(), err)
		}
		s, err := h.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RequestHeaders(Header{{":path", "/"}}, true); err != nil {
			t.Fatal(err)
		}
		if traps := h.Traps(); len(traps) > 0 {
			t.Errorf("%s: %v", fn.fullName(), traps[0].Err)
		}
		if !s.Paused() {
			t.Errorf("%s: the callback did not run to its end", fn.fullName())
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
