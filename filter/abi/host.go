//go:build wasip1

package abi

func init() {
	live.log = func(line string) { Log(LogCritical, line) }
	live.resume = func(id uint32, direction StreamType) {
		if hostSetEffectiveContext(id) == 0 {
			hostContinueStream(uint32(direction))
		}
	}
}

// Log writes a line to the host's log.
func Log(level LogLevel, line string) { hostLog(uint32(level), line) }

// CurrentLogLevel is the lightest level that the host writes.
func CurrentLogLevel() (LogLevel, error) {
	result.word = uint32(LogInfo)
	err := check(hostGetLogLevel(&result.word))
	return LogLevel(result.word), err
}

// Now is the wall clock in nanoseconds since 1970. WASI's clock and the ABI's own
// proxy_get_current_time_nanoseconds cost and tell the same; test hosts often have
// only the first, so the second is the one function of the ABI left unbound.
func Now() int64 {
	wasiClockTimeGet(0, 1, &result.wide)
	return int64(result.wide)
}

// Monotonic is a clock in nanoseconds that never goes back, from an unknown
// start that all VMs of the process share.
func Monotonic() int64 {
	wasiClockTimeGet(1, 1, &result.wide)
	return int64(result.wide)
}

// SetTickPeriod makes the host call OnTick about every so many milliseconds;
// 0 stops it. Each VM has its own timer.
func SetTickPeriod(millis uint32) error { return check(hostSetTickPeriod(millis)) }

// SetEffectiveContext makes the calls that follow in this callback concern the
// context id: a stream, from within a tick or an answered call. It gives
// types.ErrorStatusBadArgument if that stream is gone; later calls would then
// silently concern the plugin, so the caller must stop.
func SetEffectiveContext(id uint32) error {
	err := check(hostSetEffectiveContext(id))
	if err == nil {
		live.effective = id
	}
	return err
}

// ContinueStream lets a paused direction of the stream in work go on, once the
// callback has returned. Read what is needed of its headers and body before.
func ContinueStream(s StreamType) error {
	live.resumed(s)
	return check(hostContinueStream(uint32(s)))
}

// CloseStream resets the stream in work.
func CloseStream(s StreamType) error {
	live.resumed(RequestStream)
	live.resumed(ResponseStream)
	return check(hostCloseStream(uint32(s)))
}

// Done tells that the context in work, whose OnDone had answered false, may be
// deleted.
func Done() error { return check(hostDone()) }

// LastStatus is the code and message of the last gRPC call that ended, to be
// read in OnGRPCClose. The message is valid until the next call of LastStatus.
func LastStatus() (code uint32, message []byte, err error) {
	statusBuffer.expect()
	result.word = 0
	message, err = statusBuffer.fetch(hostGetStatus(&result.word, &result.data, &result.size))
	return result.word, message, err
}

// NoGRPCStatus as grpcStatus of SendLocalReply sends an ordinary HTTP reply.
const NoGRPCStatus int32 = -1

// SendLocalReply answers the exchange in work with a reply of the filter's own;
// details go to the access log as response code details. The callback's answer is
// then ignored, and the same stream sees OnResponseHeaders for this reply. With
// no stream in work the host reports success and does nothing.
func SendLocalReply(code uint32, details string, headers *Encoder, body []byte, grpcStatus int32) error {
	pairs, err := headers.Bytes()
	if err != nil {
		return err
	}
	live.resumed(RequestStream)
	live.resumed(ResponseStream)
	return check(hostSendLocalResponse(code, details, start(body), length(body), start(pairs), length(pairs), grpcStatus))
}
