// Package engine is a model of an LLM inference engine: what it caches, whom it
// serves when, and how long that takes. It computes no language.
//
// The engine is pure. It starts no goroutine, reads no clock and draws no dice:
// the caller hands in the time, so the same code serves HTTP in real time
// (package pace) and a policy study in virtual time:
//
//	e := engine.New(engine.Config{})
//	r := e.NewRequest(engine.Spec{Prompt: engine.Tokenize(nil, text), MaxTokens: 20})
//	if err := e.Submit(now, r); err != nil { ... }   // ErrQueueFull
//	for at, busy := e.Next(); busy; at, busy = e.Next() {
//		e.Advance(at)                            // outputs arrive through Spec.Deliver
//	}
//
// What is modelled after vLLM's V1 scheduler:
//
//   - blocks of a fixed number of tokens, named by a hash chained over parent,
//     tokens, adapter and salt; a prompt reuses the longest run of its first
//     blocks that is cached, and always recomputes its last token (cache.go);
//   - least recently used eviction that takes the deepest block of a prefix
//     first, reference counts, several copies of equal blocks (cache.go);
//   - steps with a token budget that prefill and decode share, so that a long
//     prompt is computed in chunks; running requests first, then waiting ones in
//     order of arrival; preemption when the blocks run out (schedule.go);
//   - blocks that become visible when the chunk that computed them is done, and
//     blocks filled by decoding (step.go); one batch of events for each step
//     (event.go);
//   - a limit on different adapters in one batch, and on the queue.
//
// What is not: attention cost that grows with the square of the length,
// several copies of the engine in one process, other cache tiers.
package engine
