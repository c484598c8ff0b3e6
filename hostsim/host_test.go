package hostsim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/hostsim"
)

// do runs a script of the conformance guest and wants a status.
func do(t *testing.T, h *hostsim.Host, r hostsim.Request, script string, up hostsim.Upstream, want int) *hostsim.Result {
	t.Helper()
	r.Header = append(r.Header, [2]string{"x-script", script}, [2]string{"x-id", "t"})
	got, err := h.Do(r, up)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != want {
		t.Errorf("status %d (%s), want %d", got.Status, got.Details, want)
	}
	return got
}

var ok = hostsim.Respond(200, "fine")

func TestReloadBackoff(t *testing.T) {
	h := host(t, "conform", hostsim.Options{Failure: hostsim.FailReload, Workers: 2})
	h.Shared().Set("kept", []byte("x"))
	do(t, h, hostsim.Request{}, "rh trap", ok, 503)
	h.Advance(999 * time.Millisecond)
	do(t, h, hostsim.Request{}, "none", ok, 503)
	do(t, h, hostsim.Request{Worker: 1}, "none", ok, 200)
	h.Advance(time.Millisecond)
	do(t, h, hostsim.Request{}, "rh read kept", ok, 200)
	if h.Reloads() != 1 || len(h.Traps()) != 1 {
		t.Errorf("%d reloads, traps %v", h.Reloads(), h.Traps())
	}
	do(t, h, hostsim.Request{}, "rh trap", ok, 503)
	do(t, h, hostsim.Request{}, "none", ok, 503) // the new VM is young again
}

// TestTrapDropsCallbacks leaves a stream paused on a callout in a VM that
// dies: nothing resumes it but a time-out, whose reply then meets the dead VM.
func TestTrapDropsCallbacks(t *testing.T) {
	h := host(t, "conform", hostsim.Options{})
	h.SetUpstream("side", hostsim.Respond(200, ""))
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	script := "rh call side 0 /; rh answer 1; call cont req"
	if err := s.RequestHeaders(hostsim.Header{{":path", "/"}, {"x-script", script}, {"x-id", "paused"}}, true); err != nil {
		t.Fatal(err)
	}
	do(t, h, hostsim.Request{}, "rh trap", ok, 503)
	h.Advance(time.Minute)
	if s.Done() || !s.Paused() {
		t.Error("the stream of a dead VM went on")
	}
	h.Advance(5 * time.Minute)
	if r := s.Result(); !s.Done() || r.Status != 503 || r.Details != "wasm_fail_stream" {
		t.Errorf("done %v, status %d, details %s", s.Done(), r.Status, r.Details)
	}
}

func TestMainThread(t *testing.T) {
	h := host(t, "example", hostsim.Options{Workers: 2})
	if n := h.Memory(hostsim.MainThread); n == 0 || n%(64<<10) != 0 || h.Memory(0) == 0 || h.Memory(2) != 0 {
		t.Errorf("memory %d, %d, %d", n, h.Memory(0), h.Memory(2))
	}
	h.Advance(time.Second)
	if got := h.Metrics().Counters["ticks"]; got != 3 {
		t.Errorf("%d ticks in three VMs", got)
	}
	if _, err := h.Stream(hostsim.MainThread); err == nil {
		t.Error("the main thread took a stream")
	}
}

