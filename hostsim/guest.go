package hostsim

import "github.com/tetratelabs/wazero/api"

// guest is the Wasm filter in one stream: what Envoy's Context keeps between
// callbacks. A map or body can be used while it is set here, and Envoy clears
// it as soon as a callback has answered Continue.
type guest struct {
	stream *Stream
	ctx    *wasmContext // nil if the plugin fails closed without a VM

	created   bool // the guest knows the context
	destroyed bool
	failed    bool // the stream was answered 503 since the VM is dead
	replied   bool // that answer has been asked for; the guest must not see it

	reqHeaders, reqTrailers   *Header
	respHeaders, respTrailers *Header
	reqBody, respBody         *body
	reqHolding, respHolding   bool // paused on a body that is being collected
	endOfStream               bool
	logging                   bool // in on_log: maps come from the finished stream
}

func (g *guest) dead() bool { return g.ctx == nil || g.ctx.vm.failed() }

// create makes the context known to the guest, at its first callback.
func (g *guest) create() {
	if !g.created && !g.dead() {
		g.ctx.vm.event(g.ctx, g.ctx.vm.fn.onContextCreate, uint64(g.ctx.id), g.ctx.parentID())
	}
	g.created = true
}

// run calls a filter callback and turns its result into what the chain is
// told. stop is the strictest answer of that callback: it stands for values
// out of range and for a stream that gets a local reply. closed is what a dead
// VM answers for a plugin that fails closed.
func (g *guest) run(pick func(*callbacks) api.Function, stop, closed uint64, args ...uint64) uint64 {
	if g.dead() {
		return g.failure(closed)
	}
	v := g.ctx.vm
	fn := pick(&v.fn)
	if fn == nil {
		return 0
	}
	defer v.finish()
	result, _ := v.call(g.ctx, fn, append([]uint64{uint64(g.ctx.id)}, args...)...)
	if v.failed() {
		return g.failure(closed)
	}
	if v.stopped || result > stop {
		return stop
	}
	return result
}

// failure is the answer of a dead VM: 503, once. It is the same when the
// plugin fails open, which only concerns streams that begin later.
func (g *guest) failure(closed uint64) uint64 {
	if !g.failed {
		g.failed = true
		g.stream.localReply(localReply{code: 503, details: "wasm_fail_stream", grpc: noGRPC})
		g.replied = true
	}
	return closed
}

// destroy tells the guest that the stream is over.
func (g *guest) destroy() {
	if g.destroyed || !g.created {
		return
	}
	g.destroyed = true
	if c := g.ctx; c != nil {
		c.vm.event(c, c.vm.fn.onDone, uint64(c.id))
		c.vm.event(c, c.vm.fn.onDelete, uint64(c.id))
		delete(c.vm.contexts, c.id)
		c.root.streamGone()
	}
}

// log lets the guest see the finished stream once more.
func (g *guest) log() {
	g.create()
	g.logging = true
	if c := g.ctx; c != nil {
		c.vm.event(c, c.vm.fn.onLog, uint64(c.id))
	}
	g.logging = false
}

func (g *guest) readable(kind uint64) *Header {
	if g.logging {
		switch kind {
		case mapRequestHeaders:
			return g.stream.request.headers
		case mapResponseHeaders:
			return g.stream.response.headers
		case mapResponseTrailers:
			return g.stream.response.trailers
		}
		return nil
	}
	switch kind {
	case mapRequestHeaders:
		return g.reqHeaders
	case mapRequestTrailers:
		return g.reqTrailers
	case mapResponseHeaders:
		return g.respHeaders
	case mapResponseTrailers:
		return g.respTrailers
	}
	return nil
}

// writable is readable without the logging phase, except that asking for
// trailers on the last body callback makes them.
func (g *guest) writable(kind uint64) *Header {
	switch kind {
	case mapRequestHeaders:
		return g.reqHeaders
	case mapRequestTrailers:
		if g.reqTrailers == nil && g.reqBody != nil && g.endOfStream {
			g.reqTrailers = g.stream.request.addTrailers()
		}
		return g.reqTrailers
	case mapResponseHeaders:
		return g.respHeaders
	case mapResponseTrailers:
		if g.respTrailers == nil && g.respBody != nil && g.endOfStream {
			g.respTrailers = g.stream.response.addTrailers()
		}
		return g.respTrailers
	}
	return nil
}

