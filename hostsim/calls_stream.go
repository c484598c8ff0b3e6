package hostsim

// Host calls that steer a stream. All of them take effect when the callback
// has returned.

var streamCalls = []hostFunc{
	{name: "proxy_continue_stream", signature: "i:i", run: callContinue},
	{name: "proxy_close_stream", signature: "i:i", run: callClose},
	{name: "proxy_send_local_response", signature: "iiiiiiii:i", run: callLocalResponse},
}

// callContinue resumes one direction of the stream in effect. From then on
// the guest has no request headers, body or trailers any more, whichever
// direction it was: Envoy drops all three.
func callContinue(v *vm, a []uint64) uint32 {
	g := v.context().http
	switch a[0] {
	case streamRequest, streamResponse:
	case streamDownstream:
		return uint32(statusOK)
	case maxStreamType:
		return uint32(statusUnimplemented)
	default:
		return uint32(statusBadArgument)
	}
	if g == nil {
		return uint32(statusOK)
	}
	f := g.stream.request
	if a[0] == streamResponse {
		f = g.stream.response
	}
	v.after = append(v.after, func() { f.resumeAt(guestSlot) })
	g.reqHeaders, g.reqBody, g.reqTrailers = nil, nil, nil
	return uint32(statusOK)
}

func callClose(v *vm, a []uint64) uint32 {
	if a[0] > maxStreamType {
		return uint32(statusBadArgument)
	}
	if g := v.context().http; g != nil && a[0] <= streamResponse {
		s := g.stream
		v.after = append(v.after, func() { s.reset("wasm_close_stream") })
	}
	return uint32(statusOK)
}

// callLocalResponse answers OK even from a root context, where nothing is
// sent. Pairs that cannot be read are no headers.
func callLocalResponse(v *vm, a []uint64) uint32 {
	details, ok1 := v.readString(a[1], a[2])
	text, ok2 := v.readString(a[3], a[4])
	pairs, ok3 := v.read(a[5], a[6])
	if !ok1 || !ok2 || !ok3 {
		return uint32(statusInvalidMemory)
	}
	reply := localReply{code: int(uint32(a[0])), body: text, headers: decodePairs(pairs), details: details, grpc: uint32(a[7])}
	if g := v.context().http; g != nil {
		v.after = append(v.after, func() { g.stream.localReply(reply) })
	}
	v.stopped = true
	return uint32(statusOK)
}
