// Package report is the other end of the load reports that package route
// reads: in the proxy beside a replica it says with every answer how loaded the
// engine is.
//
//	router's proxy  --x-warmlane-work: prompt=812, uncached=172-->  this proxy  -->  engine
//	                <--endpoint-load-metrics: TEXT ...-----------               <--
//
// # What is said
//
// Two kinds of knowledge go into a report. What is counted here, over all
// workers of the proxy and all clients of the engine: requests in flight and
// prompt tokens still owed. The ledger is package route's own, with a pool of
// one replica, so time, first tokens and dead workers count as they do there.
// And what the engine says of itself: one VM of the proxy holds a lease,
// reads the engine's metrics text every interval ([Reporter.Tick]) and leaves
// what it says in shared data. That fades: after [freshFor] intervals without
// an answer it is left out of the reports, and the counts stay.
//
// # Streams
//
// Whether a request asks for a stream stands in its body, which is not read
// here. So all begin as requests whose tokens run off by the clock; the
// answer's head, which an engine sends for a stream long before the first
// token, turns it into one that is owed until then.
//
// Nothing here holds or changes a body. Like all of the core the package makes
// no call itself: its methods are told what happened and say what to do.
//
// # Reading order
//
// scanner.go (the metrics text), tracker.go (what texts in a row say),
// sample.go (what workers share), reporter.go (one VM), exchange.go (one
// request).
package report
