//go:build e2e

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// backend is a scripted replica.
type backend struct {
	t       *testing.T
	address string
	answer  func(w http.ResponseWriter, r *http.Request, body []byte)

	mu     sync.Mutex
	server *http.Server
	seen   []arrival
}

// arrival is a request as it came to a replica.
type arrival struct {
	path, sum string
	header    http.Header
	length    int
	body      []byte
	chunked   bool
}

// backends starts replicas that answer 200 with their address and the hash of
// what they got, under a path only the client's requests take.
func backends(t *testing.T, n int) []*backend { t.Helper(); return backendsAt(t, "127.0.0.1:0", n) }

func backendsAt(t *testing.T, address string, n int) []*backend {
	t.Helper()
	list := make([]*backend, n)
	for i := range list {
		list[i] = &backend{t: t, address: address}
		list[i].listen()
		t.Cleanup(list[i].stop)
	}
	return list
}

func addresses(list []*backend) string {
	s := ""
	for i, b := range list {
		if i > 0 {
			s += ","
		}
		s += b.address
	}
	return s
}

// listen begins to serve, at the same address if it did before.
func (b *backend) listen() {
	b.t.Helper()
	var l net.Listener
	var err error
	for range 50 {
		if l, err = net.Listen("tcp", b.address); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.address = l.Addr().String()
	server := &http.Server{Handler: b}
	b.mu.Lock()
	b.server = server
	b.mu.Unlock()
	go server.Serve(l)
}

// stop cuts all connections and refuses new ones.
func (b *backend) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server.Close()
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/metrics":
		fmt.Fprint(w, "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 0\nvllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 0\nvllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.1\n")
		return
	case r.URL.Path == "/v1/models" && r.Header.Get("x-test") == "":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"},{"id":"sql","object":"model","parent":"m"}]}`)
		return
	case r.URL.Path == "/kv_event_sources":
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method == http.MethodPost || r.Header.Get("x-test") != "" { // else it is control that looks
		b.note(r, body)
	}
	if b.answer != nil {
		b.answer(w, r, body)
		return
	}
	w.Header().Set("content-type", "application/json")
	fmt.Fprintf(w, `{"replica":%q,"sum":%q}`, b.address, sumOf(body))
}

func (b *backend) note(r *http.Request, body []byte) {
	a := arrival{path: r.URL.Path, sum: sumOf(body), header: r.Header.Clone(), length: len(body), chunked: len(r.TransferEncoding) > 0}
	if len(body) < 1<<20 {
		a.body = body
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, a)
}

// arrivals gives what came since the last call.
func (b *backend) arrivals() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	b.seen = nil
	return seen
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}
