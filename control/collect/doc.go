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
// What is not known stays not known: a metric that is missing is never 0. When
// a source fails, its last list stays; the engines themselves tell who is gone.
package collect
