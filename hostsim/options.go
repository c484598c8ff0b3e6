package hostsim

import (
	"fmt"
	"time"
)

// Threads of a proxy that are not workers, as they appear in logs and traps.
const (
	// MainThread has a VM that ticks and makes callouts but sees no stream.
	MainThread = -1
	// Canary is the VM that tries a configuration and is thrown away.
	Canary = -2
)

// Options say how Envoy is configured around the guest. The zero value is a
// plain Envoy 1.40 with one worker and an empty plugin configuration.
type Options struct {
	Workers      int    // worker threads, each with a VM of its own; 0 means 1
	EnvoyVersion string // "1.36" to "1.40"; "" means the newest

	PluginName   string            // name of the plugin, in properties and logs
	RootID       string            // root_id
	VMID         string            // vm_id, the namespace of shared data
	PluginConfig string            // what on_configure reads
	VMConfig     string            // what on_vm_start reads
	Env          map[string]string // environment of the VM

	// AllowOnHeadersStopIteration passes a pause in a headers callback on as
	// it is: later filters wait, this filter still gets the body. Off, the
	// default, a pause on headers stops the body too.
	AllowOnHeadersStopIteration bool

	Failure       FailurePolicy // what happens to streams of a VM that died
	ReloadBackoff time.Duration // FailReload: least age of a VM before it is replaced; 0 means 1 s

	// BufferLimit is how many bytes of a body the chain holds back before a
	// request gets 413 and a response 500; 0 means 1 MiB, Envoy's default.
	BufferLimit int
	// Buffer, if not 0, puts Envoy's native buffer filter behind the guest:
	// it holds a request until its body is complete, up to so many bytes.
	Buffer int
	// Mutations, if any, put Envoy's native header_mutation filter behind
	// the guest and the buffer. They change request headers, in order.
	Mutations []Mutation

	RouteTimeout time.Duration // whole response after a whole request; 0 means 15 s, negative none
	IdleTimeout  time.Duration // a stream with no progress; 0 means 5 min, negative none

	LogLevel   Level             // least level that is recorded; all by default (Envoy: LevelInfo)
	Start      time.Time         // virtual time at the start; zero means 2026-01-01 00:00 UTC
	Seed       uint64            // of the guest's random_get
	Properties map[string]string // further properties; keys are made by Path
	Foreign    map[string]func(arguments []byte) ([]byte, error)
}

// Mutation is one step of the native header_mutation filter on the one header
// named: Remove it, Append the filter state FilterState to it, or Overwrite it
// by that, if the header is there. Filter state that is absent or empty changes
// nothing. "wasm.x" is the filter state a guest writes as property "x".
type Mutation struct {
	Remove      string
	Append      string
	Overwrite   string
	FilterState string
}

func (m Mutation) valid() bool {
	named := 0
	for _, name := range []string{m.Remove, m.Append, m.Overwrite} {
		if name != "" {
			named++
		}
	}
	return named == 1 && (m.Remove == "") == (m.FilterState != "")
}

// FailurePolicy is Envoy's failure_policy of a Wasm plugin.
type FailurePolicy int

const (
	// FailClosed answers 503 to every stream of a dead VM. Envoy's default.
	FailClosed FailurePolicy = iota
	// FailOpen lets new streams pass as if the plugin were not there. Those
	// that the VM had when it died get 503, as with FailClosed.
	FailOpen
	// FailReload starts a new VM when the next stream arrives, once the old
	// one's age has reached the back-off; until then it is FailClosed.
	FailReload
)

const (
	defaultBufferLimit = 1 << 20
	maxWorkers         = 64
)

func (o Options) withDefaults() (Options, error) {
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.Workers < 0 || o.Workers > maxWorkers {
		return o, fmt.Errorf("option Workers %d: must be 1 to %d", o.Workers, maxWorkers)
	}
	if o.BufferLimit < 0 || o.Buffer < 0 {
		return o, fmt.Errorf("option BufferLimit %d, Buffer %d: must not be negative", o.BufferLimit, o.Buffer)
	}
	for i, m := range o.Mutations {
		if !m.valid() {
			return o, fmt.Errorf("option Mutations[%d]: needs Remove alone, or one of Append and Overwrite with FilterState", i)
		}
	}
	setDefault(&o.BufferLimit, defaultBufferLimit)
	setDefault(&o.ReloadBackoff, time.Second)
	setDefault(&o.RouteTimeout, 15*time.Second)
	setDefault(&o.IdleTimeout, 5*time.Minute)
	if o.Start.IsZero() {
		o.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return o, nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
