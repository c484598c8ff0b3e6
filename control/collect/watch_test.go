package collect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// quick is a scrape configuration for tests.
var quick = Scrape{
	Interval: 20 * time.Millisecond, Timeout: 20 * time.Second, MaxBytes: 128 << 10,
	ModelsEvery: 10 * time.Millisecond, HealthEvery: 10 * time.Millisecond, UnhealthyAfter: 2,
}

// fakeEngine serves what its fields say; nil fields give 404.
type fakeEngine struct {
	metrics, models, health http.HandlerFunc
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := map[string]http.HandlerFunc{"/metrics": f.metrics, "/v1/models": f.models, "/health": f.health}[r.URL.Path]
	if h == nil {
		h = http.NotFound
	}
	h(w, r)
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// asked starts a server and an engine that asks it.
func asked(t *testing.T, h http.Handler) *engine {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return engineAt(t, srv.Listener.Addr().String())
}

func engineAt(t *testing.T, address string) *engine {
	c := newClient(quick.MaxBytes)
	t.Cleanup(c.http.CloseIdleConnections)
	return newEngine(c, quick, address, new(tracker))
}

func TestEngineIsRead(t *testing.T) {
	e := asked(t, &fakeEngine{
		metrics: text(string(fixture(t, "metrics-loaded.txt"))),
		models:  text(string(fixture(t, "lora-models.json"))),
		health:  status(200),
	})
	r := e.ask(t.Context(), time.Now)
	got := fmt.Sprint(r.outcome, r.err, r.health, r.load.Waiting, r.load.Running, r.load.KV,
		r.block, r.cacheTokens, r.served.models, r.served.adapters, r.incarnation != 0)
	if want := "ok<nil> healthy 8 8 0.518 32 8192 [tiny] [{lora-a loaded}] true"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever a server does: it costs a bounded time and memory, is named, and
// makes the replica unhealthy after some times, not at once.
func TestHostileServers(t *testing.T) {
	f := func(want Outcome, metrics http.HandlerFunc) {
		t.Helper()
		e := asked(t, &fakeEngine{metrics: metrics})
		if want == Timeout {
			e.scrape.Timeout = 200 * time.Millisecond // else long, for slow machines
		}
		begun := time.Now()
		r := e.ask(t.Context(), time.Now)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: took %v", want, took)
		}
		if r.outcome != want || r.err == nil || r.health != state.Unknown {
			t.Errorf("got %s, %v, %v; want %s", r.outcome, r.err, r.health, want)
		}
		if r = e.ask(t.Context(), time.Now); r.health != state.Unhealthy {
			t.Errorf("%s twice: %v", want, r.health)
		}
	}
	f(Malformed, text("<!DOCTYPE html>\n<html><body>sign in</body></html>"))
	f(Malformed, text(`{"error":"x"}`))
	f(Status, status(500))
	f(Status, status(404))
	f(Status, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	})
	f(TooLarge, text(strings.Repeat("a 1\n", 1<<16)))
	f(Timeout, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f(Timeout, endless("up 1\n", 10*time.Millisecond))
	f(TooLarge, endless(strings.Repeat("up 1\n", 1<<12), 0))
	f(Broken, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "up 1\n")
	})
	f(Broken, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(conn, "NOT HTTP\r\n\r\n")
			conn.Close()
		}
	})
	f(Broken, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 128<<10))
	})
}

// endless writes a text again and again until the other side has enough.
func endless(s string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, s); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(pause)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if r := engineAt(t, l.Addr().String()).ask(t.Context(), time.Now); r.outcome != Refused {
		t.Errorf("got %s: %v", r.outcome, r.err)
	}
}

func TestIPv6Replica(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: &fakeEngine{metrics: text("up 1\n")}}}
	srv.Start()
	defer srv.Close()
	address, err := ParseAddress(strings.Replace(l.Addr().String(), "::1", "0:0:0:0:0:0:0:1", 1))
	if err != nil || address != l.Addr().String() {
		t.Fatalf("%s, %v", address, err)
	}
	if r := engineAt(t, address).ask(t.Context(), time.Now); r.health != state.Healthy {
		t.Errorf("got %v: %v", r.health, r.err)
	}
}

// The page /health tells of an engine whose core is dead while its metrics
// are still served. A server without that page is not ill.
func TestHealthPage(t *testing.T) {
	var code atomic.Int32
	e := asked(t, &fakeEngine{metrics: text("up 1\n"), health: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code.Load()))
	}})
	now := time.Now()
	f := func(status int32, want state.Health) {
		t.Helper()
		code.Store(status)
		now = now.Add(time.Second)
		if r := e.ask(t.Context(), func() time.Time { return now }); r.health != want {
			t.Errorf("status %d: %v", status, r.health)
		}
	}
	f(200, state.Healthy)
	f(503, state.Unhealthy)
	f(503, state.Unhealthy)
	f(404, state.Healthy)
	f(500, state.Unhealthy)
	f(200, state.Healthy)
}

// A failed scrape leaves the load as it was known, with the time it was known
// at; one good scrape makes the replica healthy again.
func TestRecovery(t *testing.T) {
	var down atomic.Bool
	e := asked(t, &fakeEngine{metrics: func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(500)
			return
		}
		io.WriteString(w, "vllm:num_requests_running 3\n")
	}})
	first := e.ask(t.Context(), time.Now)
	down.Store(true)
	r := e.ask(t.Context(), time.Now)
	if r.health != state.Healthy || !state.EqualLoad(&r.load, &first.load) {
		t.Errorf("after one failure: %v %+v", r.health, r.load)
	}
	if r = e.ask(t.Context(), time.Now); r.health != state.Unhealthy {
		t.Errorf("after two: %v", r.health)
	}
	down.Store(false)
	if r = e.ask(t.Context(), time.Now); r.health != state.Healthy || r.load.Running != 3 {
		t.Errorf("back: %v %+v", r.health, r.load)
	}
}

// An adapter that the metrics name and the list lacks makes us look again
// before it is time to.
func TestNewAdapterIsLookedUp(t *testing.T) {
	var looks atomic.Int32
	var metrics atomic.Value
	metrics.Store("up 1\n")
	e := asked(t, &fakeEngine{
		metrics: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, metrics.Load().(string)) },
		models: func(w http.ResponseWriter, _ *http.Request) {
			looks.Add(1)
			io.WriteString(w, `{"data":[{"id":"a","parent":"m"}]}`)
		},
	})
	e.scrape.ModelsEvery = time.Hour
	now := time.Now()
	f := func(text string, want int32) {
		t.Helper()
		metrics.Store(text)
		now = now.Add(time.Second)
		e.ask(t.Context(), func() time.Time { return now })
		if got := looks.Load(); got != want {
			t.Errorf("%q: %d looks, want %d", text, got, want)
		}
	}
	f("up 1\n", 1)
	f("up 1\n", 1)
	f("vllm:lora_requests_info{running_lora_adapters=\"a\"} 5\n", 1)
	f("vllm:lora_requests_info{running_lora_adapters=\"b\"} 6\n", 2)
}

func TestRunEndsWithItsContext(t *testing.T) {
	e := asked(t, &fakeEngine{metrics: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	e.scrape.Timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	e.run(ctx, func(reading) { t.Error("a reading of an engine that does not answer") })
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
