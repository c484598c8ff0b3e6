package lab

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// chunkTokens is how many prompt tokens one hash id of a trace stands for.
const chunkTokens = 512

// maxLine bounds a line of a trace; a prompt of a million tokens has 20 KB.
const maxLine = 1 << 20

// Window cuts a trace: arrivals from From to To (seconds of the trace), with
// time running Speedup times as fast. Name is for tables.
type Window struct {
	Name              string
	From, To, Speedup float64
}

// Settings are the windows that this project's numbers are measured with.
// conv-mid and conv-high are of Mooncake's conversation trace, synth is of its
// synthetic trace (https://github.com/kvcache-ai/Mooncake, FAST25-release).
var Settings = map[string]Window{
	"conv-mid":  {"conv-mid", 600, 1000, 2},
	"conv-high": {"conv-high", 600, 1000, 2.5},
	"synth":     {"synth", 620, 1020, 2},
}

// arrival is one line of a trace, cut out of its window.
type arrival struct {
	at            time.Duration
	input, output int
	// ids name the prompt's tokens, chunkTokens each and the last one shorter.
	// Prompts with equal first ids have equal beginnings.
	ids []uint64
}

// ReadTrace reads the window of a trace in the JSON lines of the Mooncake
// release (timestamp in ms, input_length, output_length, hash_ids per 512
// tokens), gzipped if the name ends in .gz, and makes up conversations that fit
// (see [Workload]). Requests of one timestamp are shuffled by seed, as nothing
// says in which order they came; seed also chooses the words.
func ReadTrace(path string, w Window, seed uint64) (*Workload, error) {
	if !(w.From >= 0 && w.To > w.From && w.Speedup > 0) {
		return nil, fmt.Errorf("window %g-%g at %g times the speed: want times that grow and a speed above 0", w.From, w.To, w.Speedup)
	}
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
	arrivals, err := readLines(in, w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(arrivals) == 0 {
		return nil, fmt.Errorf("%s: no requests from %g to %g s", path, w.From, w.To)
	}
	shuffleTies(arrivals, seed)
	return converse(w.Name, arrivals, seed), nil
}

type traceLine struct {
	Timestamp float64  `json:"timestamp"`
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	HashIDs   []uint64 `json:"hash_ids"`
}

func readLines(in io.Reader, w Window) ([]arrival, error) {
	var all []arrival
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var l traceLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		at := l.Timestamp/1000 - w.From
		if at < 0 || at >= w.To-w.From || l.Input <= 0 {
			continue
		}
		need := (l.Input + chunkTokens - 1) / chunkTokens
		if len(l.HashIDs) < need {
			return nil, fmt.Errorf("line %d: %d tokens need %d hash ids, not %d", n, l.Input, need, len(l.HashIDs))
		}
		all = append(all, arrival{
			at:    time.Duration(at / w.Speedup * float64(time.Second)),
			input: l.Input, output: max(l.Output, 1), ids: l.HashIDs[:need],
		})
	}
	return all, lines.Err()
}

func shuffleTies(all []arrival, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
}
