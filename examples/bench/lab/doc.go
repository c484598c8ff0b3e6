// Package lab measures how well a routing policy chooses, in virtual time:
// a fleet of simulated engines, a workload of prompts with shared beginnings,
// and the policy between them. It drives the real code of filter/route, so a
// change there shows here within seconds, without sockets, sleep or noise.
//
// An [Engine] is a vLLM-like replica: a block cache with LRU, a queue, chunked
// prefill that shares its steps with decoding. A [Policy] names an engine for
// each request and hears of first tokens and ends. [Run] plays a workload
// ([ReadTrace] or [Conversations]) and gives a [Result].
//
// What it leaves out: the network, the proxy's own time, quadratic attention,
// preemption, failures, and events that come late.
package lab
