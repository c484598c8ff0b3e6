//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/hostsim/conformance"
)

var updateGolden = flag.Bool("update-golden", false, "record what Envoy does as hostsim's golden files")

const goldenDir = "../../hostsim/conformance/golden"

// TestConformance plays hostsim's scenarios on a real Envoy. What hostsim
// claims to do is what these golden files say.
func TestConformance(t *testing.T) {
	origin := startConformOrigin(t)
	proxy := startConformProxy(t, origin)
	time.Sleep(2 * time.Second) // a VM must have some age before it is reloaded
	for _, s := range conformance.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			got := proxy.play(t, s, "")
			if *updateGolden {
				if err := os.WriteFile(filepath.Join(goldenDir, s.Name+".txt"), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := s.Golden()
			if err != nil {
				t.Fatal(err)
			}
			if got != want { // a busy machine may have joined two pieces
				t.Logf("once more, after\n%s", got)
				got = proxy.play(t, s, "-again")
			}
			if got != want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", s.Asks, got, want)
			}
		})
	}
}

// conformOrigin is the server behind the proxy: it answers each request as the
// scenario says and remembers what arrived.
type conformOrigin struct {
	mu      sync.Mutex
	replies map[string]conformance.Reply
	arrived map[string]*conformance.Upstream
	address string
	side    string
}

func startConformOrigin(t *testing.T) *conformOrigin {
	o := &conformOrigin{replies: map[string]conformance.Reply{}, arrived: map[string]*conformance.Upstream{}}
	o.address = serveConform(t, o.serve)
	o.side = serveConform(t, serveSide)
	return o
}

func serveConform(t *testing.T, handler http.HandlerFunc) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

