// Package shared is what the workers of one proxy hold in common.
//
// Envoy gives every worker thread its own Wasm VM and its own memory. The one
// thing they share is the host's key-value store, reached through [Store]. A
// read copies the value twice and costs about a microsecond; there is no
// removal and no listing, so every key comes from the fixed catalogue in
// keys.go and the total size is bounded by design.
//
// [Update] is the compare-and-set loop all writers use. [Mem] is the store in
// memory for tests, and [Conform] the rules both it and the real host keep.
package shared
