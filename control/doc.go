// Command control watches the replicas of LLM engines and tells Warmlane's
// filters how they are.
//
//	control -config FILE          serve; prints "ready http://ADDR" once the first state is known
//	control -config FILE -check   say whether the configuration is right, and end
//
// A tour: config.go reads the configuration, with tree.go, which refuses what
// it does not know by the path of the key. service.go puts the parts together:
// package collect finds the replicas, asks them and folds what they say into
// states, and follows the KV events of those that publish any, to know what they
// have cached; package publish numbers the states and hands them out. It holds
// nothing on disk: another instance with the same configuration arrives at the
// same state by itself, and a filter may change from one to the other at any
// time.
//
// On SIGTERM or an interrupt the polls that wait are answered, connections
// closed, and the program ends with status 0.
package main
