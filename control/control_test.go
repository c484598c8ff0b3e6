package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// engine is a fake one: its metrics are what a test stores.
type engine struct {
	metrics atomic.Value
	address string
}

func newEngine(t *testing.T, metrics string) *engine {
	t.Helper()
	e := new(engine)
	e.metrics.Store(metrics)
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, e.metrics.Load().(string)) })
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"tiny"},{"id":"lora-a","parent":"tiny"}]}`)
	})
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	e.address = srv.Listener.Addr().String()
	return e
}

// program is control as run from its command line.
type program struct {
	url    string
	stop   context.CancelFunc
	exit   chan int
	stderr bytes.Buffer // to be read after the end
}

// launch runs control with a configuration, until it says that it is ready.
func launch(t *testing.T, yaml string) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "control.yaml")
	write(t, path, "listen: 127.0.0.1:0\n"+yaml)
	ctx, stop := context.WithCancel(t.Context())
	p := &program{stop: stop, exit: make(chan int, 1)}
	out, in := io.Pipe()
	go func() {
		p.exit <- run(ctx, []string{"-config", path}, in, &p.stderr)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no ready line: %v", err)
	}
	go io.Copy(io.Discard, out)
	var ok bool
	if p.url, ok = strings.CutPrefix(strings.TrimSpace(line), "ready "); !ok {
		t.Fatalf("said %q", line)
	}
	t.Cleanup(func() { p.end(t) })
	return p
}

// end stops the program as SIGTERM does, and checks how it ended. It may be
// called twice.
func (p *program) end(t *testing.T) {
	t.Helper()
	p.stop()
	select {
	case code := <-p.exit:
		if code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
		p.exit <- 0
	case <-time.After(20 * time.Second):
		t.Error("does not end")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *program) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// follow polls as a filter does until ok says that the state is as it should
// be.
func (p *program) follow(t *testing.T, v *state.View, what string, ok func([]state.Replica) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		switch code, body := p.get(t, v.Query([]string{"default"})); code {
		case http.StatusOK:
			if _, err := v.Apply([]byte(body)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case http.StatusNoContent:
		default:
			t.Fatalf("%s: status %d: %s", what, code, body)
		}
		if pools := v.Snapshot().Pools; len(pools) == 1 && ok(pools[0].Replicas) {
			return
		}
	}
	t.Fatalf("%s: not seen; %.500s", what, fmt.Sprintf("%+v", v.Snapshot()))
}

const loaded = "process_start_time_seconds 1.7e9\nvllm:num_requests_waiting %d\nvllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.5\n"

// Engines in, long poll out: the whole program.
func TestControl(t *testing.T) {
	a, b := newEngine(t, fmt.Sprintf(loaded, 1)), newEngine(t, fmt.Sprintf(loaded, 1))
	file := filepath.Join(t.TempDir(), "replicas")
	write(t, file, a.address+"\n")
	p := launch(t, "scrape: {interval: 20ms}\npools:\n- name: default\n  replicas_file: "+file+"\n- name: other\n  replicas: []\n")

	var v state.View
	p.follow(t, &v, "first state", func(rs []state.Replica) bool {
		return len(rs) == 1 && rs[0].Health == state.Healthy && rs[0].Load.Waiting == 1 && rs[0].Load.KV == .5 &&
			len(rs[0].Models) == 1 && rs[0].Models[0] == "tiny" && len(rs[0].Adapters) == 1 && rs[0].Incarnation != 0
	})
	if g := v.Snapshot().Generation; g > 3 {
		t.Errorf("the first complete state is generation %d", g)
	}
	a.metrics.Store(fmt.Sprintf(loaded, 7))
	p.follow(t, &v, "load", func(rs []state.Replica) bool { return rs[0].Load.Waiting == 7 })
	write(t, file, a.address+"\n"+b.address+"\n")
	p.follow(t, &v, "added", func(rs []state.Replica) bool { return len(rs) == 2 && rs[1].Health == state.Healthy })
	write(t, file, a.address+" draining\n"+b.address+"\n")
	p.follow(t, &v, "draining", func(rs []state.Replica) bool { return rs[0].Health == state.Draining })
	before := v.Snapshot().Pools[0].Replicas[1].Incarnation
	b.metrics.Store("process_start_time_seconds 1.8e9\n")
	p.follow(t, &v, "restarted", func(rs []state.Replica) bool {
		return rs[1].Incarnation != before && rs[1].Load.KV != rs[1].Load.KV
	})
	b.metrics.Store("<html>")
	p.follow(t, &v, "unhealthy", func(rs []state.Replica) bool { return rs[1].Health == state.Unhealthy })
	write(t, file, b.address+"\n")
	p.follow(t, &v, "removed", func(rs []state.Replica) bool { return len(rs) == 1 && rs[0].Slot == 1 })

	checkPages(t, p, b.address)
}

func checkPages(t *testing.T, p *program, address string) {
	t.Helper()
	f := func(path string, status int, contains ...string) {
		t.Helper()
		code, body := p.get(t, path)
		if code != status {
			t.Errorf("%s: status %d", path, code)
		}
		for _, c := range contains {
			if !strings.Contains(body, c) {
				t.Errorf("%s lacks %q:\n%.3000s", path, c, body)
			}
		}
	}
	f("/healthz", 200, "ok")
	f("/readyz", 200, "ready")
	f("/v1/pools", 200, `"address": "`+address+`"`, `"slot": "r1"`, `"state": "unhealthy"`)
	f("/metrics", 200, "warmlane_control_scrapes_total{outcome=\"ok\"} ", "warmlane_control_scrapes_total{outcome=\"malformed\"} ",
		"warmlane_control_replicas{pool=\"default\",state=\"unhealthy\"} 1", "warmlane_control_state_generation ",
		"warmlane_control_state_bytes_total ", "warmlane_control_state_waiters 0", "go_goroutines ")
	f("/", 404)
}

// The usage metric under its new name on two engines, under its old name, and
// missing: read, read, and not known, which a gauge shows.
func TestRenamedUsageMetric(t *testing.T) {
	one := newEngine(t, "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.83\nvllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.10\n")
	two := newEngine(t, "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.40\n")
	three := newEngine(t, "vllm:num_requests_running{model_name=\"m\"} 0\n")
	p := launch(t, fmt.Sprintf("pools: [{name: default, replicas: ['%s', '%s', '%s']}]", one.address, two.address, three.address))
	var v state.View
	p.follow(t, &v, "all", func(rs []state.Replica) bool {
		return len(rs) == 3 && rs[0].Load.KV == .465 && rs[1].Load.KV == .4 &&
			rs[2].Health == state.Healthy && rs[2].Load.KV != rs[2].Load.KV && rs[2].Load.Running == 0
	})
	if _, body := p.get(t, "/metrics"); !strings.Contains(body, `warmlane_control_load_unknown{pool="default",signal="kv_usage"} 1`) {
		t.Error("no gauge shows the missing usage")
	}
}

// Two spellings of an IPv6 address are one replica, told as Envoy prints it.
func TestIPv6Spellings(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "up 1\n")
	})}}
	srv.Start()
	defer srv.Close()
	short := l.Addr().String()
	long := strings.Replace(short, "::1", "0:0:0:0:0:0:0:1", 1)
	p := launch(t, fmt.Sprintf("pools: [{name: default, replicas: ['%s', '%s']}]", long, short))
	var v state.View
	p.follow(t, &v, "one replica", func(rs []state.Replica) bool {
		return len(rs) == 1 && rs[0].Address == short && rs[0].Health == state.Healthy
	})
}

// A poll that waits is answered when the program is told to end, and the
// program ends soon and cleanly.
func TestGracefulStop(t *testing.T) {
	p := launch(t, "pools: [{name: default, replicas: []}]")
	var v state.View
	p.follow(t, &v, "first state", func(rs []state.Replica) bool { return len(rs) == 0 })
	type answer struct {
		code int
		end  bool
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		resp, err := http.Get(p.url + v.Query([]string{"default"}))
		if err != nil {
			got <- answer{err: err}
			return
		}
		resp.Body.Close()
		got <- answer{resp.StatusCode, resp.Close, nil}
	}()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, body := p.get(t, "/metrics"); strings.Contains(body, "state_waiters 1\n") {
			break
		}
	}
	begun := time.Now()
	p.end(t)
	if a := <-got; a.code != http.StatusNoContent || !a.end || a.err != nil {
		t.Errorf("the poll was answered %+v", a)
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("ending took %v", took)
	}
	if _, err := http.Get(p.url + "/healthz"); err == nil {
		t.Error("still listening")
	}
}

// A replica that does not answer must not keep the first state back for ever;
// until it is out the program is alive but not ready.
func TestNotReadyYet(t *testing.T) {
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hung.Close()
	begun := time.Now()
	p := launch(t, "publish: {first_within: 500ms}\npools: [{name: default, replicas: ['"+hung.Listener.Addr().String()+"']}]")
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("ready after %v", took)
	}
	code, body := p.get(t, "/v1/pools")
	var page struct {
		Pools []struct{ Replicas []struct{ State string } }
	}
	if err := json.Unmarshal([]byte(body), &page); code != 200 || err != nil || page.Pools[0].Replicas[0].State != "unknown" {
		t.Errorf("%d, %v: %s", code, err, body)
	}
}

func TestCommandLine(t *testing.T) {
	good, bad := filepath.Join("testdata", "control.yaml"), filepath.Join(t.TempDir(), "bad.yaml")
	write(t, bad, "pools: [{nam: x}]")
	f := func(status int, out, errOut string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run(t.Context(), args, &stdout, &stderr); got != status {
			t.Errorf("%v: status %d", args, got)
		}
		if !strings.Contains(stdout.String(), out) || !strings.Contains(stderr.String(), errOut) {
			t.Errorf("%v: said %q and %q", args, stdout.String(), stderr.String())
		}
	}
	f(0, good+": ok", "", "-config", good, "-check")
	f(1, "", bad+": pools[0].nam: unknown key; allowed: dns, kv_events, models, name, replicas, replicas_file, scrape", "-config", bad, "-check")
	f(1, "", "no such file", "-config", bad+"x")
	f(2, "", "want -config FILE")
	f(2, "", "want -config FILE", "-config", good, "more")
	f(2, "", "flag provided but not defined", "-x")
	f(0, "", "-check", "-h")
}

func TestAddressInUse(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "control.yaml")
	write(t, path, "listen: "+srv.Listener.Addr().String()+"\npools: [{name: p, replicas: []}]")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-config", path}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "listen: ") {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}
