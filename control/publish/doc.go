// Package publish hands the state out: to filters by long poll (/v1/state, in
// the form of package state), to people as JSON (/v1/pools), to Prometheus.
//
// The [Hub] numbers the states it is given, keeps the last ones and wakes those
// who wait. An answer depends only on the state the asker holds and the pools
// it wants, so it is encoded once and shared by all who ask the same.
package publish
