package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// row is one kind of load.
type row struct {
	size        int // of a prompt, in bytes
	connections int
	stream      bool
	bodies      []string // files
}

// streamSize and streamConnections are the load of the row of streams. Their chunks come at a set pace, so it is the number of
// streams that makes the work.
const (
	streamSize        = 2 << 10
	streamConnections = 32
)

// rows writes the prompts and lists what to measure.
func rows(o options, dir string) ([]row, error) {
	var list []row
	for _, size := range o.sizes {
		bodies, err := save(dir, size, false)
		if err != nil {
			return nil, err
		}
		for _, c := range o.connections {
			list = append(list, row{size: size, connections: c, bodies: bodies})
		}
	}
	if o.streams {
		bodies, err := save(dir, streamSize, true)
		if err != nil {
			return nil, err
		}
		list = append(list, row{size: streamSize, connections: streamConnections, stream: true, bodies: bodies})
	}
	return list, nil
}

func save(dir string, size int, stream bool) (files []string, err error) {
	bodies, err := prompts(size, stream)
	for i, body := range bodies {
		file := filepath.Join(dir, fmt.Sprintf("prompt-%d-%t-%d.json", size, stream, i))
		if err := os.WriteFile(file, body, 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, err
}

// sample is what one contestant did in one round.
type sample struct {
	result
	cpu float64 // of Envoy, in seconds for each request
}

// measure plays the rounds of a row: in each, every contestant in turn, plain first. samples[i] holds those of contestant i, by round. The
// first round is not counted: in it connections open, caches fill and V8 compiles what it finds to be hot.
func (h *house) measure(ctx context.Context, o options, w row) (samples [][]sample, err error) {
	samples = make([][]sample, len(h.envoys))
	for round := range o.rounds + 1 {
		for i, r := range h.envoys {
			s, err := h.once(ctx, r, w, round, o.seconds)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %d connections: %w", r.name, w.label(), w.connections, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
	}
	return samples, nil
}

// once measures a contestant for a moment. Rounds take turns with the conversations.
func (h *house) once(ctx context.Context, r *running, w row, round int, seconds float64) (sample, error) {
	first := round % len(w.bodies)
	bodies := append(w.bodies[first:len(w.bodies):len(w.bodies)], w.bodies[:first]...)
	before, err := r.process.CPU()
	if err != nil {
		return sample{}, err
	}
	got, err := fire(ctx, h.generator, shot{
		url: r.url + "/v1/chat/completions", bodies: bodies, connections: w.connections, stream: w.stream, seconds: seconds,
	})
	if err != nil {
		return sample{}, err
	}
	after, err := r.process.CPU()
	return sample{got, (after - before).Seconds() / float64(got.requests)}, err
}

// label names the load in messages.
func (w row) label() string {
	if w.stream {
		return strconv.Itoa(chunks) + "-chunk streams"
	}
	return size(w.size)
}

// size prints bytes the way people say them.
func size(bytes int) string {
	if bytes >= 1<<10 {
		return strconv.Itoa((bytes+1<<9)>>10) + " KB"
	}
	return strconv.Itoa(bytes) + " B"
}