func (o *conformOrigin) serve(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("x-id")
	if r.URL.Path == "/trace" {
		return
	}
	body, err := io.ReadAll(r.Body)
	o.mu.Lock()
	reply := o.replies[id]
	if err == nil {
		o.arrived[id] = &conformance.Upstream{Header: joinedHeader(r.Header), Body: string(body), Trailers: r.Trailer.Get}
	}
	o.mu.Unlock()
	for _, f := range reply.Header {
		w.Header().Add(f[0], f[1])
	}
	for _, f := range reply.Trailers {
		w.Header().Add("Trailer", f[0])
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	for _, c := range reply.Chunks {
		_, _ = io.WriteString(w, c)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(conformance.Gap)
	}
	for _, f := range reply.Trailers {
		w.Header().Set(f[0], f[1])
	}
}

func joinedHeader(h http.Header) func(string) string {
	return func(name string) string { return strings.Join(h.Values(name), "|") }
}

// serveSide is the upstream of callouts.
func serveSide(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("x-side", "a")
	w.Header().Add("x-side", "b")
	switch r.URL.Path {
	case "/slow":
		<-r.Context().Done()
		return
	case "/delayed":
		time.Sleep(300 * time.Millisecond)
	case "/slow-body":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	case "/reset":
		panic(http.ErrAbortHandler)
	case "/reset-body":
		w.Header().Set("content-length", "10")
		_, _ = io.WriteString(w, "hi")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(conformance.Gap)
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, "hi")
}

// conformProxy is an Envoy with one listener for each setup.
type conformProxy struct {
	process   *envoy.Process
	origin    *conformOrigin
	listeners map[conformance.Setup]string
	readers   map[conformance.Setup]string // another VM on the same shared data
}

func startConformProxy(t *testing.T, o *conformOrigin) *conformProxy {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	p := &conformProxy{origin: o, listeners: map[conformance.Setup]string{}, readers: map[conformance.Setup]string{}}
	var setups []conformance.Setup
	for _, s := range conformance.Scenarios {
		if _, ok := p.listeners[s.Setup]; !ok {
			p.listeners[s.Setup] = fmt.Sprintf("setup%d", len(setups))
			setups = append(setups, s.Setup)
		}
	}
	options := envoy.Options{Config: conformConfig(t, o, setups), Concurrency: 1, LogPath: filepath.Join(t.TempDir(), "envoy.log")}
	var err error
	if options.Path, err = conformEnvoy(ctx); err != nil {
		t.Fatal(err)
	}
	if p.process, err = envoy.Start(ctx, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.process.Stop)
	for setup, name := range p.listeners {
		if p.listeners[setup], err = p.process.Listener(ctx, name); err != nil {
			t.Fatal(err)
		}
		if p.readers[setup], err = p.process.Listener(ctx, name+"-reader"); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func conformEnvoy(ctx context.Context) (string, error) {
	dir, err := envoy.CacheDir()
	if err != nil {
		return "", err
	}
	return envoy.Fetch(ctx, dir, os.Getenv("ENVOY_VERSION"))
}

func conformConfig(t *testing.T, o *conformOrigin, setups []conformance.Setup) []byte {
	module := filepath.Join(t.TempDir(), "conform.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", module, "../../hostsim/testdata/guest/conform")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build guest: %v\n%s", err, text)
	}
	source, err := os.ReadFile("testdata/conformance.yaml.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.New("envoy").Funcs(template.FuncMap{
		"port":   func(a string) string { _, port, _ := net.SplitHostPort(a); return port },
		"policy": func(f string) string { return map[string]string{"open": "FAIL_OPEN", "reload": "FAIL_RELOAD"}[f] },
	}).Parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, map[string]any{
		"Module": module, "Origin": o.address, "Side": o.side, "Setups": setups,
		"Name": conformance.PluginName, "Root": conformance.RootID, "BufferBytes": conformance.BufferBytes,
		"MutationHeader": conformance.MutationHeader, "MutationState": conformance.MutationState, "LengthState": conformance.LengthState,
		"SideCluster": conformance.SideCluster, "EmptyCluster": conformance.EmptyCluster, "RouteTimeout": conformance.RouteTimeout.Seconds(),
	}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (p *conformProxy) play(t *testing.T, s conformance.Scenario, suffix string) string {
	var out strings.Builder
	for i, e := range s.Exchanges {
		id := s.ID(i) + suffix
		p.origin.mu.Lock()
		p.origin.replies[id] = e.Reply
		p.origin.mu.Unlock()
		o := sendConform(t, p.listeners[s.Setup], id, e)
		o.Trace = p.trace(t, s.Setup, id)
		p.origin.mu.Lock()
		o.Upstream = p.origin.arrived[id]
		p.origin.mu.Unlock()
		out.WriteString(e.Render(o))
	}
	return out.String()
}

// trace waits until the guest has been told that the stream is over, and some
// more, in case there is more.
func (p *conformProxy) trace(t *testing.T, setup conformance.Setup, id string) string {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(20 * time.Millisecond) {
		request, _ := http.NewRequest("GET", "http://"+p.readers[setup]+"/trace", nil)
		request.Header.Set("x-id", id)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if strings.HasSuffix(string(body), "del\n") && time.Until(deadline) < 600*time.Millisecond || time.Now().After(deadline) {
			return string(body)
		}
	}
}

// sendConform is the client: it writes HTTP/1.1 by hand, to choose the pieces.
func sendConform(t *testing.T, address, id string, e conformance.Exchange) conformance.Outcome {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	go writeConform(c, id, e)
	o := conformance.Outcome{Header: func(string) string { return "" }}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return o
	}
	body, err := io.ReadAll(response.Body)
	o.Status, o.Body, o.Cut, o.Header = response.StatusCode, string(body), err != nil, joinedHeader(response.Header)
	return o
}

func writeConform(c net.Conn, id string, e conformance.Exchange) {
	method, path := "GET", "/"
	if e.Chunks != nil {
		method = "POST"
	}
	if e.Path != "" {
		path = e.Path
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nhost: test\r\nx-id: %s\r\nx-script: %s\r\n", method, path, id, e.Script)
	for _, f := range e.Header {
		head += f[0] + ": " + f[1] + "\r\n"
	}
	if e.Brief {
		head += "x-brief: 1\r\n"
	}
	if e.Sized {
		head += fmt.Sprintf("content-length: %d\r\n", len(strings.Join(e.Chunks, "")))
	}
	chunked := !e.Sized && (e.Chunks != nil || e.Trailers != nil)
	if chunked {
		head += "transfer-encoding: chunked\r\n"
	}
	send := func(s string) {
		_, _ = io.WriteString(c, s)
		time.Sleep(conformance.Gap)
	}
	send(head + "\r\n")
	for _, chunk := range e.Chunks {
		if chunked {
			chunk = fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
		}
		send(chunk)
	}
	switch {
	case e.Abort:
		_ = c.Close()
	case chunked:
		end := "0\r\n"
		for _, f := range e.Trailers {
			end += f[0] + ": " + f[1] + "\r\n"
		}
		send(end + "\r\n")
	}
}
