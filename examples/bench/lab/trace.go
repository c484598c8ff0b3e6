package lab

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// ChunkTokens is how many prompt tokens one chunk of a [Request] stands for.
const ChunkTokens = 512

// Request is one prompt of a workload.
type Request struct {
	At     int64 // arrival, microseconds from the start
	Input  int   // prompt tokens
	Output int   // tokens to generate, at least 1
	// Chunks name the prompt's tokens, ChunkTokens each and the last one
	// shorter. A name stands for the chunk and all before it: equal names are
	// equal beginnings.
	Chunks []uint64
}

// chunkTokens is the length of chunk i.
func (r *Request) chunkTokens(i int) int {
	return min(ChunkTokens, r.Input-i*ChunkTokens)
}

// Window cuts a trace: arrivals from From to To (seconds of the trace), with
// time running Speedup times as fast.
type Window struct {
	From, To, Speedup float64
}

// ReadTrace reads the window of a trace in the JSON lines of the Mooncake
// release (timestamp in ms, input_length, output_length, hash_ids per 512
// tokens), gzipped if the name ends in .gz. Requests of one timestamp are
// shuffled by seed, as nothing says in which order they came.
func ReadTrace(path string, w Window, seed uint64) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	reqs, err := readLines(in, w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	shuffleTies(reqs, seed)
	return reqs, nil
}

type traceLine struct {
	Timestamp float64  `json:"timestamp"`
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	HashIDs   []uint64 `json:"hash_ids"`
}

func readLines(in io.Reader, w Window) ([]Request, error) {
	var reqs []Request
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var l traceLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		at := l.Timestamp/1000 - w.From
		if at < 0 || at >= w.To-w.From || l.Input <= 0 {
			continue
		}
		need := (l.Input + ChunkTokens - 1) / ChunkTokens
		if len(l.HashIDs) < need {
			return nil, fmt.Errorf("line %d: %d tokens need %d hash ids, not %d", n, l.Input, need, len(l.HashIDs))
		}
		reqs = append(reqs, Request{
			At: int64(at / w.Speedup * 1e6), Input: l.Input, Output: max(l.Output, 1), Chunks: l.HashIDs[:need],
		})
	}
	return reqs, lines.Err()
}

func shuffleTies(reqs []Request, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	dice.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
	slices.SortStableFunc(reqs, func(a, b Request) int { return int(a.At - b.At) })
}
