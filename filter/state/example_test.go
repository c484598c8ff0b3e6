package state_test

import (
	"fmt"

	"github.com/warmlane/warmlane/filter/state"
)

// A filter asks, takes pages as they come and has a whole state each time.
func ExampleView() {
	first := &state.Snapshot{Epoch: 1, Generation: 1, Pools: []state.Pool{{
		Name:     "default",
		Replicas: []state.Replica{{Address: "10.0.0.7:8000", Load: state.NoLoad()}},
	}}}
	second := &state.Snapshot{Epoch: 1, Generation: 2, Pools: []state.Pool{{
		Name:     "default",
		Replicas: []state.Replica{{Address: "10.0.0.7:8000", Health: state.Healthy, Load: state.NoLoad()}},
	}}}

	var v state.View
	fmt.Println(v.Query([]string{"default"}))
	for _, page := range append(state.Pages(nil, first, state.MaxPage), state.Pages(first, second, state.MaxPage)...) {
		if _, err := v.Apply(page); err != nil {
			fmt.Println("ask for the whole:", err)
		}
	}
	fmt.Println(v.Query([]string{"default"}))
	r := v.Snapshot().Pools[0].Replicas[0]
	fmt.Println(r.Address, r.Health, r.Load.Waiting)
	// Output:
	// /v1/state?epoch=0&gen=0&pool=default
	// /v1/state?epoch=1&gen=2&pool=default
	// 10.0.0.7:8000 healthy -1
}
