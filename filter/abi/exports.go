//go:build wasip1

//lint:file-ignore U1000 the host calls these

package abi

// The functions the host calls. Each hands on to live, which recovers; there is
// no code here that could fail. The host calls every export that exists for each
// stream, so those of connections (proxy_on_downstream_data and so on) are left
// out. The exports are unexported in Go: only the host may call them.

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_context_create
func onContextCreate(id, parent uint32) { live.contextCreate(id, parent) }

//go:wasmexport proxy_on_vm_start
func onVMStart(id, size uint32) uint32 { return live.vmStart(id, size) }

//go:wasmexport proxy_on_configure
func onConfigure(id, size uint32) uint32 { return live.configure(id, size) }

//go:wasmexport proxy_on_done
func onDone(id uint32) uint32 { return live.stream(done, id, 0, 0) }

//go:wasmexport proxy_on_log
func onLog(id uint32) { live.stream(logged, id, 0, 0) }

//go:wasmexport proxy_on_delete
func onDelete(id uint32) { live.stream(deleted, id, 0, 0) }

//go:wasmexport proxy_on_tick
func onTick(id uint32) { live.tick(id) }

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(id, count, end uint32) uint32 {
	return live.stream(requestHeaders, id, count, end)
}

//go:wasmexport proxy_on_request_body
func onRequestBody(id, size, end uint32) uint32 { return live.stream(requestBody, id, size, end) }

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(id, count uint32) uint32 { return live.stream(requestTrailers, id, count, 0) }

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(id, count, end uint32) uint32 {
	return live.stream(responseHeaders, id, count, end)
}

//go:wasmexport proxy_on_response_body
func onResponseBody(id, size, end uint32) uint32 { return live.stream(responseBody, id, size, end) }

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(id, count uint32) uint32 { return live.stream(responseTrailers, id, count, 0) }

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(id, call, headers, size, trailers uint32) {
	live.httpCallResponse(id, call, headers, size, trailers)
}

//go:wasmexport proxy_on_grpc_receive_initial_metadata
func onGRPCReceiveInitialMetadata(id, call, elements uint32) {
	live.grpcInitialMetadata(id, call, elements)
}

//go:wasmexport proxy_on_grpc_receive
func onGRPCReceive(id, call, size uint32) { live.grpcMessage(id, call, size) }

//go:wasmexport proxy_on_grpc_receive_trailing_metadata
func onGRPCReceiveTrailingMetadata(id, call, elements uint32) {
	live.grpcTrailingMetadata(id, call, elements)
}

//go:wasmexport proxy_on_grpc_close
func onGRPCClose(id, call, status uint32) { live.grpcClose(id, call, status) }

//go:wasmexport proxy_on_queue_ready
func onQueueReady(id, queue uint32) { live.queueReady(id, queue) }

//go:wasmexport proxy_on_foreign_function
func onForeignFunction(id, function, size uint32) { live.foreignFunction(id, function, size) }
