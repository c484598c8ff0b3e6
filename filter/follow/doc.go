// Package follow keeps up with the control service.
//
// Every VM of the proxy has a [Follower]. One of them, best the main
// thread's, holds a lease in shared data and keeps one long poll open to
// control; the others only watch that it does. What the leader hears it
// writes into shared data, where the request side finds it: the records of the
// KV index first, a slice per call so that nobody waits for long, and then the
// state as one whole snapshot.
//
//	idle --lease taken--> due --call made--> polling --page--> writing --+
//	                       ^                    |                |       | not yet all
//	                       |                    |                |  <----+
//	                       +--- backing off <---+ failed,        |
//	                       |                      refused,       |
//	                       |                      garbage        |
//	                       +------------------ all is in --------+
//
// A held poll that is answered when something changed is a push with a simple
// failure mode: a broken one is asked again. Whatever goes wrong, the state
// that was last good stays in shared data; the values in it fade with age. A VM
// that dies in the middle of its work leaves shared data such that the next
// leader can go on: see intake. One that was only halted cannot write any more
// once another leads: see fence.
//
// Like all of the core the package makes no call itself: its methods are told
// what happened and say what to do.
package follow
