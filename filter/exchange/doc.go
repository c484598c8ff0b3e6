// Package exchange is one HTTP exchange as a state machine: events in,
// verdicts out. It introduces the packages below it to each other and carries
// plain values between them; it does nothing itself, so a script of events and
// verdicts tests it whole (testdata/transcripts, played natively, in hostsim
// and on Envoy).
//
//	         headers: not an LLM request, or no body
//	idle ------------------------------------------------> passing
//	  | headers                                               |
//	  v             end: a replica is asked for the tokens    |
//	reading ----------------------------------> asking        |
//	  | end: decided, or answered by the filter    |          |
//	  v                                            |          |
//	sent <--------------- Tokenized ---------------+          |
//	  |                                                       |
//	  | response headers                                      |
//	  v             end                                       v
//	answering -------------------------------------------> settled
//
// and Settle leads to settled from everywhere, once. An event that does not fit
// its phase does nothing: the host's order of calls is not ours to trust.
//
// A [Worker] is what one VM keeps between exchanges: the configuration, a
// router for each pool, the text index, the counts.
//
// # Two tiers
//
// Tier 1 goes by what was sent where (package prefix). Tier 2, in pools whose
// replicas publish KV events, goes by what the engines say they hold (package
// kvindex), which is told in blocks of tokens. So the question is where a
// prompt's tokens come from (knowledge.go):
//
//   - the request has them (a prompt of token ids);
//   - a replica is asked, while the request is held (ask.go);
//   - an earlier prompt had the same beginning (recall.go). Each request carries a
//     tag that its engine hands on with its events, so what blocks an engine
//     made of a text becomes known without asking. What no tag tells is learned
//     by a call once the request has left (learn.go).
//
// Where none of them helps tier 1 decides, and a fallback is counted. Where the
// index cannot know yet, or is known to have gaps, the text tier's word is taken
// as well (precise.go). Afterwards the engine says how much was cached, and a
// replica whose index claims too much is believed less (trust.go).
package exchange
