package abi

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// fakePlugin notes what it is told and panics where a test wants it to.
type fakePlugin struct {
	BasePlugin
	calls   []string
	panicAt string
	refuse  bool
	streams []*fakeStream
	act     func(call string) // runs inside each callback
}

func (p *fakePlugin) told(parts ...string) {
	call := strings.Join(parts, " ")
	p.calls = append(p.calls, call)
	if p.act != nil {
		p.act(call)
	}
	if call == p.panicAt {
		panic(errors.New("as asked"))
	}
}

func num(n int) string { return strconv.Itoa(n) }

func (p *fakePlugin) OnVMStart(size int) bool   { p.told("vm", num(size)); return !p.refuse }
func (p *fakePlugin) OnConfigure(size int) bool { p.told("configure", num(size)); return !p.refuse }
func (p *fakePlugin) OnTick()                   { p.told("tick") }
func (p *fakePlugin) OnQueueReady(q uint32)     { p.told("queue", num(int(q))) }
func (p *fakePlugin) OnDone() bool              { p.told("done"); return !p.refuse }
func (p *fakePlugin) OnDelete()                 { p.told("delete") }

func (p *fakePlugin) OnHTTPCallResponse(call uint32, headers, size, trailers int) {
	p.told("call", num(int(call)), num(headers), num(size), num(trailers))
}

func (p *fakePlugin) OnForeignFunction(f uint32, size int) { p.told("foreign", num(int(f)), num(size)) }

func (p *fakePlugin) NewStream(id uint32) Stream {
	p.told("new", num(int(id)))
	if p.refuse {
		return nil
	}
	s := &fakeStream{plugin: p}
	p.streams = append(p.streams, s)
	return s
}

type fakeStream struct {
	plugin *fakePlugin
	answer types.Action
	linger bool // OnDone answers false
}

func (s *fakeStream) OnRequestHeaders(n int, end bool) types.Action {
	s.plugin.told("request headers", num(n), strconv.FormatBool(end))
	return s.answer
}

func (s *fakeStream) OnRequestBody(n int, end bool) types.Action {
	s.plugin.told("request body", num(n), strconv.FormatBool(end))
	return s.answer
}

func (s *fakeStream) OnRequestTrailers(n int) types.Action {
	s.plugin.told("request trailers", num(n))
	return s.answer
}

func (s *fakeStream) OnResponseHeaders(n int, end bool) types.Action {
	s.plugin.told("response headers", num(n), strconv.FormatBool(end))
	return s.answer
}

func (s *fakeStream) OnResponseBody(n int, end bool) types.Action {
	s.plugin.told("response body", num(n), strconv.FormatBool(end))
	return s.answer
}

func (s *fakeStream) OnResponseTrailers(n int) types.Action {
	s.plugin.told("response trailers", num(n))
	return s.answer
}

func (s *fakeStream) OnLog()       { s.plugin.told("log") }
func (s *fakeStream) OnDone() bool { s.plugin.told("stream done"); return !s.linger }
func (s *fakeStream) OnDelete()    { s.plugin.told("stream delete") }

// rig is a set of contexts with plugin 1, and what reached the host.
type rig struct {
	contexts
	fake    *fakePlugin
	lines   []string
	resumes []string
}

func newRig() *rig {
	r := &rig{fake: &fakePlugin{}}
	r.create = func(uint32) Plugin { return r.fake }
	r.log = func(line string) { r.lines = append(r.lines, line) }
	r.resume = func(id uint32, d StreamType) {
		r.resumes = append(r.resumes, num(int(id))+"/"+num(int(d)))
	}
	r.contextCreate(1, 0)
	return r
}

func (r *rig) expect(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(r.fake.calls, calls) {
		t.Errorf("got calls\n\t%s\nwant\n\t%s", strings.Join(r.fake.calls, "\n\t"), strings.Join(calls, "\n\t"))
	}
}

