package prefix

import (
	"testing"

	"github.com/cespare/xxhash/v2"
)

// sequence is n bytes that do not repeat soon.
func sequence(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

func library(b []byte, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.Write(b)
	return d.Sum64()
}

func TestBlocksAreXXH64(t *testing.T) {
	data := sequence(300, 1)
	for _, seed := range []uint64{0, 1, 1<<63 + 12345, 1<<64 - 1} {
		for at := range 40 {
			c := Chain{hash: seed}
			rest := c.whole(data[at:])
			if want := library(data[at:at+BlockBytes], seed); c.hash != want || len(rest) != len(data)-at-BlockBytes {
				t.Fatalf("block at %d, seed %d: %x and %d bytes left, want %x", at, seed, c.hash, len(rest), want)
			}
		}
	}
}
