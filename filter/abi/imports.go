//go:build wasip1

package abi

import "unsafe"

// The host's functions. Data goes out as an address and a length, or as a
// string, which the compiler passes the same way. Results come back through
// addresses in static memory: a goroutine's stack may move while the host calls
// our allocator, so nothing that the host writes to may live there.
//
// The linker keeps only the imports that a module reaches, so a host that lacks
// some of them (old ones, test hosts) runs any filter that does not use those.

//go:wasmimport env proxy_log
//go:noescape
func hostLog(level uint32, message string) uint32

//go:wasmimport env proxy_get_log_level
//go:noescape
func hostGetLogLevel(level *uint32) uint32

//go:wasmimport wasi_snapshot_preview1 clock_time_get
//go:noescape
func wasiClockTimeGet(clock uint32, precision uint64, nanos *uint64) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func hostSetTickPeriod(millis uint32) uint32

//go:wasmimport env proxy_done
func hostDone() uint32

//go:wasmimport env proxy_set_effective_context
func hostSetEffectiveContext(id uint32) uint32

//go:wasmimport env proxy_continue_stream
func hostContinueStream(stream uint32) uint32

//go:wasmimport env proxy_close_stream
func hostCloseStream(stream uint32) uint32

//go:wasmimport env proxy_get_status
//go:noescape
func hostGetStatus(code *uint32, data, size *uint32) uint32

//go:wasmimport env proxy_send_local_response
//go:noescape
func hostSendLocalResponse(code uint32, details string, body unsafe.Pointer, bodySize uint32,
	headers unsafe.Pointer, headersSize uint32, grpcStatus int32) uint32

//go:wasmimport env proxy_get_buffer_bytes
//go:noescape
func hostGetBuffer(buffer, start, size uint32, data, dataSize *uint32) uint32

//go:wasmimport env proxy_get_buffer_status
//go:noescape
func hostGetBufferStatus(buffer uint32, size, flags *uint32) uint32

//go:wasmimport env proxy_set_buffer_bytes
//go:noescape
func hostSetBuffer(buffer, start, size uint32, data unsafe.Pointer, dataSize uint32) uint32

//go:wasmimport env proxy_get_header_map_size
//go:noescape
func hostGetHeaderMapSize(m uint32, size *uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
//go:noescape
func hostGetHeaderMap(m uint32, data, size *uint32) uint32

//go:wasmimport env proxy_set_header_map_pairs
//go:noescape
func hostSetHeaderMap(m uint32, pairs unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_header_map_value
//go:noescape
func hostGetHeader(m uint32, name string, data, size *uint32) uint32

//go:wasmimport env proxy_add_header_map_value
//go:noescape
func hostAddHeader(m uint32, name string, value unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
//go:noescape
func hostReplaceHeader(m uint32, name string, value unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
//go:noescape
func hostRemoveHeader(m uint32, name string) uint32

//go:wasmimport env proxy_get_property
//go:noescape
func hostGetProperty(path string, data, size *uint32) uint32

//go:wasmimport env proxy_set_property
//go:noescape
func hostSetProperty(path string, value unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_shared_data
//go:noescape
func hostGetShared(key unsafe.Pointer, keySize uint32, data, size, cas *uint32) uint32

//go:wasmimport env proxy_set_shared_data
//go:noescape
func hostSetShared(key unsafe.Pointer, keySize uint32, value unsafe.Pointer, size, cas uint32) uint32

//go:wasmimport env proxy_register_shared_queue
//go:noescape
func hostRegisterQueue(name string, id *uint32) uint32

//go:wasmimport env proxy_resolve_shared_queue
//go:noescape
func hostResolveQueue(vmID, name string, id *uint32) uint32

//go:wasmimport env proxy_enqueue_shared_queue
//go:noescape
func hostEnqueue(id uint32, item unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_dequeue_shared_queue
//go:noescape
func hostDequeue(id uint32, data, size *uint32) uint32

//go:wasmimport env proxy_define_metric
//go:noescape
func hostDefineMetric(kind uint32, name string, id *uint32) uint32

//go:wasmimport env proxy_increment_metric
func hostIncrementMetric(id uint32, delta int64) uint32

//go:wasmimport env proxy_record_metric
func hostRecordMetric(id uint32, value uint64) uint32

//go:wasmimport env proxy_get_metric
//go:noescape
func hostGetMetric(id uint32, value *uint64) uint32

//go:wasmimport env proxy_http_call
//go:noescape
func hostHTTPCall(upstream string, headers unsafe.Pointer, headersSize uint32, body unsafe.Pointer, bodySize uint32,
	trailers unsafe.Pointer, trailersSize uint32, timeoutMillis uint32, call *uint32) uint32

//go:wasmimport env proxy_grpc_call
//go:noescape
func hostGRPCCall(upstream, service, method string, metadata unsafe.Pointer, metadataSize uint32,
	message unsafe.Pointer, messageSize uint32, timeoutMillis uint32, call *uint32) uint32

//go:wasmimport env proxy_grpc_stream
//go:noescape
func hostGRPCStream(upstream, service, method string, metadata unsafe.Pointer, metadataSize uint32, stream *uint32) uint32

//go:wasmimport env proxy_grpc_send
//go:noescape
func hostGRPCSend(stream uint32, message unsafe.Pointer, size, end uint32) uint32

//go:wasmimport env proxy_grpc_cancel
func hostGRPCCancel(call uint32) uint32

//go:wasmimport env proxy_grpc_close
func hostGRPCClose(call uint32) uint32

//go:wasmimport env proxy_call_foreign_function
//go:noescape
func hostCallForeign(name string, arguments unsafe.Pointer, argumentsSize uint32, data, size *uint32) uint32
