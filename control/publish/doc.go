// Package publish hands the state out: to filters by long poll (/v1/state, in
// the form of package state), to people as JSON (/v1/pools), to Prometheus.
//
// The [Hub] numbers the states it is given, keeps the last ones and wakes those
// who wait. An answer depends only on the state the asker holds and the pools
// it wants, so it is encoded once and shared by all who ask the same.
//
// With the states go the records of the KV index. Of these the hub has only
// what they say now, and for each state that it keeps the names of those that
// it changed: an asker who is behind gets what they say now, once, however
// often they changed. A large whole serves for some time; who got an older one
// is given the rest as a delta.
package publish