// exchange plays every callback of stream 2 and returns the actions.
func (r *rig) exchange() []uint32 {
	r.contextCreate(2, 1)
	actions := []uint32{
		r.stream(requestHeaders, 2, 5, 0), r.stream(requestBody, 2, 10, 0), r.stream(requestTrailers, 2, 1, 0),
		r.stream(responseHeaders, 2, 6, 0), r.stream(responseBody, 2, 11, 1), r.stream(responseTrailers, 2, 2, 0),
	}
	r.stream(logged, 2, 0, 0)
	r.stream(done, 2, 0, 0)
	r.stream(deleted, 2, 0, 0)
	return actions
}

func TestLifeOfAStream(t *testing.T) {
	r := newRig()
	if got := r.exchange(); !slices.Equal(got, make([]uint32, 6)) {
		t.Errorf("actions %v, want Continue throughout", got)
	}
	r.expect(t, "new 2", "request headers 5 false", "request body 10 false", "request trailers 1",
		"response headers 6 false", "response body 11 true", "response trailers 2",
		"log", "stream done", "stream delete")
	if r.unknown+r.panics != 0 || r.streams.used != 0 {
		t.Errorf("%d unknown, %d panics, %d streams left", r.unknown, r.panics, r.streams.used)
	}
}

func TestLifeOfAPlugin(t *testing.T) {
	r := newRig()
	if r.vmStart(1, 3) != 1 || r.configure(1, 4) != 1 {
		t.Error("a consenting plugin was refused")
	}
	r.tick(1)
	r.httpCallResponse(1, 9, 3, 100, 1)
	r.queueReady(1, 8)
	r.foreignFunction(1, 7, 6)
	r.stream(logged, 1, 0, 0)
	if r.stream(done, 1, 0, 0) != 1 {
		t.Error("done was refused")
	}
	r.stream(deleted, 1, 0, 0)
	r.expect(t, "vm 3", "configure 4", "tick", "call 9 3 100 1", "queue 8", "foreign 7 6", "done", "delete")
	if len(r.plugins) != 0 || r.unknown != 0 {
		t.Errorf("plugin still there or unknown: %d", r.unknown)
	}
}

func TestActionsAndAnswersPass(t *testing.T) {
	r := newRig()
	r.contextCreate(2, 1)
	r.fake.streams[0].answer, r.fake.streams[0].linger = types.ActionPause, true
	if r.stream(requestHeaders, 2, 1, 1) != 1 || r.stream(responseBody, 2, 1, 0) != 1 {
		t.Error("Pause did not reach the host")
	}
	if r.stream(done, 2, 0, 0) != 0 {
		t.Error("a lingering stream was reported as done")
	}
	r.fake.refuse = true
	if r.vmStart(1, 0) != 0 || r.configure(1, 0) != 0 || r.stream(done, 1, 0, 0) != 0 {
		t.Error("a refusal did not reach the host")
	}
}

func TestPluginWithoutInterest(t *testing.T) {
	r := newRig()
	r.fake.refuse = true
	r.exchange()
	r.expect(t, "new 2")
	if r.unknown != 0 || r.streams.used != 0 {
		t.Errorf("%d unknown, %d streams left", r.unknown, r.streams.used)
	}
}

func TestVMStartOfNobody(t *testing.T) {
	r := newRig()
	if r.vmStart(0, 0) != 1 || r.unknown != 0 {
		t.Errorf("refused, or counted as unknown (%d)", r.unknown)
	}
}

func TestUnknownContextsPass(t *testing.T) {
	r := newRig()
	r.fake.act = func(call string) { t.Errorf("plugin was told %q", call) }
	calls := []func(){
		func() { r.contextCreate(5, 4) },
		func() { r.stream(requestHeaders, 5, 1, 0) }, func() { r.stream(requestBody, 5, 1, 0) }, func() { r.stream(requestTrailers, 5, 1, 0) },
		func() { r.stream(responseHeaders, 5, 1, 0) }, func() { r.stream(responseBody, 5, 1, 0) }, func() { r.stream(responseTrailers, 5, 1, 0) },
		func() { r.stream(logged, 5, 0, 0) }, func() { r.stream(done, 5, 0, 0) }, func() { r.stream(deleted, 5, 0, 0) },
		func() { r.vmStart(5, 0) }, func() { r.configure(5, 0) }, func() { r.tick(5) }, func() { r.queueReady(5, 0) },
		func() { r.httpCallResponse(5, 1, 1, 1, 1) }, func() { r.foreignFunction(5, 0, 0) },
		func() { r.grpcInitialMetadata(5, 1, 1) }, func() { r.grpcMessage(5, 1, 1) },
		func() { r.grpcTrailingMetadata(5, 1, 1) }, func() { r.grpcClose(5, 1, 1) },
	}
	for i, call := range calls {
		call()
		if r.unknown != uint64(i+1) {
			t.Errorf("call %d: %d unknown, want %d", i, r.unknown, i+1)
		}
	}
	if r.panics != 0 {
		t.Errorf("%d panics: %v", r.panics, r.lines)
	}
}

