//go:build wasip1

package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/exchange"
)

// stream translates one exchange: callbacks into events, verdicts into calls.
// The native buffer filter behind it holds the request back; it pauses itself
// only at the end of the body, to wait for the tokens of the prompt.
type stream struct {
	plugin   *plugin
	id       uint32
	exchange *exchange.Exchange
	headers  abi.Pairs
	replied  bool
	waiting  bool // for a call to be answered
}

// OnRequestHeaders implements abi.Stream.
func (s *stream) OnRequestHeaders(_ int, end bool) types.Action {
	s.replied = false
	if !s.read(abi.RequestHeaders) {
		return types.ActionContinue
	}
	return s.act(abi.RequestHeaders, s.exchange.RequestHeaders(&s.headers, end))
}

// OnRequestBody implements abi.Stream.
func (s *stream) OnRequestBody(size int, end bool) types.Action {
	if !s.exchange.ReadsRequest() {
		return types.ActionContinue
	}
	return s.act(abi.RequestHeaders, s.exchange.RequestBody(chunk(abi.RequestBody, size), end))
}

// OnRequestTrailers implements abi.Stream: with trailers they are the end.
func (s *stream) OnRequestTrailers(int) types.Action {
	if !s.exchange.ReadsRequest() {
		return types.ActionContinue
	}
	return s.act(abi.RequestHeaders, s.exchange.RequestBody(nil, true))
}

// OnResponseHeaders implements abi.Stream.
func (s *stream) OnResponseHeaders(_ int, end bool) types.Action {
	if !s.exchange.ReadsResponse() || !s.read(abi.ResponseHeaders) {
		return types.ActionContinue
	}
	return s.act(abi.ResponseHeaders, s.exchange.ResponseHeaders(&s.headers, upstream, end))
}

// OnResponseBody implements abi.Stream.
func (s *stream) OnResponseBody(size int, end bool) types.Action {
	if s.exchange.ReadsResponseBody() && size > 0 {
		if bytes, err := abi.Buffer(abi.ResponseBody, 0, size); err == nil {
			s.exchange.ResponseBody(bytes)
		}
	}
	if end {
		s.exchange.ResponseEnd()
	}
	return types.ActionContinue
}

// OnResponseTrailers implements abi.Stream.
func (s *stream) OnResponseTrailers(int) types.Action {
	s.exchange.ResponseEnd()
	return types.ActionContinue
}

// OnLog settles the exchange, whichever way it ended.
func (s *stream) OnLog() {
	for _, p := range s.exchange.Settle(details).Properties {
		_ = abi.SetProperty(p.Name, p.Value)
	}
}

// OnDone implements abi.Stream.
func (s *stream) OnDone() bool { return true }

// OnDelete implements abi.Stream. Settling twice does nothing, so an exchange
// that was never logged is settled here.
func (s *stream) OnDelete() {
	s.exchange.Settle(noDetails)
	if s.waiting {
		s.plugin.forget(s)
	}
	s.plugin.free = append(s.plugin.free, s)
}

// upstream is the address of the replica that answered.
func upstream() []byte {
	b, err := abi.Property("upstream\x00address")
	if err != nil {
		return nil
	}
	return b
}

// details is the host's word on why an exchange ended, asked for only when it
// did not end well.
func details() []byte {
	b, err := abi.Property("response\x00code_details")
	if err != nil {
		return nil
	}
	return b
}

func noDetails() []byte { return nil }

func (s *stream) read(m abi.MapType) bool { return abi.ReadHeaders(m, &s.headers) == nil }

// chunk gives the bytes of a body that a callback speaks of.
func chunk(b abi.BufferType, size int) []byte {
	if size == 0 {
		return nil
	}
	data, err := abi.Buffer(b, 0, size)
	if err != nil {
		return nil
	}
	return data
}

// act carries out a verdict. What the host refuses is no reason to stop a
// request: at worst it goes where Envoy's own balancer sends it.
func (s *stream) act(m abi.MapType, v *exchange.Verdict) types.Action {
	for _, name := range v.Remove {
		_ = abi.RemoveHeader(m, name)
	}
	for _, h := range v.Add {
		_ = abi.ReplaceHeader(m, h.Name, h.Value)
	}
	for _, p := range v.Properties {
		_ = abi.SetProperty(p.Name, p.Value)
	}
	if v.Reply != nil && !s.replied {
		s.replied = true
		return s.reply(v.Reply)
	}
	if v.Call != nil {
		return s.call(m, v.Call)
	}
	return types.ActionContinue
}

func (s *stream) reply(r *exchange.Reply) types.Action {
	var headers abi.Encoder
	headers.Add("content-type", "application/json")
	headers.Add(exchange.ReasonHeader, string(r.Reason))
	err := abi.SendLocalReply(uint32(r.Status), "warmlane_"+string(r.Reason), &headers, r.Body, abi.NoGRPCStatus)
	if err != nil {
		return types.ActionContinue
	}
	return types.ActionPause
}
