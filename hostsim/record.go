package hostsim

import (
	"slices"
	"time"
)

// LogEntry is one line a guest wrote, by proxy_log or to standard output or
// error.
type LogEntry struct {
	Worker  int // MainThread and Canary included
	Level   Level
	Message string
	At      time.Duration // virtual time since the start
}

// Trap is a VM's death.
type Trap struct {
	Worker  int
	Context uint32 // whose callback ran
	Export  string // the callback
	Err     error  // with the guest's backtrace
	At      time.Duration
}

const maxLogEntries = 100_000

// Logs returns what the guests have logged so far; past 100,000 lines the
// oldest are forgotten.
func (h *Host) Logs() []LogEntry { return slices.Clone(h.logs) }

// Traps returns the deaths of VMs so far, oldest first. A test that expects
// none should say so: with FailOpen nothing else shows them.
func (h *Host) Traps() []Trap { return slices.Clone(h.traps) }

// Reloads counts the VMs started by FailReload.
func (h *Host) Reloads() int { return h.reloads }

func (v *vm) log(level Level, message string) {
	h := v.host
	if level < h.opts.LogLevel {
		return
	}
	if len(h.logs) == maxLogEntries {
		h.logs = h.logs[maxLogEntries/10:]
	}
	h.logs = append(h.logs, LogEntry{v.worker.index, level, message, h.clock.now})
}

func (h *Host) recordTrap(t Trap) {
	t.At = h.clock.now
	h.traps = append(h.traps, t)
}
