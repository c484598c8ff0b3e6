package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// Plugin is one configured instance of the filter in one VM: what the ABI calls
// a root context. Embed BasePlugin for the methods that are not needed.
type Plugin interface {
	// OnVMStart is called before OnConfigure; the VM's configuration has size
	// bytes (Buffer of VMConfiguration). False refuses to start.
	OnVMStart(size int) bool
	// OnConfigure is called with the size of the plugin's configuration (Buffer
	// of PluginConfiguration). False refuses it. It also runs in a VM that the
	// host throws away right after, so it must have no lasting effect outside.
	OnConfigure(size int) bool
	// NewStream gives the object for a new HTTP exchange. It may be one that
	// served an earlier exchange whose OnDelete has returned. Nil lets the
	// exchange pass unseen.
	NewStream(id uint32) Stream
	// OnTick is called every period set with SetTickPeriod.
	OnTick()
	// OnHTTPCallResponse ends a call made with HTTPCall. headers 0 means that it
	// failed. CallHeaders, CallBody and CallTrailers can be read.
	OnHTTPCallResponse(call uint32, headers, bodySize, trailers int)
	// OnQueueReady says that a queue registered by this plugin has an item.
	OnQueueReady(queue uint32)
	// OnForeignFunction is a call by the host; ForeignArguments has size bytes.
	OnForeignFunction(function uint32, size int)
	// OnDone asks whether the plugin may be deleted. After false it lives on
	// until it calls Done.
	OnDone() bool
	// OnDelete is the last call.
	OnDelete()
}

// GRPCPlugin is a Plugin that makes gRPC calls. The host may name calls whose
// start it reported as failed: unknown ids are to be ignored.
type GRPCPlugin interface {
	Plugin
	// OnGRPCInitialMetadata brings the GRPCInitialMetadata map.
	OnGRPCInitialMetadata(call uint32, elements int)
	// OnGRPCMessage brings a message of size bytes in the GRPCMessage buffer.
	OnGRPCMessage(call uint32, size int)
	// OnGRPCTrailingMetadata brings the GRPCTrailingMetadata map.
	OnGRPCTrailingMetadata(call uint32, elements int)
	// OnGRPCClose ends the call with a gRPC status; see LastStatus.
	OnGRPCClose(call uint32, status uint32)
}

// Stream is one HTTP exchange. Embed BaseStream for the methods that are not
// needed. end tells that nothing follows in this direction; with trailers no
// body call has it set, and the trailers are the end.
type Stream interface {
	OnRequestHeaders(count int, end bool) types.Action
	// OnRequestBody is told the size of the RequestBody buffer: the new chunk,
	// after a pause everything that was held since.
	OnRequestBody(size int, end bool) types.Action
	OnRequestTrailers(count int) types.Action
	OnResponseHeaders(count int, end bool) types.Action
	OnResponseBody(size int, end bool) types.Action
	OnResponseTrailers(count int) types.Action
	// OnLog is called once, when the exchange is over and the access log is
	// about to be written; request and response headers can be read, and what is
	// set with SetProperty still reaches the log (in OnDone it does not).
	OnLog()
	// OnDone asks whether the stream may be deleted. After false it lives on
	// until it calls Done under its own context.
	OnDone() bool
	// OnDelete is the last call, on every way out. After it the object is free.
	OnDelete()
}

// BasePlugin implements every method of Plugin but NewStream by doing nothing
// and consenting.
type BasePlugin struct{}

// OnVMStart implements Plugin.
func (BasePlugin) OnVMStart(int) bool { return true }

// OnConfigure implements Plugin.
func (BasePlugin) OnConfigure(int) bool { return true }

// OnTick implements Plugin.
func (BasePlugin) OnTick() {}

// OnHTTPCallResponse implements Plugin.
func (BasePlugin) OnHTTPCallResponse(uint32, int, int, int) {}

// OnQueueReady implements Plugin.
func (BasePlugin) OnQueueReady(uint32) {}

// OnForeignFunction implements Plugin.
func (BasePlugin) OnForeignFunction(uint32, int) {}

// OnDone implements Plugin.
func (BasePlugin) OnDone() bool { return true }

// OnDelete implements Plugin.
func (BasePlugin) OnDelete() {}

// BaseStream implements Stream by letting everything pass.
type BaseStream struct{}

// OnRequestHeaders implements Stream.
func (BaseStream) OnRequestHeaders(int, bool) types.Action { return types.ActionContinue }

// OnRequestBody implements Stream.
func (BaseStream) OnRequestBody(int, bool) types.Action { return types.ActionContinue }

// OnRequestTrailers implements Stream.
func (BaseStream) OnRequestTrailers(int) types.Action { return types.ActionContinue }

// OnResponseHeaders implements Stream.
func (BaseStream) OnResponseHeaders(int, bool) types.Action { return types.ActionContinue }

// OnResponseBody implements Stream.
func (BaseStream) OnResponseBody(int, bool) types.Action { return types.ActionContinue }

// OnResponseTrailers implements Stream.
func (BaseStream) OnResponseTrailers(int) types.Action { return types.ActionContinue }

// OnLog implements Stream.
func (BaseStream) OnLog() {}

// OnDone implements Stream.
func (BaseStream) OnDone() bool { return true }

// OnDelete implements Stream.
func (BaseStream) OnDelete() {}
