package hostsim

// The numbers of Proxy-Wasm ABI 0.2.x. They are spelled here and not taken
// from a guest's binding on purpose: two spellings check each other.

type status uint32

const (
	statusOK            status = 0
	statusNotFound      status = 1
	statusBadArgument   status = 2
	statusSerialization status = 3
	statusParseFailure  status = 4
	statusInvalidMemory status = 6
	statusEmpty         status = 7
	statusCASMismatch   status = 8
	statusInternal      status = 10
	statusBroken        status = 11
	statusUnimplemented status = 12
	maxLogLevel                = 5
	maxStreamType              = 3
	maxMapType                 = 7
	maxBufferType              = 8
	maxMetricType              = 2
	streamRequest              = 0
	streamResponse             = 1
	streamDownstream           = 2
	mapRequestHeaders          = 0
	mapRequestTrailers         = 1
	mapResponseHeaders         = 2
	mapResponseTrailers        = 3
	mapCallHeaders             = 6
	mapCallTrailers            = 7
	bufferRequestBody          = 0
	bufferResponseBody         = 1
	bufferCallBody             = 4
	bufferVMConfig             = 6
	bufferPluginConfig         = 7
	bufferCallData             = 8
	metricCounter              = 0
	metricGauge                = 1
	metricHistogram            = 2
	metricTypeMask             = 3
	maxGRPCStatus              = 16
)

// Level is a log level; the numbers are the ABI's.
type Level uint32

// Log levels, least urgent first.
const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
	LevelCritical
)

// What a guest's header callback may return. The ABI names only the first two;
// the host reads on, as Envoy does.
const (
	headersContinue     = 0
	headersStop         = 1
	headersStopAllBuf   = 3
	headersStopAllWater = 4
)

// What a guest's body callback may return.
const (
	dataContinue      = 0
	dataStopAndBuffer = 1
	dataStopAndWater  = 2
	dataStopNoBuffer  = 3
)

// What a guest's trailers callback may return.
const (
	trailersContinue = 0
	trailersStop     = 1
)
