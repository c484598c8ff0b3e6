//go:build wasip1

package abi

// GRPCCall makes a unary call; the plugin's methods of GRPCPlugin are told of its
// course. upstream is a cluster's name or an encoded envoy.config.core.v3.GrpcService;
// message is the encoded request without gRPC's frame.
func GRPCCall(upstream, service, method string, metadata *Encoder, message []byte, timeoutMillis uint32) (call uint32, err error) {
	pairs, err := metadata.Bytes()
	if err != nil {
		return 0, err
	}
	err = check(hostGRPCCall(upstream, service, method, start(pairs), length(pairs),
		start(message), length(message), timeoutMillis, &result.word))
	return result.word, err
}

// GRPCStream opens a bidirectional stream. It has no timeout.
func GRPCStream(upstream, service, method string, metadata *Encoder) (stream uint32, err error) {
	pairs, err := metadata.Bytes()
	if err != nil {
		return 0, err
	}
	err = check(hostGRPCStream(upstream, service, method, start(pairs), length(pairs), &result.word))
	return result.word, err
}

// GRPCSend sends a message on a stream; end closes our half of it.
func GRPCSend(stream uint32, message []byte, end bool) error {
	return check(hostGRPCSend(stream, start(message), length(message), flag(end)))
}

// GRPCCancel resets a call or a stream.
func GRPCCancel(call uint32) error { return check(hostGRPCCancel(call)) }

// GRPCClose closes our half of a call or a stream.
func GRPCClose(call uint32) error { return check(hostGRPCClose(call)) }
