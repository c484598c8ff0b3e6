// Demo shows what routing by prefix is worth, on one machine and in about a minute. It plays the same conversations twice on four
// simulated replicas behind a real Envoy: first with plain round robin, then with Warmlane, each time with fresh replicas. It
// ends with a table, and leaves nothing running.
//
//	make demo
//
// The way through the files:
//
//   - stage.go says how large replicas and conversations are, and why
//   - fleet.go starts and stops replicas and quickstart
//   - round.go plays the conversations once and gathers the figures
//   - gauges.go reads from Envoy who got how much, and which branches the filter took
//   - story.go follows one conversation and tells where each of its requests went, and why
//   - table.go prints the comparison and writes build/demo.json
package main
