package xxh64

import (
	"encoding/binary"
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

var seeds = []uint64{0, 1, Prime1, 1<<64 - 1}

func TestSumIsXXH64(t *testing.T) {
	data := sequence(300, 1)
	for _, seed := range seeds {
		for n := range len(data) {
			if got, want := Sum(data[:n], seed), library(data[:n], seed); got != want {
				t.Fatalf("%d bytes, seed %d: %x, want %x", n, seed, got, want)
			}
		}
	}
}

func TestSumWordsIsXXH64(t *testing.T) {
	data := sequence(4*300, 2)
	words := make([]uint32, 300)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	for _, seed := range seeds {
		for n := range len(words) {
			if got, want := SumWords(words[:n], seed), library(data[:4*n], seed); got != want {
				t.Fatalf("%d words, seed %d: %x, want %x", n, seed, got, want)
			}
		}
	}
}

func BenchmarkSumWords(b *testing.B) {
	for _, size := range []int{16, 32, 128} {
		words := make([]uint32, size)
		b.Run(map[int]string{16: "16", 32: "32", 128: "128"}[size], func(b *testing.B) {
			b.SetBytes(int64(4 * size))
			b.ReportAllocs()
			for range b.N {
				words[0] = uint32(SumWords(words, uint64(words[0])))
			}
		})
	}
}
