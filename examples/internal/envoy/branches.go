package envoy

import (
	"context"
	"slices"
	"strings"
)

// Branch is how often Warmlane's filter took one of its ways to decide.
type Branch struct {
	Name  string
	Count int64
}

// Branches reads the filter's decisions, over all pools and models, the most
// frequent first. Without the filter there are none.
func (a AdminAPI) Branches(ctx context.Context) ([]Branch, error) {
	stats, err := a.Stats(ctx, "wasmcustom.warmlane_decisions_total")
	return branchesOf(stats), err
}

func branchesOf(stats map[string]int64) []Branch {
	sums := map[string]int64{}
	for name, count := range stats {
		for part := range strings.SplitSeq(name, ";") {
			if taken, ok := strings.CutPrefix(part, "branch="); ok {
				sums[taken] += count
			}
		}
	}
	var all []Branch
	for name, count := range sums {
		all = append(all, Branch{name, count})
	}
	slices.SortFunc(all, func(a, b Branch) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}
