package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// Policies names what [Run] can run.
const Policies = `rr             round robin
work           fewest owed prompt tokens, blind to caches
oracle:A       perfect knowledge, own time to first token + A times the own work
warmlane[:P[:report]]
               the real filter/route: P proxies (1) of 4 workers each, with or
               without load reports from the engines`

func newPolicy(name string, engines []*Engine, seed uint64) (Policy, error) {
	kind, args, _ := strings.Cut(name, ":")
	switch kind {
	case "rr":
		return &roundRobin{fleet: len(engines)}, nil
	case "work":
		return newWork(len(engines)), nil
	case "oracle":
		extra, err := strconv.ParseFloat(args, 64)
		if err != nil {
			return nil, fmt.Errorf("policy %q: want oracle:A with a number A", name)
		}
		return &oracle{engines: engines, extra: extra}, nil
	case "warmlane":
		number, option, _ := strings.Cut(args, ":")
		if number == "" {
			number = "1"
		}
		proxies, err := strconv.Atoi(number)
		if err != nil || proxies < 1 || option != "" && option != "report" {
			return nil, fmt.Errorf("policy %q: want warmlane[:P[:report]] with P proxies", name)
		}
		return newWarmlane(engines, proxies, option == "report", seed), nil
	}
	return nil, fmt.Errorf("policy %q: want one of\n%s", name, Policies)
}
