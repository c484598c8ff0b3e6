package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Faults says what is to go wrong. The zero value is a healthy replica.
type Faults struct {
	Slow float64 `json:"slow,omitempty"` // engine steps take this many times as long

	// Those up to StopOnAbort concern generating requests. Counts are events of one
	// stream, the role's included; a reply in one piece fails at once.
	Times      int  `json:"times,omitempty"`              // how many requests they still concern; 0: all
	Status     int  `json:"status,omitempty"`             // answer with this status, 400 to 599
	Reset      bool `json:"reset,omitempty"`              // reset the connection instead of sending a head
	Hang       bool `json:"hang,omitempty"`               // never send a head
	DieAfter   int  `json:"die_after_events,omitempty"`   // reset the connection after this many events
	StallAfter int  `json:"stall_after_events,omitempty"` // send nothing more after this many events
	ErrorAfter int  `json:"error_after_events,omitempty"` // send an error event and [DONE] after this many
	AbortAfter int  `json:"abort_after_events,omitempty"` // finish with "abort" after this many

	Unhealthy bool   `json:"unhealthy,omitempty"` // /health answers 503
	Metrics   string `json:"metrics,omitempty"`   // stale, error, garbage, huge, empty or hang
	Tokenize  string `json:"tokenize,omitempty"`  // error, garbage or hang
	Gzip      bool   `json:"gzip,omitempty"`      // compress answers for clients that accept it
}

// Action is something that happens once, and is not kept.
type Action struct {
	Exit        bool    `json:"exit,omitempty"`         // end the process at once, without a word
	Restart     bool    `json:"restart,omitempty"`      // cut everything, lose cache, adapters and counters, events from 0
	RefuseFor   float64 `json:"refuse_s,omitempty"`     // be gone for so many seconds: cut connections, refuse new ones; with Restart before coming back
	DropBatches int     `json:"drop_batches,omitempty"` // lose the next so many event batches on the way to subscribers
}

var (
	metricsFaults  = []string{"", "stale", "error", "garbage", "huge", "empty", "hang"}
	tokenizeFaults = []string{"", "error", "garbage", "hang"}
)

// check refuses values that mean nothing.
func (f *Faults) check() error {
	switch {
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status: %d is not 0 or 400 to 599", f.Status)
	case f.Slow < 0:
		return fmt.Errorf("slow: %v is below 0", f.Slow)
	case min(f.Times, f.DieAfter, f.StallAfter, f.ErrorAfter, f.AbortAfter) < 0:
		return errors.New("times and *_after_events: a number is below 0")
	case !slices.Contains(metricsFaults, f.Metrics):
		return fmt.Errorf("metrics: %q is not one of %q", f.Metrics, metricsFaults)
	case !slices.Contains(tokenizeFaults, f.Tokenize):
		return fmt.Errorf("tokenize: %q is not one of %q", f.Tokenize, tokenizeFaults)
	}
	return nil
}

func (a *Action) check() error {
	if a.RefuseFor < 0 || a.RefuseFor > 3600 {
		return fmt.Errorf("refuse_s: %v is not 0 to 3600", a.RefuseFor)
	}
	if a.DropBatches < 0 {
		return fmt.Errorf("drop_batches: %d is below 0", a.DropBatches)
	}
	return nil
}

// onRequests reports whether a fault concerns generating requests.
func (f *Faults) onRequests() bool {
	return f.Status != 0 || f.Reset || f.Hang || f.DieAfter+f.StallAfter+f.ErrorAfter+f.AbortAfter > 0
}

// heal clears the faults of generating requests.
func (f *Faults) heal() {
	f.Times, f.Status, f.Reset, f.Hang = 0, 0, false, false
	f.DieAfter, f.StallAfter, f.ErrorAfter, f.AbortAfter = 0, 0, 0, 0
}

// FaultBox holds the faults that are switched on. It is safe for concurrent use.
type FaultBox struct {
	mu  sync.Mutex
	now Faults
}

// Get returns what is switched on.
func (b *FaultBox) Get() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// Set replaces what is switched on.
func (b *FaultBox) Set(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = f
	return nil
}

// take returns the faults of one generating request and counts it.
func (b *FaultBox) take() Faults {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.now
	if f.Times > 0 && f.onRequests() {
		if b.now.Times--; b.now.Times == 0 {
			b.now.heal()
		}
	}
	return f
}

// Merge reads an object with fields of Faults and Action. Faults that are named
// are changed, the others stay; the action is returned for the caller to do.
// Unknown fields are refused, so that a typing error does not pass for a healthy replica.
func (b *FaultBox) Merge(text []byte) (Action, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	both := struct {
		Faults
		Action
	}{Faults: b.now}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&both); err != nil {
		return Action{}, fmt.Errorf("faults: %w", err)
	}
	if err := errors.Join(both.Faults.check(), both.Action.check()); err != nil {
		return Action{}, fmt.Errorf("faults: %w", err)
	}
	b.now = both.Faults
	return both.Action, nil
}
