package hostsim_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/hostsim"
	"github.com/warmlane/warmlane/hostsim/conformance"
)

// TestConformance plays every scenario and compares with what Envoy did.
func TestConformance(t *testing.T) {
	for _, s := range conformance.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			want, err := s.Golden()
			if err != nil {
				t.Error(err)
			}
			if got := play(t, s); got != want {
				t.Errorf("%s\ngot:\n%s\nEnvoy:\n%s", s.Asks, got, want)
			}
		})
	}
}

// TestGoldenFiles finds golden files of scenarios that are no more.
func TestGoldenFiles(t *testing.T) {
	known := map[string]bool{}
	for _, s := range conformance.Scenarios {
		if known[s.Name] {
			t.Errorf("two scenarios are called %q", s.Name)
		}
		known[s.Name] = true
	}
	files, err := filepath.Glob("conformance/golden/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".txt"); !known[name] {
			t.Errorf("%s belongs to no scenario", f)
		}
	}
}

func optionsOf(s conformance.Setup) hostsim.Options {
	o := hostsim.Options{
		PluginName: conformance.PluginName, RootID: conformance.RootID, PluginConfig: "conform",
		AllowOnHeadersStopIteration: s.AllowStop, BufferLimit: s.Limit,
		RouteTimeout: conformance.RouteTimeout,
		Failure:      map[string]hostsim.FailurePolicy{"open": hostsim.FailOpen, "reload": hostsim.FailReload}[s.Failure],
	}
	if s.Buffer {
		o.Buffer = conformance.BufferBytes
		o.Mutations = []hostsim.Mutation{
			{Remove: conformance.MutationHeader},
			{Append: conformance.MutationHeader, FilterState: conformance.MutationState},
			{Overwrite: "content-length", FilterState: conformance.LengthState},
		}
	}
	return o
}

// play runs a scenario on a host of its own.
func play(t *testing.T, s conformance.Scenario) string {
	h := host(t, "conform", optionsOf(s.Setup))
	h.SetUpstream(conformance.SideCluster, side)
	h.SetUpstream(conformance.EmptyCluster, nil)
	h.Advance(2 * time.Second) // past the back-off of a reload
	var out strings.Builder
	for i, e := range s.Exchanges {
		id := s.ID(i)
		r := exchange(t, h, e, id)
		h.Advance(time.Second)
		trace, _, _ := h.Shared().Get("t/" + id)
		out.WriteString(e.Render(outcome(string(trace), r)))
	}
	return out.String()
}

func exchange(t *testing.T, h *hostsim.Host, e conformance.Exchange, id string) *hostsim.Result {
	t.Helper()
	s, err := h.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		h.Advance(conformance.Gap)
	}
	bare := e.Chunks == nil && e.Trailers == nil
	check(s.RequestHeaders(head(e, id), bare))
	for _, c := range e.Chunks {
		check(s.RequestBody([]byte(c), false))
	}
	switch {
	case e.Abort:
		check(s.Abort())
	case e.Trailers != nil:
		check(s.RequestTrailers(e.Trailers))
	case !bare:
		check(s.RequestBody(nil, true))
	}
	if err := s.Await(reply(e.Reply)); err != nil {
		t.Fatal(err)
	}
	return s.Result()
}

func head(e conformance.Exchange, id string) hostsim.Header {
	method, path := "GET", "/"
	if e.Chunks != nil {
		method = "POST"
	}
	if e.Path != "" {
		path = e.Path
	}
	h := hostsim.Header{{":method", method}, {":path", path}, {":authority", "test"}, {":scheme", "http"}, {"x-id", id}, {"x-script", e.Script}}
	if e.Brief {
		h = append(h, [2]string{"x-brief", "1"})
	}
	if e.Sized {
		h = append(h, [2]string{"content-length", strconv.Itoa(len(strings.Join(e.Chunks, "")))})
	}
	return append(h, e.Header...)
}

// reply is the upstream's answer, with the length that an HTTP/1 server names
// if there are no trailers.
func reply(r conformance.Reply) hostsim.Upstream {
	return func(*hostsim.UpstreamRequest) hostsim.Reply {
		out := hostsim.Reply{Status: r.Status, Header: r.Header, Trailers: r.Trailers, ChunkDelay: conformance.Gap}
		for _, c := range r.Chunks {
			out.Chunks = append(out.Chunks, []byte(c))
		}
		return out
	}
}

// side is the upstream of callouts; see conformance.SideCluster.
func side(r *hostsim.UpstreamRequest) hostsim.Reply {
	out := hostsim.Reply{Header: hostsim.Header{{"x-side", "a"}, {"x-side", "b"}}, Body: []byte("hi")}
	switch r.Header.Get(":path") {
	case "/slow":
		out.Delay = time.Hour
	case "/slow-body":
		out.ChunkDelay = time.Hour
	case "/delayed":
		out.Delay = 300 * time.Millisecond
	case "/reset":
		out.Reset = hostsim.ResetBeforeHead
	case "/reset-body":
		out.Reset = hostsim.ResetInBody
	}
	return out
}

func outcome(trace string, r *hostsim.Result) conformance.Outcome {
	o := conformance.Outcome{Trace: trace, Status: r.Status, Body: string(r.Body), Header: r.Header.Get,
		Cut: r.Status != 0 && !r.Complete}
	if u := r.Upstream; u != nil && u.Complete {
		o.Upstream = &conformance.Upstream{Header: u.Header.Get, Body: string(u.Body), Trailers: u.Trailers.Get}
	}
	return o
}

// TestDocNamesScenarios keeps the list of what is faithful complete: every
// scenario is named there, so every claim has its proof.
func TestDocNamesScenarios(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \n,:;/", r) }) {
		words[w] = true
	}
	for _, s := range conformance.Scenarios {
		if !words[s.Name] {
			t.Errorf("doc.go does not name the scenario %s", s.Name)
		}
	}
}