// bodyOf is the body a guest can read and edit now: what is held back if it
// is collecting, else the chunk of the running callback.
func (g *guest) bodyOf(kind uint64) *body {
	if kind == bufferRequestBody {
		if g.reqHolding {
			return g.stream.request.held
		}
		return g.reqBody
	}
	if g.respHolding {
		return g.stream.response.held
	}
	return g.respBody
}

// requestSide and responseSide are a guest's two places in the chains.
type (
	requestSide  struct{ *guest }
	responseSide struct{ *guest }
)

func (g requestSide) onHeaders(end bool) uint64 {
	g.create()
	g.reqHeaders, g.endOfStream = g.stream.request.headers, end
	result := g.headersResult(func(fn *callbacks) api.Function { return fn.onRequestHeaders }, *g.reqHeaders, end)
	if result == headersContinue {
		g.reqHeaders = nil
	}
	return result
}

func (g requestSide) onData(d *body, end bool) uint64 {
	if !g.created {
		return dataContinue
	}
	if g.reqHolding {
		if g.stream.request.hold(d); g.destroyed {
			return dataStopAndBuffer
		}
	}
	g.reqBody, g.endOfStream = d, end
	size := uint64(g.bodyOf(bufferRequestBody).len())
	result := g.run(func(fn *callbacks) api.Function { return fn.onRequestBody }, dataStopNoBuffer, dataStopNoBuffer, size, flag(end))
	g.reqHolding = result == dataStopAndBuffer
	if result == dataContinue {
		g.reqBody = nil
	}
	return result
}

func (g requestSide) onTrailers() uint64 {
	if !g.created {
		return trailersContinue
	}
	g.reqTrailers = g.stream.request.trailers
	n := uint64(len(*g.reqTrailers))
	result := g.run(func(fn *callbacks) api.Function { return fn.onRequestTrailers }, trailersStop, trailersStop, n)
	if result == trailersContinue {
		g.reqTrailers = nil
	}
	return result
}

func (g responseSide) onHeaders(end bool) uint64 {
	if !g.created || g.replied {
		return headersContinue
	}
	g.respHeaders, g.endOfStream = g.stream.response.headers, end
	result := g.headersResult(func(fn *callbacks) api.Function { return fn.onResponseHeaders }, *g.respHeaders, end)
	if result == headersContinue {
		g.respHeaders = nil
	}
	return result
}

func (g responseSide) onData(d *body, end bool) uint64 {
	if !g.created || g.replied {
		return dataContinue
	}
	if g.respHolding {
		if g.stream.response.hold(d); g.destroyed {
			return dataStopAndBuffer
		}
	}
	g.respBody, g.endOfStream = d, end
	size := uint64(g.bodyOf(bufferResponseBody).len())
	result := g.run(func(fn *callbacks) api.Function { return fn.onResponseBody }, dataStopNoBuffer, dataStopNoBuffer, size, flag(end))
	g.respHolding = result == dataStopAndBuffer
	if result == dataContinue {
		g.respBody = nil
	}
	return result
}

func (g responseSide) onTrailers() uint64 {
	if !g.created || g.replied {
		return trailersContinue
	}
	g.respTrailers = g.stream.response.trailers
	n := uint64(len(*g.respTrailers))
	result := g.run(func(fn *callbacks) api.Function { return fn.onResponseTrailers }, trailersStop, trailersStop, n)
	if result == trailersContinue {
		g.respTrailers = nil
	}
	return result
}

// headersResult is run for a headers callback: a plain pause becomes a pause
// of everything unless the configuration allows it.
func (g *guest) headersResult(pick func(*callbacks) api.Function, h Header, end bool) uint64 {
	result := g.run(pick, headersStopAllWater, headersStopAllWater, uint64(len(h)), flag(end))
	switch {
	case result == headersStop && !g.stream.host.opts.AllowOnHeadersStopIteration:
		return headersStopAllWater
	case result == headersStop, result == headersStopAllBuf, result == headersStopAllWater:
		return result
	}
	return headersContinue
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