func TestUnregistered(t *testing.T) {
	var lines []string
	c := contexts{log: func(line string) { lines = append(lines, line) }}
	c.contextCreate(1, 0)
	if len(lines) != 1 || !strings.Contains(lines[0], "abi.Register") || c.configure(1, 0) != 0 {
		t.Errorf("log %v, want a hint; and the configuration refused", lines)
	}
}

type grpcPlugin struct{ *fakePlugin }

func (p grpcPlugin) OnGRPCInitialMetadata(c uint32, n int)  { p.told("initial", num(int(c)), num(n)) }
func (p grpcPlugin) OnGRPCMessage(c uint32, n int)          { p.told("message", num(int(c)), num(n)) }
func (p grpcPlugin) OnGRPCTrailingMetadata(c uint32, n int) { p.told("trailing", num(int(c)), num(n)) }
func (p grpcPlugin) OnGRPCClose(c, status uint32)           { p.told("close", num(int(c)), num(int(status))) }

func TestGRPC(t *testing.T) {
	r := newRig()
	f := func(id uint32) {
		r.grpcInitialMetadata(id, 3, 1)
		r.grpcMessage(id, 3, 20)
		r.grpcTrailingMetadata(id, 3, 2)
		r.grpcClose(id, 3, 14)
	}
	f(1)
	r.expect(t) // not a GRPCPlugin
	r.create = func(uint32) Plugin { return grpcPlugin{r.fake} }
	r.contextCreate(9, 0)
	f(9)
	r.expect(t, "initial 3 1", "message 3 20", "trailing 3 2", "close 3 14")
	if r.unknown != 0 {
		t.Errorf("%d unknown", r.unknown)
	}
}

// TestStreamsDoNotAllocate holds the promise of no garbage for a plugin that
// reuses its streams.
func TestStreamsDoNotAllocate(t *testing.T) {
	s := &struct{ BaseStream }{}
	c := contexts{create: func(uint32) Plugin { return &reuse{stream: s} }}
	c.contextCreate(1, 0)
	id := uint32(2)
	n := testing.AllocsPerRun(1000, func() {
		c.contextCreate(id, 1)
		c.stream(requestHeaders, id, 5, 0)
		c.stream(requestBody, id, 100, 1)
		c.stream(responseHeaders, id, 5, 0)
		c.stream(responseBody, id, 100, 1)
		c.stream(logged, id, 0, 0)
		c.stream(done, id, 0, 0)
		c.stream(deleted, id, 0, 0)
		id++
	})
	if n != 0 || c.unknown != 0 {
		t.Errorf("%v allocations a stream, %d unknown", n, c.unknown)
	}
}

type reuse struct {
	BasePlugin
	stream Stream
}

func (p *reuse) NewStream(uint32) Stream { return p.stream }

func BenchmarkStream(b *testing.B) {
	c := contexts{create: func(uint32) Plugin { return &reuse{stream: &struct{ BaseStream }{}} }}
	c.contextCreate(1, 0)
	b.ReportAllocs()
	for i := range b.N {
		id := uint32(i + 2)
		c.contextCreate(id, 1)
		c.stream(requestHeaders, id, 5, 0)
		c.stream(requestBody, id, 100, 1)
		c.stream(responseHeaders, id, 5, 0)
		c.stream(responseBody, id, 100, 1)
		c.stream(done, id, 0, 0)
		c.stream(deleted, id, 0, 0)
	}
}
