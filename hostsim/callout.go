package hostsim

import (
	"bytes"
	"strconv"
	"time"
)

// callout is an HTTP call a guest has made, until its callback.
type callout struct {
	root  *wasmContext
	token uint32
	done  *event
}

// callReply is what the guest can read while the callback of a call runs.
type callReply struct {
	headers, trailers *Header
	body              []byte
}

// maxCallBody is how much of a reply Envoy collects for a callout.
const maxCallBody = 32 << 20

// tokenStep separates ids: HTTP calls have the low two bits clear.
const tokenStep = 4

// SetUpstream scripts a cluster for callouts. A nil upstream is a cluster that
// exists and has no healthy host; a name never set is an unknown cluster.
func (h *Host) SetUpstream(cluster string, up Upstream) { h.upstreams[cluster] = up }

var calloutCalls = []hostFunc{{name: "proxy_http_call", signature: "iiiiiiiiii:i", run: callHTTP}}

func callHTTP(v *vm, a []uint64) uint32 {
	cluster, ok1 := v.readString(a[0], a[1])
	headers, ok2 := v.read(a[2], a[3])
	content, ok3 := v.read(a[4], a[5])
	trailers, ok4 := v.read(a[6], a[7])
	if !ok1 || !ok2 || !ok3 || !ok4 || !v.put32(a[9], 0) {
		return uint32(statusInvalidMemory)
	}
	r := &UpstreamRequest{Cluster: cluster, Header: *decodePairs(headers).lowered(), Body: bytes.Clone(content),
		Trailers: decodePairs(trailers), Complete: true, Worker: v.worker.index, At: v.host.clock.now}
	token, st := v.context().root.httpCall(r, int32(a[8]))
	v.put32(a[9], token)
	return uint32(st)
}

// httpCall sends r; timeout is in milliseconds and 0 means none. Calls belong
// to the root context, whoever makes them.
func (c *wasmContext) httpCall(r *UpstreamRequest, timeout int32) (uint32, status) {
	h := c.vm.host
	up, known := h.upstreams[r.Cluster]
	complete := r.Header.Has(":method") && r.Header.Has(":path") && r.Header.Has(":authority")
	if timeout < 0 || !known || !complete {
		return 0, statusBadArgument
	}
	c.vm.nextCall += tokenStep
	if up == nil {
		return 0, statusInternal
	}
	if len(r.Body) > 0 {
		r.Header.set("content-length", strconv.Itoa(len(r.Body)))
	}
	call := &callout{root: c, token: c.vm.nextCall}
	c.calls[call.token] = call
	if c.vm.worker.index != Canary {
		call.schedule(r, up, time.Duration(timeout)*time.Millisecond)
	}
	return call.token, statusOK
}

// schedule asks the upstream when the request arrives there, which is after
// the callback that made it, and books what comes back.
func (call *callout) schedule(r *UpstreamRequest, up Upstream, timeout time.Duration) {
	h := call.root.vm.host
	w := call.root.vm.worker
	call.done = h.clock.after(0, w, func() {
		reply := up(r)
		wait, what := outcome(reply, timeout)
		call.done = h.clock.after(wait, w, func() { call.deliver(what) })
	})
}

// outcome is when and what a guest hears of a reply; nil is failure. The
// router answers for an upstream that is late or breaks before the head, so
// those are ordinary replies.
func outcome(r Reply, timeout time.Duration) (time.Duration, *callReply) {
	wait := r.duration()
	late := timeout > 0 && wait > timeout
	started := r.Delay <= timeout || timeout == 0
	switch {
	case late && !started:
		return timeout, routerReply(504, routeTimeoutBody)
	case late:
		return timeout, nil
	case r.Reset == ResetBeforeHead:
		return r.Delay, routerReply(503, resetBody)
	case r.Reset == ResetInBody:
		return wait, nil
	}
	content := bytes.Join(r.pieces(), nil)
	if len(content) > maxCallBody {
		return wait, nil
	}
	reply := &callReply{headers: r.header().lowered(), body: content}
	if len(r.Trailers) > 0 {
		reply.trailers = r.Trailers.lowered()
	}
	return wait, reply
}

func routerReply(code int, text string) *callReply {
	return &callReply{headers: localReply{code: code, body: text}.header(), body: []byte(text)}
}

// deliver runs the guest's callback. Header count 0 says that the call failed.
func (call *callout) deliver(r *callReply) {
	c := call.root
	if c.vm.failed() {
		return
	}
	var headers, trailers int
	if r == nil {
		c.statusCode, c.statusText = uint32(statusBroken), "reset"
		r = &callReply{}
	} else {
		c.reply = r
		headers = len(*r.headers)
		if r.trailers != nil {
			trailers = len(*r.trailers)
		}
	}
	c.vm.after = append(c.vm.after, func() {
		c.reply, c.statusText = nil, ""
		delete(c.calls, call.token)
	})
	c.vm.event(c, c.vm.fn.onHTTPCallResponse, uint64(c.id), uint64(call.token), uint64(headers), uint64(len(r.body)), uint64(trailers))
}
