package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// Policies names what [Run] can run.
const Policies = `round-robin      each worker takes the engines in turn
least-request    the one with fewer requests in flight, of two taken by dice
work             fewest prompt tokens that wait for a first token, blind to caches
oracle:A         perfect knowledge: least time to first token + A times the own work
text             Warmlane without events: what was sent where
precise-ask      Warmlane with KV events, tokens by /tokenize before the choice
precise-learned  Warmlane with KV events, tokens known from earlier prompts`

// policy chooses an engine for each request.
type policy interface {
	// pick returns the engine's slot, -1 if it has none to give. The request is
	// sent there at once.
	pick(f *flight) int
	// head says that the answer's head came back, before its first token.
	head(f *flight)
	// first says that the first token came.
	first(f *flight)
	// done says that the answer is complete.
	done(f *flight)
}

func newPolicy(name string, p *play) (policy, error) {
	kind, argument, given := strings.Cut(name, ":")
	if given != (kind == "oracle") {
		return nil, fmt.Errorf("policy %q: want one of\n%s", name, Policies)
	}
	switch kind {
	case "round-robin":
		return newRoundRobin(p), nil
	case "least-request":
		return newLeastRequest(p), nil
	case "work":
		return newLeastWork(p), nil
	case "oracle":
		extra, err := strconv.ParseFloat(argument, 64)
		if err != nil || !(extra >= 0) {
			return nil, fmt.Errorf("policy %q: want oracle:A with a number A from 0", name)
		}
		return &oracle{fleet: p.fleet, extra: extra}, nil
	case "text", "precise-ask", "precise-learned":
		return newWarmlane(kind, p)
	}
	return nil, fmt.Errorf("policy %q: want one of\n%s", name, Policies)
}

// deaf is a policy's ear that hears nothing.
type deaf struct{}

func (deaf) head(*flight)  {}
func (deaf) first(*flight) {}
func (deaf) done(*flight)  {}