func TestConfigure(t *testing.T) {
	h := host(t, "conform", hostsim.Options{PluginConfig: "one"})
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestHeaders(hostsim.Header{{":path", "/"}, {"x-id", "old"}}, false); err != nil {
		t.Fatal(err)
	}
	if err := h.Configure("refuse"); err == nil || !strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
	if err := h.Configure("two"); err != nil {
		t.Fatal(err)
	}
	r := do(t, h, hostsim.Request{}, "none", ok, 200)
	if old := s.Result().ContextID; r.ContextID <= old {
		t.Errorf("context %d after %d", r.ContextID, old)
	}
	if err := s.RequestBody(nil, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(ok); err != nil || s.Result().Status != 200 {
		t.Errorf("the old stream: status %d, error %v", s.Result().Status, err)
	}
	if _, err := hostsim.New(context.Background(), mustBuild(t, "conform"), hostsim.Options{PluginConfig: "refuse"}); err == nil {
		t.Error("a refused configuration started")
	}
}

func mustBuild(t *testing.T, guest string) []byte {
	t.Helper()
	code, err := buildGuest(guest)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestScripts(t *testing.T) {
	h := host(t, "example", hostsim.Options{Workers: 2})
	f := func(err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
		}
	}
	f(h.OnCall(0, "proxy_nothing", 1, func() {}))
	f(h.OnCall(0, "proxy_log", 0, func() {}))
	f(h.OnCall(0, "proxy_log", 1, nil))
	f(h.OnCall(2, "proxy_log", 1, func() {}))
	ran := 0
	if err := h.OnCall(0, "proxy_get_header_map_value", 2, func() {
		ran++
		if _, err := h.Do(hostsim.Request{}, ok); !errors.Is(err, hostsim.ErrBusy) {
			t.Errorf("the interrupted worker: %v", err)
		}
		if err := h.Close(); !errors.Is(err, hostsim.ErrBusy) {
			t.Errorf("close: %v", err)
		}
		h.Advance(time.Second) // the others tick; worker 0 does so later
		if got := h.Metrics().Counters["ticks"]; got != 2 {
			t.Errorf("%d ticks", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
	do(t, h, hostsim.Request{Worker: 1}, "", ok, 200)
	do(t, h, hostsim.Request{}, "", ok, 200)
	do(t, h, hostsim.Request{}, "", ok, 200)
	do(t, h, hostsim.Request{}, "", ok, 200)
	h.Advance(0)
	if got := h.Metrics().Counters["ticks"]; ran != 1 || got != 3 {
		t.Errorf("the script ran %d times, %d ticks", ran, got)
	}
}

func TestClosed(t *testing.T) {
	h, err := hostsim.New(context.Background(), mustBuild(t, "example"), hostsim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestHeaders(hostsim.Header{{":path", "/ask"}}, true); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Hour)
	for _, err := range []error{s.RequestBody(nil, true), h.Configure("x"), second(h.Stream(0)), second(h.Do(hostsim.Request{}, ok))} {
		if !errors.Is(err, hostsim.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOptionsReachTheGuest(t *testing.T) {
	h := host(t, "conform", hostsim.Options{
		VMID: "vm", Env: map[string]string{"A": "b"}, Properties: map[string]string{hostsim.Path("xds", "route_name"): "r1"},
		Foreign: map[string]func([]byte) ([]byte, error){
			"mine": func([]byte) ([]byte, error) { return []byte("x"), nil },
			"not":  func([]byte) ([]byte, error) { return nil, errors.New("no") },
		},
	})
	do(t, h, hostsim.Request{}, "rh prop plugin_vm_id; rh prop xds/route_name; rh foreign mine; rh foreign not", ok, 200)
	for _, want := range []string{"plugin_vm_id=vm !0", "xds/route_name=r1 !0", "foreign !0", "foreign !2"} {
		if got := trace(h); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

// TestOldWASI shows why modules must not poll before Envoy 1.39: the runtime of
// a guest that wants to wait dies.
func TestOldWASI(t *testing.T) {
	for version, survives := range map[string]bool{"1.38": false, "1.39": true} {
		h := host(t, "conform", hostsim.Options{EnvoyVersion: version})
		want := 503
		if survives {
			want = 200
		}
		do(t, h, hostsim.Request{}, "rh nap", ok, want)
	}
}

// TestLinger replaces a plugin that wants to live until its next tick.
func TestLinger(t *testing.T) {
	h := host(t, "conform", hostsim.Options{PluginConfig: "linger"})
	do(t, h, hostsim.Request{}, "rh tick 50", ok, 200)
	if err := h.Configure("next"); err != nil {
		t.Fatal(err)
	}
	if logs := messages(h, 0); logs != "" {
		t.Errorf("logs %q before the tick", logs)
	}
	h.Advance(50 * time.Millisecond)
	if got, want := messages(h, 0), "leaving !0 !1\nplugin deleted\n"; got != want {
		t.Errorf("logs %q, want %q", got, want)
	}
	h.Advance(time.Second) // its timer is gone
	if got := messages(h, 0); strings.Count(got, "\n") != 2 {
		t.Errorf("logs %q", got)
	}
}

func messages(h *hostsim.Host, worker int) string {
	var b strings.Builder
	for _, l := range h.Logs() {
		if l.Worker == worker {
			b.WriteString(l.Message + "\n")
		}
	}
	return b.String()
}

func TestLogLevel(t *testing.T) {
	for level, want := range map[hostsim.Level]int{hostsim.LevelTrace: 1, hostsim.LevelWarn: 1, hostsim.LevelError: 0} {
		h := host(t, "conform", hostsim.Options{LogLevel: level})
		if err := h.Configure("next"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(messages(h, 0), "deleted"); got != want {
			t.Errorf("level %d: %d lines, want %d", level, got, want)
		}
	}
}
