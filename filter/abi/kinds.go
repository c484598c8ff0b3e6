package abi

// MapType names a header map of the current context.
type MapType uint32

// The header maps of an HTTP exchange and of calls made by the plugin.
const (
	RequestHeaders       MapType = 0
	RequestTrailers      MapType = 1
	ResponseHeaders      MapType = 2
	ResponseTrailers     MapType = 3
	GRPCInitialMetadata  MapType = 4 // in OnGRPCInitialMetadata
	GRPCTrailingMetadata MapType = 5 // in OnGRPCTrailingMetadata
	CallHeaders          MapType = 6 // in OnHTTPCallResponse
	CallTrailers         MapType = 7 // in OnHTTPCallResponse
)

// BufferType names a buffer of the current context.
type BufferType uint32

// The buffers an HTTP filter can read. Those of connections (2, 3) are left out.
const (
	RequestBody         BufferType = 0
	ResponseBody        BufferType = 1
	CallBody            BufferType = 4 // in OnHTTPCallResponse
	GRPCMessage         BufferType = 5 // in OnGRPCMessage
	VMConfiguration     BufferType = 6 // in OnVMStart
	PluginConfiguration BufferType = 7 // in OnConfigure
	ForeignArguments    BufferType = 8 // in OnForeignFunction
)

// StreamType names one direction of an HTTP exchange.
type StreamType uint32

// The two directions of an exchange.
const (
	RequestStream  StreamType = 0
	ResponseStream StreamType = 1
)

// MetricType is the kind of a metric.
type MetricType uint32

// The kinds of metrics. All values are integers.
const (
	Counter   MetricType = 0 // only grows: the host refuses increments below 1
	Gauge     MetricType = 1
	Histogram MetricType = 2 // can be recorded, not read
)

// LogLevel orders log lines by weight.
type LogLevel uint32

// The levels, lightest first.
const (
	LogTrace    LogLevel = 0
	LogDebug    LogLevel = 1
	LogInfo     LogLevel = 2
	LogWarn     LogLevel = 3
	LogError    LogLevel = 4
	LogCritical LogLevel = 5
)
