package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// event is a callback of a stream. All of them go through one function: between
// two callbacks the host does so much else that code and data are out of the
// processor's caches again, and what a callback costs is how much of them it
// touches.
type event uint32

const (
	requestHeaders event = iota
	requestBody
	requestTrailers
	responseHeaders
	responseBody
	responseTrailers
	logged
	done
	deleted
)

// direction is where a callback's pause applies.
func (k event) direction() StreamType {
	if k >= responseHeaders {
		return ResponseStream
	}
	return RequestStream
}

// stream hands a callback to the stream id, with n headers or bytes. What is
// unknown, unseen by the plugin or broken passes: headers, bodies and trailers
// with Continue, done with consent.
func (c *contexts) stream(k event, id, n, end uint32) (answer uint32) {
	c.current, c.effective = id, 0
	e := c.streams.find(id)
	if e == nil {
		return c.notStream(k, id)
	}
	defer func() { // guard, without a wrapper that brings it c
		if r := recover(); r != nil {
			c.panicked(r)
		}
	}()
	if k >= logged {
		return c.ending(k, e)
	}
	e.paused[k.direction()] = false
	if e.broken || e.stream == nil {
		return 0
	}
	a := e.call(k, int(n), end != 0)
	e.paused[k.direction()] = a != types.ActionContinue
	return uint32(a)
}

func (e *entry) call(k event, n int, end bool) types.Action {
	switch k {
	case requestHeaders:
		return e.stream.OnRequestHeaders(n, end)
	case requestBody:
		return e.stream.OnRequestBody(n, end)
	case requestTrailers:
		return e.stream.OnRequestTrailers(n)
	case responseHeaders:
		return e.stream.OnResponseHeaders(n, end)
	case responseBody:
		return e.stream.OnResponseBody(n, end)
	}
	return e.stream.OnResponseTrailers(n)
}

// ending is the part of a stream's life that runs even if it is broken.
func (c *contexts) ending(k event, e *entry) uint32 {
	s := e.stream
	if k == deleted {
		c.streams.remove(e) // first: a panic in OnDelete must not bring it back
	}
	if s == nil {
		return 1
	}
	switch k {
	case logged:
		s.OnLog()
	case done:
		return flag(s.OnDone())
	case deleted:
		s.OnDelete()
	}
	return 1
}
