package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// The load generator. It is built on fasthttp and spends little on a request, which leaves the machine to what is measured.
const (
	generator        = "github.com/codesenberg/bombardier"
	generatorVersion = "v1.2.6"
	// maxGenerators is how many run at once: each sends one conversation over its share of the connections.
	maxGenerators = 4
	loadTimeout   = 30 * time.Second // of one request
)

// installGenerator returns the path of the load generator and builds it first if it is not there.
func installGenerator(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(dir, "bombardier-"+generatorVersion))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bombardier")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "install", generator+"@"+generatorVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s@%s: %w: %s", generator, generatorVersion, err, out)
	}
	return path, nil
}

// result is what a run of the load gave. Times are in seconds.
type result struct {
	requests int
	took     float64
	p50, p99 float64
}

func (r result) throughput() float64 { return float64(r.requests) / r.took }

// shot is one load: so many connections, each sending one of the bodies again and again for a time.
type shot struct {
	url         string
	bodies      []string // files
	connections int
	stream      bool
	seconds     float64
}

// fire runs the generators side by side and joins what they say.
func fire(ctx context.Context, program string, s shot) (result, error) {
	results := make([]result, min(s.connections, len(s.bodies), maxGenerators))
	errs := make([]error, len(results))
	var group sync.WaitGroup
	for i := range results {
		share := (s.connections + len(results) - 1 - i) / len(results)
		group.Go(func() { results[i], errs[i] = generate(ctx, program, s, s.bodies[i], share) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return result{}, err
		}
	}
	return join(results), nil
}

// join adds generators up. Of percentiles it takes the mean by requests: the generators are alike, so theirs are too.
func join(results []result) (all result) {
	for _, r := range results {
		n := float64(r.requests)
		all.requests += r.requests
		all.took = max(all.took, r.took)
		all.p50 += n * r.p50
		all.p99 += n * r.p99
	}
	if all.requests > 0 {
		all.p50 /= float64(all.requests)
		all.p99 /= float64(all.requests)
	}
	return all
}

func generate(ctx context.Context, program string, s shot, body string, connections int) (result, error) {
	args := []string{
		"-c", strconv.Itoa(connections), "-d", strconv.FormatFloat(s.seconds, 'f', -1, 64) + "s", "-t", loadTimeout.String(),
		"-m", "POST", "-f", body, "-H", "content-type: application/json", "-l", "-p", "r", "-o", "json",
	}
	if s.stream {
		args = append(args, "-H", "accept: text/event-stream")
	}
	out, err := exec.CommandContext(ctx, program, append(args, s.url)...).Output()
	if err != nil {
		return result{}, fmt.Errorf("bombardier: %w: %s", err, out)
	}
	return parseReport(out)
}

// parseReport reads bombardier's JSON. Any answer but 200 spoils the run: an Envoy that refuses is fast.
func parseReport(out []byte) (result, error) {
	var report struct {
		Result struct {
			Took    float64 `json:"timeTakenSeconds"`
			OK      int     `json:"req2xx"`
			R1      int     `json:"req1xx"`
			R3      int     `json:"req3xx"`
			R4      int     `json:"req4xx"`
			R5      int     `json:"req5xx"`
			Others  int     `json:"others"`
			Latency struct {
				Percentiles map[string]float64 `json:"percentiles"` // microseconds
			} `json:"latency"`
		} `json:"result"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return result{}, fmt.Errorf("bombardier: %w: %.200s", err, out)
	}
	r := &report.Result
	if bad := r.R1 + r.R3 + r.R4 + r.R5 + r.Others; bad > 0 || r.OK == 0 {
		return result{}, fmt.Errorf("bombardier: %d requests answered well, %d not", r.OK, bad)
	}
	const micro = 1e-6
	p := r.Latency.Percentiles
	return result{requests: r.OK, took: r.Took, p50: p["50"] * micro, p99: p["99"] * micro}, nil
}
