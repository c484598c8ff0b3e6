package hostsim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/hostsim"
)

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
