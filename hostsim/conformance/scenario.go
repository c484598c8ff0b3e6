package conformance

import (
	"embed"
	"fmt"
	"strings"
	"time"
)

// Setup is how the proxy is configured. Scenarios with equal setups may share
// a proxy.
type Setup struct {
	AllowStop bool   // allow_on_headers_stop_iteration
	Limit     int    // bytes of body the chain holds back; 0 is the default
	Buffer    bool   // buffer and header_mutation behind the guest; see Mutation
	Failure   string // failure policy: "closed" (also ""), "open", "reload"
}

// What stands behind the guest in setups with Buffer: the buffer filter with
// BufferBytes, then a header_mutation filter that first removes MutationHeader
// and then appends to it the filter state MutationState; last it overwrites
// content-length, where there is one, with the filter state LengthState.
const (
	BufferBytes    = 100_000
	MutationHeader = "x-out"
	MutationState  = "wasm.out"
	LengthState    = "wasm.length"
)

// Names the configuration must use, since scenarios read them back.
const (
	PluginName = "conform"
	RootID     = "conform-root"
)

// Clusters for callouts. SideCluster answers with two headers x-side, a and b,
// and the body "hi": at once, after 300 ms for /delayed, never for /slow, the
// head only for /slow-body; /reset breaks the connection and /reset-body does
// so in the body. EmptyCluster has no host.
const (
	SideCluster  = "side"
	EmptyCluster = "empty"
)

// Gap is the pause after each piece a client sends, so that pieces are not
// joined on the way.
const Gap = 100 * time.Millisecond

// RouteTimeout is the time-out the route must have.
const RouteTimeout = 2 * time.Second

// Exchange is one request and what the upstream answers.
type Exchange struct {
	Script   string
	Path     string      // "" is "/"
	Header   [][2]string // further request headers
	Chunks   []string    // a body in pieces; nil is none
	Trailers [][2]string
	Sized    bool // the client names the body's length, instead of sending it in chunks
	Abort    bool // the client leaves after the last piece
	Brief    bool // the guest does not note body callbacks: how the wire cuts is open

	Reply Reply

	ShowClient   []string // response headers to compare
	ShowUpstream []string // request headers to compare
}

// Reply is the upstream's answer to a request.
type Reply struct {
	Status   int // 0 is 200
	Header   [][2]string
	Chunks   []string
	Trailers [][2]string
}

// Scenario is a question to a host, as exchanges one after another on one
// worker.
type Scenario struct {
	Name      string
	Asks      string
	Setup     Setup
	Exchanges []Exchange
}

// ID is what x-id says in the exchange at i: it names the trace.
func (s Scenario) ID(i int) string { return fmt.Sprintf("%s.%d", s.Name, i) }

// Outcome is what was seen of an exchange.
type Outcome struct {
	Trace    string
	Status   int // 0: no answer
	Body     string
	Cut      bool // the answer broke off
	Header   func(name string) string
	Upstream *Upstream // nil: nothing arrived
}

// Upstream is what arrived behind the proxy.
type Upstream struct {
	Header   func(name string) string
	Body     string
	Trailers func(name string) string
}

// Render writes the outcome of an exchange in the form of the golden files.
func (e Exchange) Render(o Outcome) string {
	var b strings.Builder
	b.WriteString(o.Trace)
	fmt.Fprintf(&b, "client %d %s", o.Status, short(o.Body))
	if o.Cut {
		b.WriteString(" cut")
	}
	for _, name := range e.ShowClient {
		fmt.Fprintf(&b, " %s=%s", name, o.Header(name))
	}
	b.WriteString("\nupstream")
	if o.Upstream != nil {
		fmt.Fprintf(&b, " %s", short(o.Upstream.Body))
		for _, name := range e.ShowUpstream {
			fmt.Fprintf(&b, " %s=%s", name, o.Upstream.Header(name))
		}
		for _, t := range e.Trailers {
			fmt.Fprintf(&b, " trailer %s=%s", t[0], o.Upstream.Trailers(t[0]))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// short spells a body, or its length if that is over 60.
func short(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%d bytes", len(s))
	}
	return fmt.Sprintf("%q", s)
}

//go:embed golden/*.txt
var golden embed.FS

// Golden is what a real Envoy did: the renderings of all exchanges.
func (s Scenario) Golden() (string, error) {
	b, err := golden.ReadFile("golden/" + s.Name + ".txt")
	return string(b), err
}
