// Package hostsim hosts Proxy-Wasm HTTP filters in Go tests the way Envoy does.
//
// It runs a compiled module (ABI 0.2.0 or 0.2.1, from any compiler) on wazero
// and gives it what Envoy would: a VM for each worker and one for the main
// thread, a canary that tries every configuration first, bodies in pieces,
// filters behind it that hold them, callouts, ticks, shared data, and the
// failures that only show in production. Time is virtual, nothing is random,
// and what another worker does between two host calls is a line of the test.
//
//	h, err := hostsim.New(ctx, wasm, hostsim.Options{Workers: 2, PluginConfig: config})
//	...
//	defer h.Close()
//	r, err := h.Do(hostsim.Request{Method: "POST", Path: "/v1", Body: body}, hostsim.Respond(200, "ok"))
//	// r.Status, r.Upstream.Header, h.Metrics(), h.Logs(), h.Traps(), h.Shared()
//
// # Tour
//
// A [Host] is one Envoy with one plugin. [Host.Do] plays a whole exchange with
// a scripted [Upstream]; a [Stream] is driven event by event. [Host.Advance]
// moves the clock: callout replies, ticks, wake-ups and time-outs happen then
// and in Do, never by themselves. [Host.OnCall] interrupts a worker at a host
// call to let another one run. [Host.Configure] is a configuration update.
//
// Inside, from the wire to the guest: stream.go and exchange.go take events,
// chain.go passes them through the filters by the rules of Envoy's filter
// manager, guest.go is the Wasm filter in that chain and native.go its
// neighbours, vm.go and worker.go run the guest, calls_*.go and wasi.go answer
// it. The package imports no "testing": it can be part of a tool.
//
// # What is faithful
//
// Each line was confirmed on a real Envoy 1.40.0 by the scenarios named, which
// play on both (package conformance; examples/e2e plays them on Envoy).
//
//   - header maps: reads give the first value, fields of their own slot are
//     joined, absent maps answer BAD_ARGUMENT, or OK and nothing as pairs: headers,
//     headers-replaced, response-headers
//   - request headers and attributes made of them are gone once the headers
//     callback has answered Continue: headers-after-continue
//   - on_log comes before on_done and on_delete, and what each can read: log-phase
//   - a body is offered piece by piece, its end as an empty piece or as
//     trailers: headers-no-body, body-passes, trailers
//   - trailers come into being by writing them in the last body callback:
//     trailers-added
//   - a pause on a body piece collects; set_buffer_bytes replaces a beginning or
//     appends: body-collected, body-edited, body-edited-collected, body-range,
//     response-collected, answers, answer-no-buffer
//   - a pause on headers stops the body too, unless it is allowed not to:
//     pause-headers, pause-headers-only, pause-headers-allowed,
//     pause-headers-allowed-continue, response-paused
//   - streams resumed from outside a callback: pause-middle, pause-end
//   - the buffer and header_mutation filters behind the guest: buffered,
//     buffered-trailers, buffered-absent, buffered-empty, pause-end-buffered
//   - bytes the buffer filter holds and gets again count twice in the
//     content-length it adds to a chunked request, which the upstream then waits
//     for; the guest can correct it by filter state: pause-middle-buffered,
//     pause-end-buffered-chunked, pause-trailers-buffered-chunked,
//     pause-end-no-buffer, pause-end-buffered-length
//   - what is too large: buffered-too-large, collected-too-large,
//     response-too-large, response-too-large-allowed
//   - local replies: their shape, who sees them, from ticks and callouts too, the
//     first of two wins, from a root context nothing is sent: reply-headers,
//     reply-plain, reply-empty, reply-body, reply-body-early, reply-buffered,
//     reply-tick, reply-twice, reply-response, reply-response-body,
//     reply-paused-response, reply-root, call-reply
//   - continue, close and the effective context: continue-inside, close,
//     effective
//   - streams whose client leaves: abort, abort-body, call-orphan
//   - callouts: late ones and broken ones are 504 and 503 by the router, only a
//     break in the body fails them: call, call-refused, call-late,
//     call-late-body, call-reset, call-reset-body
//   - shared data, queues, metrics, foreign functions: shared-data, queue,
//     metrics, foreign
//   - properties: names of several parts can be set and not read back:
//     properties, properties-set
//   - a dead VM: 503 for its streams under every policy, then closed, open or
//     reloaded with shared data kept: trap-closed, trap-open, trap-response,
//     trap-response-body, trap-reload
//
// From the sources of proxy-wasm-cpp-host, held by tests of this package only:
// which calls trap while a module starts or allocates, WASI and its
// differences between releases, which imports fail the load, limits of pairs, a
// root context that ends later by proxy_done, configuration updates. From
// measurements: the main thread's VM ticks and makes callouts but sees no
// stream.
//
// # What is not modelled
//
//   - routing, retries, load balancing, connections, HTTP/2 frames, access
//     logs; the upstream gets a request when it is whole
//   - headers Envoy adds on its own, except x-request-id, x-forwarded-proto and
//     what the buffer filter adds; server, date and the x-envoy ones are missing
//   - the base VM: Envoy keeps one more that has only been initialised
//   - jitter: reloads come exactly at the back-off, ticks exactly at the period;
//     queues belong to the worker with the highest number that registers in
//     on_configure, where Envoy's is any
//   - attributes beyond request, response, connection, source, destination,
//     upstream.address and the plugin's own; give others as Options.Properties
//   - gRPC callouts (they fail as if no cluster existed), network filters,
//     capability restriction, foreign functions other than clear_route_cache
//   - reading a body from outside its callback after answering 2 or 3 for it:
//     Envoy touches freed memory and may crash, here the body is empty
//   - time inside a callback: the virtual clock stands still, and a runtime that
//     waits sees a little time pass at each poll
package hostsim
