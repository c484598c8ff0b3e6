package abi

import (
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// TestEveryCallbackRecovers panics in each callback in turn. Whichever it is, the
// stream passes, and what gives things back is still called.
func TestEveryCallbackRecovers(t *testing.T) {
	sound := newRig()
	sound.exchange()
	for i, at := range sound.fake.calls {
		r := newRig()
		r.fake.panicAt = at
		if got := r.exchange(); !slices.Equal(got, make([]uint32, 6)) {
			t.Errorf("panic at %q: actions %v, want Continue throughout", at, got)
		}
		if r.panics != 1 || len(r.lines) != 1 || r.streams.used != 0 {
			t.Errorf("panic at %q: %d panics, log %q, %d streams left", at, r.panics, r.lines, r.streams.used)
		}
		want := append(slices.Clone(sound.fake.calls[:i+1]), tail(at, sound.fake.calls[i+1:])...)
		r.expect(t, want...)
	}
}

// tail is what still runs after a panic at a callback of exchange.
func tail(at string, rest []string) []string {
	if at == "new 2" {
		return nil // there is no stream to call
	}
	var last []string
	for _, call := range rest {
		if call == "log" || strings.HasPrefix(call, "stream") {
			last = append(last, call)
		}
	}
	return last
}

func TestPluginCallbacksRecover(t *testing.T) {
	f := func(at string, want uint32, call func(r *rig) uint32) {
		t.Helper()
		r := newRig()
		r.fake.panicAt = at
		if got := call(r); got != want || r.panics != 1 {
			t.Errorf("panic at %q: answer %d, want %d; %d panics", at, got, want, r.panics)
		}
		if r.tick(1); r.fake.calls[len(r.fake.calls)-1] != "tick" && at != "delete" {
			t.Errorf("panic at %q: the plugin is no longer called", at)
		}
	}
	f("vm 0", 0, func(r *rig) uint32 { return r.vmStart(1, 0) })
	f("configure 0", 0, func(r *rig) uint32 { return r.configure(1, 0) })
	f("done", 1, func(r *rig) uint32 { return r.stream(done, 1, 0, 0) })
	f("delete", 0, func(r *rig) uint32 { r.stream(deleted, 1, 0, 0); return 0 })
	f("queue 3", 0, func(r *rig) uint32 { r.queueReady(1, 3); return 0 })
	f("foreign 3 0", 0, func(r *rig) uint32 { r.foreignFunction(1, 3, 0); return 0 })
	f("call 3 1 1 0", 0, func(r *rig) uint32 { r.httpCallResponse(1, 3, 1, 1, 0); return 0 })
}

func TestCreationRecovers(t *testing.T) {
	r := newRig()
	r.create = func(uint32) Plugin { panic("no plugin today") }
	r.contextCreate(7, 0)
	if r.panics != 1 || !strings.Contains(r.lines[0], "no plugin today") || r.configure(7, 0) != 0 {
		t.Errorf("%d panics, log %q; want one, and the configuration refused", r.panics, r.lines)
	}
}

// TestPanicResumesPausedStream: a stream that waits must not wait for ever because
// the code that would have released it failed.
func TestPanicResumesPausedStream(t *testing.T) {
	f := func(name string, want []string, play func(r *rig, s *fakeStream)) {
		t.Helper()
		r := newRig()
		r.contextCreate(2, 1)
		s := r.fake.streams[0]
		s.answer = types.ActionPause
		play(r, s)
		if !slices.Equal(r.resumes, want) || r.panics != 1 {
			t.Errorf("%s: resumed %v, want %v; %d panics", name, r.resumes, want, r.panics)
		}
	}
	f("tick that had chosen the stream", []string{"2/0"}, func(r *rig, s *fakeStream) {
		r.stream(requestBody, 2, 9, 1)
		r.fake.panicAt = "tick"
		r.fake.act = func(call string) { r.effective = 2 }
		r.tick(1)
	})
	f("tick after the stream was continued", nil, func(r *rig, s *fakeStream) {
		r.stream(requestBody, 2, 9, 1)
		r.fake.panicAt = "tick"
		r.fake.act = func(call string) { r.effective = 2; r.resumed(RequestStream) }
		r.tick(1)
	})
	f("tick that had chosen nothing", nil, func(r *rig, s *fakeStream) {
		r.stream(requestBody, 2, 9, 1)
		r.fake.panicAt = "tick"
		r.tick(1)
	})
	f("own callback in the other direction", []string{"2/0"}, func(r *rig, s *fakeStream) {
		r.stream(requestBody, 2, 9, 1)
		r.fake.panicAt = "response headers 1 false"
		r.stream(responseHeaders, 2, 1, 0)
	})
	f("own callback in the same direction", nil, func(r *rig, s *fakeStream) {
		r.stream(requestHeaders, 2, 1, 0)
		r.fake.panicAt = "request body 9 true"
		r.stream(requestBody, 2, 9, 1)
	})
}

func TestPanicLine(t *testing.T) {
	f := func(want string, value any) {
		t.Helper()
		r := newRig()
		r.fake.act = func(string) { explode(value) }
		r.tick(1)
		if len(r.lines) != 1 || !strings.HasPrefix(r.lines[0], "panic in context 1: "+want+" at ") {
			t.Fatalf("got %q, want %q", r.lines, want)
		}
		if !strings.Contains(r.lines[0], "abi.explode line ") {
			t.Errorf("got %q, want the place", r.lines[0])
		}
	}
	f("a word", "a word")
	f(types.ErrorInternalFailure.Error(), types.ErrorInternalFailure)
	f("value of an unprintable type", 7)
}

//go:noinline
func explode(value any) { panic(value) }

func TestPanicLineOfRuntimeError(t *testing.T) {
	r := newRig()
	r.fake.act = func(string) { r.fake.streams[3].linger = true }
	r.tick(1)
	if len(r.lines) != 1 || !strings.Contains(r.lines[0], "index out of range [3]") || !strings.Contains(r.lines[0], "abi.TestPanicLineOfRuntimeError") {
		t.Errorf("got %q, want the runtime's words and the place", r.lines)
	}
}
