// Command trace replays a window of a real workload through the real thing:
// Envoy with the filter in it, control, and eight simulated engines. It tells
// what each way of routing gives in time to first token and cache hits, next to
// an oracle with perfect knowledge.
//
//	make bench-trace
//	go run ./examples/bench/trace -trace conversation_trace.jsonl.gz -settings conv-mid -policies text,precise-learned -workers 4
//
// # Time
//
// The engines run in this process, faster than the clock (-speed), and the
// replay goes by their time. On a busy machine that would measure the machine,
// so engines and replay share a [pace.Clock] that stands still while a request
// is inside the router (from its sending to the head of its answer, which an
// engine sends as soon as it has queued the request) and that loses the time
// in which this process was not run. What a request waits for is what the
// engines would have made it wait for.
//
// Times are the engines' own: from a request's arrival there to its first
// token. What the router itself took is told in a column of its own, in real
// milliseconds.
//
// # Is the instrument right?
//
// Round robin of one Envoy worker needs no knowledge and no dice, so the same
// workload in pure virtual time (package lab, the same engines) must give the
// same figures. The program compares the two and fails if they are more than a
// twentieth apart.
package main
