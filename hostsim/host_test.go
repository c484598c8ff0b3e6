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

func TestOrder(t *testing.T) {
	h := host(t, "example", hostsim.Options{Workers: 2})
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	f := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	head := hostsim.Header{{":path", "/"}}
	f(s.RequestBody(nil, true), hostsim.ErrOrder)
	f(s.ResponseHeaders(head, true), hostsim.ErrOrder)
	f(s.UpstreamReset(), hostsim.ErrOrder)
	f(s.RequestHeaders(head, true), nil)
	f(s.RequestHeaders(head, true), hostsim.ErrOrder)
	f(s.RequestBody(nil, true), hostsim.ErrOrder)
	f(s.RequestTrailers(nil), hostsim.ErrOrder)
	f(s.ResponseBody(nil, true), hostsim.ErrOrder)
	f(s.ResponseTrailers(nil), hostsim.ErrOrder)
	f(s.Close(), nil)
	f(s.Close(), nil)
	f(s.ResponseBody(nil, true), nil) // too late, as a peer may be
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

func TestUpstreams(t *testing.T) {
	h := host(t, "conform", hostsim.Options{BufferLimit: 1000})
	f := func(up hostsim.Upstream, status int, complete bool, details string, took time.Duration) {
		t.Helper()
		r := do(t, h, hostsim.Request{Body: make([]byte, 3000), ChunkSize: 1000}, "none", up, status)
		if r.Complete != complete || r.Details != details || r.Duration != took {
			t.Errorf("complete %v, details %s, duration %v; want %v, %s, %v", r.Complete, r.Details, r.Duration, complete, details, took)
		}
	}
	answer := func(r hostsim.Reply) hostsim.Upstream {
		return func(*hostsim.UpstreamRequest) hostsim.Reply { return r }
	}
	body := []byte("abc")
	f(ok, 200, true, "via_upstream", 0)
	f(nil, 503, true, "no_healthy_upstream", 0)
	f(answer(hostsim.Reply{Body: body, ChunkSize: 1, Delay: time.Second, ChunkDelay: time.Second}), 200, true, "via_upstream", 5*time.Second)
	f(answer(hostsim.Reply{Delay: time.Minute}), 504, true, "response_timeout", 15*time.Second)
	f(answer(hostsim.Reply{Body: body, ChunkDelay: time.Minute}), 200, false, "response_timeout", 15*time.Second)
	f(answer(hostsim.Reply{Reset: hostsim.ResetBeforeHead}), 503, true, "upstream_reset_before_response_started{connection_termination}", 0)
	f(answer(hostsim.Reply{Reset: hostsim.ResetInBody, Body: body}), 200, false, "upstream_reset_after_response_started{connection_termination}", 0)
}

// TestFlowControl sends more than the chain holds to a guest that pauses on
// headers: the client waits, and nothing is refused.
func TestFlowControl(t *testing.T) {
	h := host(t, "conform", hostsim.Options{BufferLimit: 1000})
	body := strings.Repeat("0123456789", 500)
	r := do(t, h, hostsim.Request{Body: []byte(body), ChunkSize: 600}, "rh answer 1; rh tick 20; tick cont req", ok, 200)
	if string(r.Upstream.Body) != body {
		t.Errorf("%d bytes arrived of %d", len(r.Upstream.Body), len(body))
	}
	if got := trace(h); !strings.Contains(got, "rb 1200 0\nrb 600 0\n") {
		t.Errorf("trace %s", got)
	}
}

func trace(h *hostsim.Host) string {
	b, _, _ := h.Shared().Get("t/t")
	return string(b)
}

func TestEndWithData(t *testing.T) {
	h := host(t, "conform", hostsim.Options{})
	do(t, h, hostsim.Request{Chunks: [][]byte{[]byte("a"), []byte("b")}, EndWithData: true}, "none", ok, 200)
	if got := trace(h); !strings.Contains(got, "rb 1 0\nrb 1 1\nsh") {
		t.Errorf("trace %s", got)
	}
}

func TestStalled(t *testing.T) {
	h := host(t, "conform", hostsim.Options{IdleTimeout: -1, RouteTimeout: -1})
	r, err := h.Do(hostsim.Request{Header: hostsim.Header{{"x-script", "rh answer 1"}, {"x-id", "s"}}}, ok)
	if !errors.Is(err, hostsim.ErrStalled) || r == nil || r.Status != 0 {
		t.Errorf("result %v, error %v", r, err)
	}
}

func TestSharedCounts(t *testing.T) {
	h := host(t, "example", hostsim.Options{})
	h.Shared().Set("tokens", []byte("tt"))
	r := do(t, h, hostsim.Request{Path: "/spend"}, "", ok, 200)
	gets, sets := h.Shared().Calls()
	if r.SharedGets != 1 || r.SharedSets != 1 || gets != 1 || sets != 1 {
		t.Errorf("stream %d and %d, all %d and %d", r.SharedGets, r.SharedSets, gets, sets)
	}
}

func TestUpstreamAddress(t *testing.T) {
	h := host(t, "conform", hostsim.Options{})
	up := func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Address: "10.0.0.7:8000"} }
	do(t, h, hostsim.Request{}, "rh prop upstream/address; sh prop upstream/address", up, 200)
	if got := trace(h); !strings.Contains(got, "upstream/address= !1") || !strings.Contains(got, "upstream/address=10.0.0.7:8000 !0") {
		t.Errorf("trace %s", got)
	}
}

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

// TestResponseSteps drives a response by hand, held by the guest in between.
func TestResponseSteps(t *testing.T) {
	h := host(t, "conform", hostsim.Options{})
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	script := "sh answer 1; sh tick 50; tick prop upstream/address; tick cont resp"
	check(s.RequestHeaders(hostsim.Header{{":path", "/"}, {"x-id", "t"}, {"x-script", script}}, true))
	s.AnsweredBy("10.0.0.9:80")
	check(s.ResponseHeaders(hostsim.Header{{":status", "207"}}, false))
	check(s.ResponseBody([]byte("abc"), false))
	check(s.ResponseTrailers(hostsim.Header{{"X-T", "1"}}))
	if r := s.Result(); !s.ResponsePaused() || r.Status != 0 || len(r.Body) != 0 {
		t.Errorf("paused %v, result %+v", s.ResponsePaused(), r)
	}
	h.Advance(50 * time.Millisecond)
	r := s.Result()
	if s.ResponsePaused() || !r.Complete || r.Status != 207 || string(r.Body) != "abc" || r.Trailers.Get("x-t") != "1" {
		t.Errorf("paused %v, result %+v", s.ResponsePaused(), r)
	}
	if got := trace(h); !strings.Contains(got, "upstream/address=10.0.0.9:80 !0\n  cont !0\nsb 3 0\nst\n") {
		t.Errorf("trace %s", got)
	}
}

func TestIdleClient(t *testing.T) {
	h := host(t, "conform", hostsim.Options{IdleTimeout: time.Second})
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RequestHeaders(hostsim.Header{{":path", "/"}}, false); err != nil {
		t.Fatal(err)
	}
	h.Advance(900 * time.Millisecond)
	if err := s.RequestBody([]byte("more"), false); err != nil {
		t.Fatal(err)
	}
	h.Advance(900 * time.Millisecond)
	if s.Done() {
		t.Error("timed out too early")
	}
	h.Advance(100 * time.Millisecond)
	if r := s.Result(); r.Status != 408 || string(r.Body) != "stream timeout" {
		t.Errorf("status %d, body %q", r.Status, r.Body)
	}
}
