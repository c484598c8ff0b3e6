// Bench measures what Warmlane costs the Envoy it runs in.
//
// Three Envoys stand side by side before the same replicas: plain, one with the native buffer filter alone, and one with
// the whole chain of examples/quickstart/envoy.yaml. A round sends the same load to each in turn, for about a second. What counts
// is the ratio to plain Envoy within a round, so what else the machine does hits both alike; of many rounds the
// median is taken, with its quartiles. Absolute times are printed for orientation only.
//
// The way through the files:
//
//   - main.go reads flags; plan.go says which rows there are and in which order they are measured
//   - contest.go fits envoy.yaml to each contestant, with tree.go, which finds a place in a document
//   - house.go starts everything: the backend, control, the Envoys
//   - backend.go stands for the replicas, as cheap as it can be: this program once more, in a process of its own
//   - prompt.go writes conversations; load.go sends them with bombardier, which is installed once, and pinned
//   - ratio.go makes ratios of samples, budget.go knows what they may be, report.go prints and saves them
//
// Processor time is that of the Envoy process, user and system, as the kernel accounts it: load generator and backend share
// the machine, but not the figure. Envoy runs with one worker (-workers), so that at eight connections it is
// the bottleneck, on two cores as well, and p50 and throughput show its cost rather than the generator's.
package main
