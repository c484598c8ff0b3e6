// Package collect finds out which replicas there are and how they are, and
// folds that into the next state for [github.com/warmlane/warmlane/filter/state].
//
// Sources say which addresses belong to a pool: a list ([Static]), a file that
// is watched ([File]), a DNS name ([DNS]). For each address there is one
// goroutine that asks the engine (watch.go): /metrics often, /v1/models and
// /health now and then. An answer's bytes become a [Sample] (exposition.go),
// samples in a row become a reading with rates and ratios (tracker.go). One
// goroutine owns the fold of it all (fold.go, collector.go) and hands a new
// state on when something changed.
//
// In pools with [Events] each replica also has a feed (feed.go): a goroutine that
// finds out where the engine publishes KV events and runs the followers of package
// kvevents. What they hear goes onto the pool's shelf (shelf.go, holder.go), an index
// of package blocks under a lock, and from there, as records of what changed, into the
// next generation (index.go, agenda.go). The fold's owner never waits for the lock.
// When an engine is started anew, by what its metrics or its sequence numbers say, its
// blocks are forgotten and what it has kept of its events is asked for again.
//
// What is not known stays not known: a metric that is missing is never 0. When
// a source fails, its last list stays; the engines themselves tell who is gone.
package collect
