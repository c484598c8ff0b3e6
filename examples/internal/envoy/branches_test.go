package envoy

import (
	"slices"
	"testing"
)

func TestBranchesOf(t *testing.T) {
	got := branchesOf(map[string]int64{
		"wasmcustom.warmlane_decisions_total;pool=default;model=a;tier=1;branch=cache_hit":           3,
		"wasmcustom.warmlane_decisions_total;pool=default;model=b;tier=1;branch=cache_hit":           4,
		"wasmcustom.warmlane_decisions_total;pool=default;model=a;tier=1;branch=cache_miss_min_load": 9,
		"wasmcustom.warmlane_decisions_total;pool=default;model=a;tier=1;branch=no_tree":             7,
	})
	want := []Branch{{"cache_miss_min_load", 9}, {"cache_hit", 7}, {"no_tree", 7}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
