package proc

import (
	"bytes"
	"strings"
	"sync"
)

const (
	tailLines = 20
	tailWidth = 4096 // bytes kept of a line
)

// Tail is a writer that remembers the last lines written to it, for error messages. It may be read while it is written to.
type Tail struct {
	mu    sync.Mutex
	lines []string
	open  []byte // the line that has not ended yet
}

// Write takes any piece of text and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		t.open = append(t.open, line[:min(len(line), tailWidth-len(t.open))]...)
		if !ended {
			return n, nil
		}
		t.push()
		p = rest
	}
}

func (t *Tail) push() {
	if len(t.lines) == tailLines {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, string(t.open))
	t.open = t.open[:0]
}

// String returns the last lines, each indented by two spaces and ended.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, line := range t.lines {
		text.WriteString("  " + line + "\n")
	}
	if len(t.open) > 0 {
		text.WriteString("  " + string(t.open) + "\n")
	}
	return text.String()
}
