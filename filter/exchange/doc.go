// Package exchange is one HTTP exchange as a state machine: events in,
// verdicts out. It introduces the packages below it to each other and carries
// plain values between them; it does nothing itself, so a script of events and
// verdicts tests it whole (testdata/transcripts, played natively, in hostsim
// and on Envoy).
//
//	         headers: not an LLM request, or no body
//	idle ------------------------------------------------> passing
//	  | headers                                               |
//	  v                                                       |
//	reading --- body ---> reading                             |
//	  | end: decided, or answered by the filter               |
//	  v                                                       |
//	sent --- response headers ---> answering                  |
//	  |                               | end                   |
//	  |                               v                       v
//	  +-------- Settle, on every way out, once --------> settled
//
// An event that does not fit its phase does nothing: the host's order of
// calls is not ours to trust.
//
// A [Worker] is what one VM keeps between exchanges: the configuration, a
// router for each pool, the text index, the counts.
package exchange
