package hostsim

// gRPC callouts are not modelled: no cluster speaks gRPC, so calls fail the
// way Envoy fails a call to a cluster it does not know.

var grpcCalls = []hostFunc{
	{name: "proxy_grpc_call", signature: "iiiiiiiiiiii:i", run: refuse(statusParseFailure)},
	{name: "proxy_grpc_stream", signature: "iiiiiiiii:i", run: refuse(statusParseFailure)},
	{name: "proxy_grpc_send", signature: "iiii:i", run: refuse(statusBadArgument)},
	{name: "proxy_grpc_cancel", signature: "i:i", run: refuse(statusBadArgument)},
	{name: "proxy_grpc_close", signature: "i:i", run: refuse(statusBadArgument)},
}

func refuse(s status) func(*vm, []uint64) uint32 {
	return func(*vm, []uint64) uint32 { return uint32(s) }
}
