// Package proc runs the programs that the examples and the end-to-end tests put together: Envoy, control, simulated
// replicas, the quickstart itself.
//
// Two things matter to all of them. A program tells when it is ready: it prints a line "ready ..." on standard output.
// And nothing may stay behind: each program gets a process group of its own, which is ended as a whole, and on Linux it
// is killed when its parent dies in whatever way.
package proc
