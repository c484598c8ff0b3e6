// Package route chooses the replica for a request. It is given what is
// believed about each candidate and returns a choice with every term of its
// cost; it asks nobody but the shared data of its proxy.
//
// # One cost, in seconds
//
//	cost(r) = (owed(r) + (1 + a) * uncached(r)) / rate(r) + b * in_flight(r) + foreign(r)
//
// The smallest wins, ties go by dice. uncached are the prompt tokens that are
// not resident on r; owed are the tokens r still has to prefill for others
// ([backlog]); rate is learned from first tokens, erring low; foreign is what
// r does for clients that are not ours, as reported or pushed, fading with
// age. a is what the request costs those behind it, b evens out decoding.
//
// # One ledger
//
// With independent books four workers double the time to first token, so each
// pool has one ledger in shared data that all workers of a proxy read and
// write by compare-and-set before a choice is final ([page] has its bytes).
// Facts about a replica (rate, clock, last first token, load, failures) lie in
// one record per slot. What a worker itself has in flight lies in that worker's
// seat. A worker keeps the truth about its own requests in its own memory and
// only publishes it in the seat, whole, with each write; totals are the sum
// over the seats. So nothing is ever subtracted twice or lost: a write that
// fails is made good by the next one, a worker that dies loses its seat when
// the lease runs out and its share of the totals with it, and one that was
// only late takes another seat and publishes again.
//
// A read costs five times a write, as the host copies the value into the
// worker. So a worker that nobody disturbs goes on with the page as it wrote it,
// under the number that write must have been given ([number]); another's write
// in between makes its own fail, and then it reads.
//
// # Ladder of knowledge
//
// A prompt some candidate has seen is placed by the cost. A prompt nobody has
// seen, on replicas whose costs are the same within noise, goes by rendezvous
// hash, which all proxies compute alike, so cold proxies agree. With no
// candidate at all there is no choice, and Envoy's own balancer takes over.
//
// # Reading order
//
// table.go (what control pushed), page.go, record.go, ledger.go, seats.go and
// number.go (what workers share), backlog.go (time arithmetic), filter.go,
// cost.go and pick.go (the decision), ticket.go (one request from choice to
// settlement), load.go and orca.go (what replicas say of themselves), work.go
// (what they are told).
package route
