package hostsim

// What the proxy does by itself to streams that are too large or too slow.

const (
	resetBody        = "upstream connect error or disconnect/reset before headers. reset reason: connection termination"
	routeTimeoutBody = "upstream request timeout"
	idleTimeoutBody  = "stream timeout"
)

func (s *Stream) requestTooLarge() {
	s.localReply(localReply{code: 413, body: "Payload Too Large", details: "request_payload_too_large", grpc: noGRPC})
}

func (s *Stream) responseTooLarge() {
	s.localReply(localReply{code: 500, body: "Internal Server Error", details: "response_payload_too_large", grpc: noGRPC})
}

func (s *Stream) upstreamReset() {
	if s.response.headers != nil {
		s.reset("upstream_reset_after_response_started{connection_termination}")
		return
	}
	s.localReply(localReply{code: 503, body: resetBody, details: "upstream_reset_before_response_started{connection_termination}", grpc: noGRPC})
}

func (s *Stream) routeTimeout() {
	if s.response.headers != nil {
		s.reset("response_timeout")
		return
	}
	s.localReply(localReply{code: 504, body: routeTimeoutBody, details: "response_timeout", grpc: noGRPC})
}

// rearmIdle starts the idle time-out anew, at every event from either peer.
func (s *Stream) rearmIdle() {
	s.idleTimer.stop()
	if d := s.host.opts.IdleTimeout; d > 0 {
		s.idleTimer = s.host.clock.after(d, s.worker, s.idleTimeout)
	}
}

// idleTimeout blames the client while its request is incomplete.
func (s *Stream) idleTimeout() {
	if s.response.headers != nil {
		s.reset("stream_idle_timeout")
		return
	}
	code := 504
	if !s.request.sawEnd {
		code = 408
	}
	s.localReply(localReply{code: code, body: idleTimeoutBody, details: "stream_idle_timeout", grpc: noGRPC})
}
