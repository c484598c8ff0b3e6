// Package conformance holds what a Proxy-Wasm host is asked to prove that it
// behaves like Envoy. The [Scenarios] are played against a real Envoy by the
// end-to-end tests, which record what happened in golden files, and against
// hostsim by its own tests, which must see the same.
//
// The guest is testdata/guest/conform in hostsim: it does what the header
// x-script says and writes down every callback and every answer. A golden file
// holds that trace and what client and upstream got.
package conformance
