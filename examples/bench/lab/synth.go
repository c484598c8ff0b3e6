package lab

import (
	"math/rand/v2"
	"slices"
)

// Conversations is a synthetic workload of one minute: users who share a few
// system prompts and come back with all that was said so far and a little
// more. Blind routing computes most of it again and overloads a fleet of 8.
func Conversations(seed uint64) []Request {
	dice := rand.New(rand.NewPCG(seed, 3))
	var reqs []Request
	name := uint64(1 << 32)
	for range 100 {
		at := dice.Float64() * 40
		chunks := []uint64{1 + uint64(dice.IntN(4))}
		for range 2 + dice.IntN(6) {
			for range 2 + dice.IntN(16) {
				name++
				chunks = append(chunks, name)
			}
			reqs = append(reqs, Request{
				At:     int64(at * 1e6),
				Input:  len(chunks)*ChunkTokens - dice.IntN(ChunkTokens),
				Output: 20 + dice.IntN(400),
				Chunks: slices.Clone(chunks),
			})
			at += 1 + dice.ExpFloat64()*5
		}
	}
	slices.SortStableFunc(reqs, func(a, b Request) int { return int(a.At - b.At) })
	return reqs
}
