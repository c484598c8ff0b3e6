package lab

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Conversations makes up a minute: users who share a few system prompts and
// come back with all that was said so far and a little more. Blind routing
// computes most of it again and overloads a fleet of 8.
func Conversations(seed uint64) *Workload {
	dice := rand.New(rand.NewPCG(seed, 3))
	var all []arrival
	id := uint64(1 << 32)
	for range 100 {
		at := dice.Float64() * 40
		ids := []uint64{1 + uint64(dice.IntN(4))}
		for range 2 + dice.IntN(6) {
			for range 2 + dice.IntN(16) {
				id++
				ids = append(ids, id)
			}
			a := arrival{
				at:    time.Duration(at * float64(time.Second)),
				input: len(ids)*chunkTokens - dice.IntN(chunkTokens), output: 20 + dice.IntN(400), ids: slices.Clone(ids),
			}
			if a.input%chunkTokens != 0 { // a chunk that is not full has another id
				id++
				a.ids[len(a.ids)-1] = id
			}
			all = append(all, a)
			at += 1 + dice.ExpFloat64()*5
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return converse("made-up", all, seed)
}
