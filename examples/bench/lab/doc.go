// Package lab measures how well a routing policy chooses, in virtual time: a
// fleet of simulated engines, a workload of conversations, and the policy
// between them. No sockets, no sleep, no noise: a run takes seconds and gives
// the same numbers every time.
//
// The engines are those of examples/replica/engine, which also serve HTTP in
// examples/replica. Warmlane's policies are its real decision core: proxies of
// several workers, each an exchange.Worker that reads the bodies and answers a
// client and a replica would send, all workers of a proxy on one shared.Mem.
// What control does for them (events into an index of blocks, its records into
// shared data) is the real code, too.
//
// A [Workload] is what clients send. [ReadTrace] makes one of a window of a
// trace, [Conversations] makes one up. [Run] plays it under a policy named in
// [Policies] and gives a [Result].
//
// The way through the files:
//
//   - workload.go, trace.go, tree.go, conversation.go, words.go: what is sent
//   - clock.go, fleet.go, run.go, result.go: virtual time, engines, one play
//   - policy.go, blind.go, oracle.go, forecast.go: policies to compare with
//   - warmlane.go, proxy.go, answer.go, collect.go: the real core and what
//     Envoy, an engine's HTTP server and control do around it
//
// What is left out: the network and the proxy's own time, attention that grows
// with the square of the length, failures. Answers are not part of later
// prompts (a trace has no text), so no decoded block is ever used again.
package lab
