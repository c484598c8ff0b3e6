// Example is the filter of hostsim's package examples: it asks a cluster
// whether a request may pass, spends tokens from a counter in shared data, and
// counts on every tick.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
)

func main() {}

func init() {
	abi.Register(func(uint32) abi.Plugin { return &plugin{asking: map[uint32]*stream{}} })
}

type plugin struct {
	abi.BasePlugin
	asking map[uint32]*stream
	ticks  uint32
}

func (p *plugin) OnConfigure(int) bool {
	metric, err := abi.DefineMetric(abi.Counter, "ticks")
	p.ticks = metric
	return err == nil && abi.SetTickPeriod(1000) == nil
}

func (p *plugin) OnTick() { _ = abi.IncrementMetric(p.ticks, 1) }

func (p *plugin) NewStream(id uint32) abi.Stream { return &stream{plugin: p, id: id} }

// OnHTTPCallResponse lets the stream pass if the cluster said 200.
func (p *plugin) OnHTTPCallResponse(call uint32, _, _, _ int) {
	s := p.asking[call]
	delete(p.asking, call)
	verdict, _ := abi.Header(abi.CallHeaders, ":status")
	if s == nil || abi.SetEffectiveContext(s.id) != nil {
		return
	}
	if string(verdict) != "200" {
		_ = abi.SendLocalReply(403, "asked", nil, []byte("no\n"), abi.NoGRPCStatus)
		return
	}
	_ = abi.ReplaceHeader(abi.RequestHeaders, "x-checked", []byte("yes"))
	_ = abi.ContinueStream(abi.RequestStream)
}

type stream struct {
	abi.BaseStream
	plugin *plugin
	id     uint32
}

func (s *stream) OnRequestHeaders(int, bool) types.Action {
	path, _ := abi.Header(abi.RequestHeaders, ":path")
	switch string(path) {
	case "/ask":
		return s.ask()
	case "/spend":
		return spend()
	}
	_ = abi.ReplaceHeader(abi.RequestHeaders, "x-greeting", []byte("hello"))
	return types.ActionContinue
}

func (s *stream) ask() types.Action {
	var e abi.Encoder
	e.Add(":method", "GET")
	e.Add(":path", "/may-i")
	e.Add(":authority", "auth")
	call, err := abi.HTTPCall("auth", &e, nil, nil, 500)
	if err != nil {
		return types.ActionContinue
	}
	s.plugin.asking[call] = s
	return types.ActionPause
}

// spend takes one token, once: losing the race is losing the token.
func spend() types.Action {
	tokens, cas, err := abi.Shared([]byte("tokens"))
	if err != nil || len(tokens) == 0 {
		return refuse("none left\n")
	}
	if abi.SetShared([]byte("tokens"), tokens[1:], cas) != nil {
		return refuse("too late\n")
	}
	return types.ActionContinue
}

func refuse(why string) types.Action {
	_ = abi.SendLocalReply(429, "tokens", nil, []byte(why), abi.NoGRPCStatus)
	return types.ActionPause
}
