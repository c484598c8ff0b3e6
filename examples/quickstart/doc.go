// Quickstart puts Warmlane in front of a list of OpenAI-style replicas with one command: it starts control and a real
// Envoy with the Wasm filter, and prints a line when requests flow.
//
//	quickstart -listen 127.0.0.1:8080 -replicas 127.0.0.1:8001,127.0.0.1:8002
//
// The way through the files:
//
//   - envoy.yaml is the whole Envoy configuration. It is there to be copied by those who run Envoy themselves
//   - flags.go, address.go, roster.go and settings.go say what is wanted: the command line, addresses, the list of replicas,
//     and the file with further configuration
//   - bootstrap.go fits envoy.yaml to this run, with tree.go, which finds a place in a document. Two parts of it become files
//     that Envoy watches (resources.go): the replicas, and the filter with its configuration. So both change without a restart
//   - control.go runs control, and again if it dies
//   - house.go holds the parts together: start, watch, stop; ready.go decides when requests flow
//
// With -round-robin there is neither filter nor control, only Envoy and its round robin, to compare with.
package main
