// Package abi binds Proxy-Wasm ABI 0.2.1 for the official Go compiler: modules
// built with GOOS=wasip1 GOARCH=wasm and -buildmode=c-shared. It knows HTTP
// filters and nothing of what they filter.
//
// A filter implements [Plugin] and [Stream], most easily by embedding
// [BasePlugin] and [BaseStream], and calls [Register] from an init function:
// in a c-shared module main never runs. The host then creates one plugin per
// configuration, one stream per HTTP exchange, and calls their methods; inside
// a method the package's functions ask the host for headers, bodies and so on.
// The whole binding exists only under wasip1. What can be wrong on any machine
// (the table of contexts, the encoding of header maps, the buffers, the status
// numbers) builds and is tested everywhere.
//
// # Who owns the bytes
//
// The host writes results into buffers that this package keeps and reuses, one
// for each kind of question: a header's value, a whole header map, a body or
// other buffer, a property, a shared value, a queue item, a foreign function's
// result, a status message. A returned slice is a view into that buffer. It is
// valid until the next question of the same kind and may be overwritten by its
// holder until then, so a shared value and a property can be looked at
// side by side while two headers cannot: for these the functions named
// Append... copy into a buffer that the caller brings. In steady state no call
// in this package allocates.
//
// What a caller hands in is read by the host before the call returns and never
// kept.
//
// # What calls cost
//
// Measured inside Envoy 1.40.0, warm, on one machine: a number asked or told (a
// clock, a metric, SetEffectiveContext) takes 0.1 microseconds, handing bytes over
// (SetShared, SetProperty, headers) 0.2. Bytes that come back take 0.7 and more,
// because the host calls our allocator for them and, around that, builds a set of
// the functions allowed meanwhile; their number hardly matters: 1 KiB 0.8, 64 KiB
// 2 for a body and 3.3 for a shared value. So: ask for all headers at once instead
// of one by one; keep a number that VMs share in a gauge, which is atomic; to see
// whether something changed, look at the cas of a shared key with an empty value,
// for which nothing is allocated. A callback costs 0.7 to 1 microseconds, mostly
// caches that the host has emptied in between.
//
// # Panics
//
// Every export recovers. A panic is counted ([Panics]), logged in one line with
// its place, and the stream passes: the callback answers Continue, a stream that
// had been paused is continued, and from then on only OnLog, OnDone and OnDelete
// of that stream are called, so that what it holds can be given back. A panic in
// OnVMStart or OnConfigure refuses the configuration. Calls for contexts that the
// host never created, or has deleted, are counted ([UnknownContexts]) and pass.
// Fatal errors of the Go runtime (out of memory, deadlock) cannot be recovered.
//
// # What the host promises
//
// The numbers and signatures are those of the specification,
// github.com/proxy-wasm/spec, abi-versions/v0.2.1. Everything runs on one
// goroutine: a callback that blocks is a deadlock, so no channel may be waited
// for and no sleep taken. While init functions run only [Log] is allowed. Calls out
// (HTTP, gRPC) are answered on the plugin, whatever context made them;
// [SetEffectiveContext] then chooses the stream that later calls concern.
// [ContinueStream], [CloseStream] and [SendLocalReply] take effect after the
// callback returns.
package abi
