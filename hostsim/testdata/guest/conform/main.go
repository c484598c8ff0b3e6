// Conform is the guest of the conformance scenarios. A request tells it what
// to do, by a script in its header x-script, and it writes down everything it
// is called for and every answer it gets, under the request's x-id in shared
// data. The same module runs in hostsim and in a real Envoy; the traces must be
// equal.
//
// A script is a list of statements divided by ";". A statement is the phase in
// which to run, an operation and its words:
//
//	rh add req x-a 1; re call side 500; call setprop out b; call cont req
//
// Phases are rh, rb, re (body, and body with the end of the stream), rt, sh,
// sb, se, st for requests and responses, log, done, del for the end, tick for
// the next tick after "tick 20" and call for a callout's reply. "_" stands for
// an empty word, "+" in a word for a space. GET /trace answers the trace of
// x-id.
package main

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
)

func main() {}

func init() {
	abi.Register(func(id uint32) abi.Plugin { return &plugin{id: id, calls: map[uint32]*stream{}} })
}

type plugin struct {
	abi.BasePlugin
	id       uint32
	calls    map[uint32]*stream
	ticking  []*stream
	lingers  bool
	leaving  bool
	queue    uint32
	queueKey string // trace of the stream that registered
}

// OnConfigure refuses the configuration "refuse". A plugin configured to
// "linger" does not end before its next tick.
func (p *plugin) OnConfigure(int) bool {
	config, _ := abi.Buffer(abi.PluginConfiguration, 0, 1<<10)
	p.lingers = string(config) == "linger"
	return string(config) != "refuse"
}

func (p *plugin) OnDone() bool {
	p.leaving = p.lingers
	return !p.lingers
}

func (p *plugin) OnDelete() { abi.Log(abi.LogWarn, "plugin deleted") }

func (p *plugin) NewStream(id uint32) abi.Stream { return &stream{plugin: p, id: id} }

// OnTick runs the tick statements of every stream that waits for one.
func (p *plugin) OnTick() {
	if p.leaving {
		abi.Log(abi.LogInfo, "leaving"+mark(abi.Done())+mark(abi.Done()))
	}
	waiting := p.ticking
	p.ticking = nil
	for _, s := range waiting {
		s.enter("tick", abi.SetEffectiveContext(s.id))
	}
}

func (p *plugin) OnHTTPCallResponse(call uint32, headers, size, trailers int) {
	s := p.calls[call]
	if s == nil {
		return
	}
	delete(p.calls, call)
	status, _ := abi.Header(abi.CallHeaders, ":status")
	body, _ := abi.Buffer(abi.CallBody, 0, 200)
	s.note("call " + bit(headers > 0) + " " + string(status) + " " + number(size) + " " + printable(body))
	s.enter("call", abi.SetEffectiveContext(s.id))
}

func (p *plugin) OnQueueReady(queue uint32) {
	item, err := abi.Dequeue(queue)
	record(p.queueKey, "ready "+printable(item)+mark(err))
	_, err = abi.Dequeue(queue)
	record(p.queueKey, "then"+mark(err))
}

type stream struct {
	abi.BaseStream
	plugin *plugin
	id     uint32
	key    string
	script string
	brief  bool // body callbacks are not noted
}

func (s *stream) OnRequestHeaders(_ int, end bool) types.Action {
	path, _ := abi.Header(abi.RequestHeaders, ":path")
	if string(path) == "/trace" {
		return s.replyTrace()
	}
	id, _ := abi.Header(abi.RequestHeaders, "x-id")
	s.key = "t/" + string(id)
	script, _ := abi.Header(abi.RequestHeaders, "x-script")
	s.script = string(script)
	brief, _ := abi.Header(abi.RequestHeaders, "x-brief")
	s.brief = len(brief) > 0
	return s.event("rh", "rh "+bit(end))
}

func (s *stream) replyTrace() types.Action {
	id, _ := abi.Header(abi.RequestHeaders, "x-id")
	trace, _, _ := abi.Shared([]byte("t/" + string(id)))
	_ = abi.SendLocalReply(200, "trace", nil, append([]byte(nil), trace...), abi.NoGRPCStatus)
	return types.ActionPause
}

func (s *stream) OnRequestBody(size int, end bool) types.Action {
	return s.bodyEvent(phase("rb", "re", end), "rb "+number(size)+" "+bit(end))
}

func (s *stream) OnRequestTrailers(int) types.Action { return s.event("rt", "rt") }

func (s *stream) OnResponseHeaders(_ int, end bool) types.Action {
	status, _ := abi.Header(abi.ResponseHeaders, ":status")
	return s.event("sh", "sh "+string(status)+" "+bit(end))
}

func (s *stream) OnResponseBody(size int, end bool) types.Action {
	return s.bodyEvent(phase("sb", "se", end), "sb "+number(size)+" "+bit(end))
}

func (s *stream) OnResponseTrailers(int) types.Action { return s.event("st", "st") }

func (s *stream) OnLog() { s.event("log", "log") }

func (s *stream) OnDone() bool {
	s.event("done", "done")
	return true
}

func (s *stream) OnDelete() { s.event("del", "del") }

// enter runs a phase that the plugin was called for, if the stream is there.
func (s *stream) enter(phase string, err error) {
	if phase == "tick" || err != nil {
		s.note(phase + mark(err))
	}
	if err == nil {
		s.run(phase)
	}
}

// event notes a callback, runs its statements and answers.
func (s *stream) event(phase, line string) types.Action {
	if s.key == "" {
		return types.ActionContinue
	}
	s.note(line)
	return types.Action(s.run(phase))
}

func (s *stream) bodyEvent(phase, line string) types.Action {
	if s.brief {
		return types.Action(s.run(phase))
	}
	return s.event(phase, line)
}

func (s *stream) run(phase string) int {
	answer := 0
	for statement := range strings.SplitSeq(s.script, ";") {
		words := strings.Fields(statement)
		if len(words) < 2 || words[0] != phase {
			continue
		}
		for i, w := range words {
			words[i] = strings.ReplaceAll(strings.TrimPrefix(w, "_"), "+", " ")
		}
		if words[1] == "answer" {
			answer = int(words[2][0] - '0')
			continue
		}
		s.note("  " + words[1] + s.do(words[1], words[2:]))
	}
	return answer
}

func (s *stream) note(line string) { record(s.key, line) }

// record adds a line to a trace in shared data.
func record(key, line string) {
	old, _, _ := abi.Shared([]byte(key))
	_ = abi.SetShared([]byte(key), []byte(string(old)+line+"\n"), 0)
}

func phase(body, last string, end bool) string {
	if end {
		return last
	}
	return body
}
