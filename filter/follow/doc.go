// Package follow keeps up with the control service.
//
// Every VM of the proxy has a [Follower]. One of them, best the main
// thread's, holds a lease in shared data and keeps one long poll open to
// control; the others only watch that it does. What the leader hears it
// writes into shared data as one whole snapshot, where the request side finds
// it.
//
//	idle  --lease taken-->  due  --call made-->  polling  --answer-->  due
//	                         ^                      |
//	                         +--- backing off <-----+ failed, refused, garbage
//
// A held poll that is answered when something changed is a push with a simple
// failure mode: a broken one is asked again. Whatever goes wrong, the state
// that was last good stays in shared data; the values in it fade with age.
//
// Like all of the core the package makes no call itself: its methods are told
// what happened and say what to do.
package follow
