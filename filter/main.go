// The filter is Warmlane's Wasm module: it runs inside Envoy and puts each LLM
// request into the lane where its prompt is already warm.
//
// # Rooms
//
//	filter     glue: callbacks of the host -> events, verdicts -> calls of the host
//	abi        Proxy-Wasm 0.2.1 for the official Go compiler
//	exchange   one HTTP exchange as a state machine: what it is, where it goes, how it ended
//	follow     keeping up with control: lease, long poll, spreading
//	report     the other role: saying with each answer how loaded a replica is
//	openai     what clients and engines say
//	prefix     canonical prompt bytes -> chained block hashes -> which replica was sent them
//	kvindex    token blocks -> which replica holds them
//	route      what each replica owes, what a request would cost there, which is cheapest
//	shared     what the workers of one proxy hold in common
//	state      the form of what control tells
//	json       small JSON documents
//	xxh64      the hash of prefix and kvindex
//
// Imports go downward only (imports_test.go): the glue knows exchange,
// follow and report, these know the rest, and nothing below the glue has heard of
// Proxy-Wasm. So every decision runs in plain go test.
//
// # One request
//
// The headers arrive (stream.go): exchange reads what they say and asks for
// load reports. The body arrives in chunks, each scanned once as it passes,
// none held back: the native buffer filter behind us holds the request. At its
// end exchange looks up who was sent this prompt and who holds its blocks (if a
// replica has to be asked for its tokens, the stream waits here), weighs it against what every
// replica owes, counts the request on the winner's account in shared data and
// names it in filter state, of which a native filter makes the header that
// Envoy's override_host policy obeys. The answer's head, its first token and
// its end correct the account.
//
// # One tick
//
// Each VM hands its counts to the host (meter.go), renews its seat in the
// ledgers, and asks follow whether there is a call to control to make
// (tick.go).
//
// Files that touch the ABI build only for wasip1:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o warmlane.wasm ./filter
package main

// main never runs: the module is a reactor, set up by its init functions.
func main() {}
