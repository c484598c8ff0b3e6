package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/state"
	"github.com/warmlane/warmlane/hostsim"
	"github.com/warmlane/warmlane/hostsim/transcript"
)

// proxy is the compiled module in hostsim, with the native filters behind it
// and a scripted control service.
type proxy struct {
	t        *testing.T
	host     *hostsim.Host
	replicas []string
	control  hostsim.Upstream
}

func newProxy(t *testing.T, replicas, workers int, config string) *proxy {
	t.Helper()
	return newProxyOf(t, replicas, workers, config, func(p *proxy) hostsim.Upstream { return p.whole(1) })
}

// newProxyOf is a proxy with a control of its own.
func newProxyOf(t *testing.T, replicas, workers int, config string, control func(p *proxy) hostsim.Upstream) *proxy {
	t.Helper()
	p := &proxy{t: t}
	for i := range replicas {
		p.replicas = append(p.replicas, "10.0.0."+strconv.Itoa(i+1)+":8000")
	}
	host, err := hostsim.New(context.Background(), moduleBytes(t), hostsim.Options{
		Workers: workers, PluginConfig: withControl(t, config), Failure: hostsim.FailReload, Buffer: 32 << 20,
		Mutations: []hostsim.Mutation{
			{Remove: "x-gateway-destination-endpoint"}, {Remove: "x-warmlane-pool"}, {Remove: "x-warmlane-work"},
			{Append: "x-gateway-destination-endpoint", FilterState: "wasm.warmlane.destination"},
			{Append: "x-warmlane-pool", FilterState: "wasm.warmlane.pool"},
			{Append: "x-warmlane-work", FilterState: "wasm.warmlane.work"},
			{Overwrite: "content-length", FilterState: "wasm.warmlane.length"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	p.host = host
	p.control = control(p)
	host.SetUpstream("control", func(r *hostsim.UpstreamRequest) hostsim.Reply { return p.control(r) })
	host.Advance(2 * time.Second)
	return p
}

// withControl adds to a configuration where control is.
func withControl(t *testing.T, config string) string {
	t.Helper()
	c := map[string]any{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &c); err != nil {
			t.Fatal(err)
		}
	}
	c["control"] = map[string]any{"cluster": "control"}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// whole answers a first poll with the state, and further ones, as control
// does, with nothing after 25 s.
func (p *proxy) whole(generation uint64) hostsim.Upstream {
	pool := state.Pool{Name: "default", Models: []string{"m", "sql"}}
	for i, a := range p.replicas {
		pool.Replicas = append(pool.Replicas, state.Replica{
			Slot: uint16(i), Incarnation: 1, Address: a, Health: state.Healthy, Models: pool.Models, Load: state.NoLoad(),
		})
	}
	s := &state.Snapshot{Epoch: 7, Generation: generation, Pools: []state.Pool{pool}}
	return func(r *hostsim.UpstreamRequest) hostsim.Reply {
		if strings.Contains(r.Header.Get(":path"), fmt.Sprintf("gen=%d", generation)) {
			return hostsim.Reply{Status: 204, Delay: 25 * time.Second}
		}
		return hostsim.Reply{Body: state.Pages(nil, s, state.MaxPage)[0]}
	}
}

func (p *proxy) inFlight() (n float64) {
	p.host.Advance(time.Second)
	for name, v := range p.host.Metrics().Gauges {
		if strings.HasPrefix(name, "warmlane_in_flight;") {
			n += float64(v)
		}
	}
	return n
}

// TestTranscripts plays on the module what exchange plays natively and the
// end-to-end tests on Envoy.
func TestTranscripts(t *testing.T) {
	scripts, err := transcript.Load("testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			p := newProxy(t, s.Replicas, 1, string(s.Config))
			if err := s.Play(p); err != nil {
				t.Error(err)
			}
			if n := p.inFlight(); n != 0 {
				t.Errorf("%v requests are still on the books", n)
			}
			if traps := p.host.Traps(); len(traps) > 0 {
				t.Errorf("a VM died: %v", traps[0].Err)
			}
		})
	}
}

// Do implements transcript.Host.
func (p *proxy) Do(request *transcript.Request, answer *transcript.Answer) (r transcript.Result, err error) {
	p.host.Advance(50 * time.Millisecond)
	method := request.Method
	if method == "" {
		method = "POST"
	}
	headers := map[string]string{"x-warmlane-explain": "1"}
	for k, v := range request.Headers {
		headers[k] = v
	}
	up := func(u *hostsim.UpstreamRequest) hostsim.Reply {
		r.Named = u.Header.Get("x-gateway-destination-endpoint")
		r.Replica = p.reached(r.Named, answer.Refuse)
		r.ReplicaHeaders, r.ReplicaBody = flat(u.Header), u.Body
		reply := hostsim.Reply{Status: answer.Status, Body: []byte(answer.Body), ChunkSize: 7, Address: r.Replica}
		for k, v := range answer.Headers {
			reply.Header = append(reply.Header, [2]string{k, v})
		}
		return reply
	}
	result, err := p.host.Do(hostsim.Request{
		Method: method, Path: request.Path, Header: list(headers), Body: request.Bytes(), ChunkSize: request.Chunk,
	}, up)
	if err != nil {
		return r, err
	}
	r.Status, r.ClientHeaders, r.ClientBody = result.Status, flat(result.Header), result.Body
	if _, after, ok := strings.Cut(r.ClientHeaders["x-warmlane-decision"], "branch="); ok {
		r.Branch, _, _ = strings.Cut(after, ",")
	}
	return r, nil
}

// reached is the replica that override_host picks, and its retry.
func (p *proxy) reached(named string, refuse bool) string {
	order := strings.Split(named, ",")
	if named == "" {
		order = p.replicas
	}
	if refuse {
		return order[1]
	}
	return order[0]
}

func flat(h hostsim.Header) map[string]string {
	m := map[string]string{}
	for _, kv := range h {
		m[kv[0]] = kv[1]
	}
	return m
}

func list(m map[string]string) (h hostsim.Header) {
	for k, v := range m {
		h = append(h, [2]string{k, v})
	}
	return h
}

func chat(text string, stream bool) []byte {
	return fmt.Appendf(nil, `{"model":"m","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text)
}

// ask sends a chat through a worker and gives the replica that got it.
func (p *proxy) ask(worker int, body []byte, up hostsim.Upstream) (named string, r *hostsim.Result) {
	p.t.Helper()
	r, err := p.host.Do(hostsim.Request{
		Method: "POST", Path: "/v1/chat/completions", Body: body, Worker: worker, Header: hostsim.Header{{"x-warmlane-explain", "1"}},
	}, func(u *hostsim.UpstreamRequest) hostsim.Reply {
		named, _, _ = strings.Cut(u.Header.Get("x-gateway-destination-endpoint"), ",")
		reply := up(u)
		reply.Address = named
		return reply
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return named, r
}

func TestWorkersShareOneIndexAndOneLedger(t *testing.T) {
	p := newProxy(t, 3, 3, "")
	prompt := chat(strings.Repeat("warm words ", 400), false)
	home, _ := p.ask(0, prompt, hostsim.Respond(200, "{}"))
	for worker := range 3 {
		if at, _ := p.ask(worker, prompt, hostsim.Respond(200, "{}")); at != home || home == "" {
			t.Errorf("worker %d sent it to %q, want %q", worker, at, home)
		}
	}
	if n := p.inFlight(); n != 0 {
		t.Errorf("%v still on the books", n)
	}
}

// TestRaceForTheIdleReplica lets another worker take the idle replica between
// this worker's look at the ledger and its write.
func TestRaceForTheIdleReplica(t *testing.T) {
	p := newProxy(t, 2, 2, "")
	p.ask(0, chat("warm-up", false), hostsim.Respond(200, "{}"))
	var first, second string
	var open *hostsim.Stream
	err := p.host.OnCall(0, "proxy_set_shared_data", 1, func() {
		s, err := p.host.Stream(1)
		if err != nil {
			t.Error(err)
			return
		}
		open = s
		s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}}, false)
		s.RequestBody(chat(strings.Repeat("long prompt ", 4000), false), true)
		first, _, _ = strings.Cut(s.Upstream().Header.Get("x-gateway-destination-endpoint"), ",")
	})
	if err != nil {
		t.Fatal(err)
	}
	second, _ = p.ask(0, chat(strings.Repeat("other prompt ", 4000), false), hostsim.Respond(200, "{}"))
	if first == "" || first == second {
		t.Errorf("both workers chose %q and %q", first, second)
	}
	open.Abort()
	if n := p.inFlight(); n != 0 {
		t.Errorf("%v still on the books", n)
	}
}

// TestLostControl takes control away in every way: what was last good stays.
func TestLostControl(t *testing.T) {
	f := func(name string, control hostsim.Upstream) {
		t.Helper()
		p := newProxy(t, 2, 1, "")
		p.control = control
		for range 10 {
			p.host.Advance(10 * time.Second)
			if at, r := p.ask(0, chat("x", false), hostsim.Respond(200, "{}")); at == "" || r.Status != 200 {
				t.Fatalf("%s: status %d, destination %q", name, r.Status, at)
			}
		}
		p.control = p.whole(9)
		p.host.Advance(time.Minute)
		if g := p.host.Metrics().Gauges["warmlane_state_generation"]; g != 9 {
			t.Errorf("%s: generation %v after control is back, want 9", name, g)
		}
	}
	f("refuses", hostsim.Respond(503, "no"))
	f("garbage", hostsim.Respond(200, "<html>"))
	f("empty", hostsim.Respond(200, ""))
	f("silent", func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Delay: time.Hour} })
	f("cut off", func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Reset: hostsim.ResetBeforeHead} })
}

func TestControlWasNeverThere(t *testing.T) {
	p := newProxy(t, 0, 1, "")
	p.host.SetUpstream("control", nil)
	for range 5 {
		if at, r := p.ask(0, chat("x", false), hostsim.Respond(200, "{}")); at != "" || r.Status != 200 {
			t.Errorf("status %d, destination %q, want Envoy's own balancer", r.Status, at)
		}
	}
}

// TestConfigurationChange goes on with what is in shared data.
func TestConfigurationChange(t *testing.T) {
	p := newProxy(t, 3, 2, "")
	prompt := chat(strings.Repeat("warm words ", 400), false)
	home, _ := p.ask(0, prompt, hostsim.Respond(200, "{}"))
	if err := p.host.Configure(withControl(t, `{"routing":{"queue_weight":2}}`)); err != nil {
		t.Fatal(err)
	}
	if at, _ := p.ask(1, prompt, hostsim.Respond(200, "{}")); at != home {
		t.Errorf("after the change to %q, want %q", at, home)
	}
	if err := p.host.Configure(`{"routing":{"queue_weight":"heavy"}}`); err == nil {
		t.Error("a wrong configuration was taken")
	}
	said := false
	for _, l := range p.host.Logs() {
		said = said || strings.Contains(l.Message, "routing.queue_weight")
	}
	if !said {
		t.Errorf("the refusal does not name the key: %v", p.host.Logs())
	}
}

func TestSettledOnEveryWayOut(t *testing.T) {
	p := newProxy(t, 2, 1, "")
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	sse := hostsim.Header{{"content-type", "text/event-stream"}}
	ups := map[string]hostsim.Upstream{
		"whole":         func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Header: sse, Body: []byte(event)} },
		"reset at once": func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Reset: hostsim.ResetBeforeHead} },
		"reset in body": func(*hostsim.UpstreamRequest) hostsim.Reply {
			return hostsim.Reply{Header: sse, Body: []byte(event), Reset: hostsim.ResetInBody}
		},
		"trailers": func(*hostsim.UpstreamRequest) hostsim.Reply {
			return hostsim.Reply{Body: []byte("{}"), Trailers: hostsim.Header{{"a", "b"}}}
		},
		"no body":          func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Status: 204} },
		"503":              hostsim.Respond(503, "busy"),
		"no healthy host":  nil,
		"slower than wait": func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Delay: time.Minute} },
	}
	for name, up := range ups {
		if up == nil {
			_, err := p.host.Do(hostsim.Request{Method: "POST", Path: "/v1/chat/completions", Body: chat("x", true)}, nil)
			if err != nil {
				t.Fatal(err)
			}
		} else {
			p.ask(0, chat("x", true), up)
		}
		if n := p.inFlight(); n != 0 {
			t.Errorf("%s: %v still on the books", name, n)
		}
	}
	for _, at := range []string{"before the body", "in the body", "before the head", "in the stream"} {
		s, err := p.host.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}}, false)
		if at != "before the body" {
			body := chat(strings.Repeat("y", 3000), true)
			s.RequestBody(body, at != "in the body")
		}
		if at == "in the stream" {
			s.AnsweredBy("10.0.0.1:8000")
			s.ResponseHeaders(append(hostsim.Header{{":status", "200"}}, sse...), false)
			s.ResponseBody([]byte(event), false)
		}
		s.Abort()
		if n := p.inFlight(); n != 0 {
			t.Errorf("aborted %s: %v still on the books", at, n)
		}
	}
}

// TestSharedDataBudget counts what a request costs in shared data.
func TestSharedDataBudget(t *testing.T) {
	p := newProxy(t, 8, 2, "")
	p.ask(0, chat("warm-up", false), hostsim.Respond(200, "{}"))
	f := func(size int, stream bool, reads, writes int) {
		t.Helper()
		event := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
		up := func(*hostsim.UpstreamRequest) hostsim.Reply {
			return hostsim.Reply{Header: hostsim.Header{{"content-type", "text/event-stream"}}, Body: []byte(event)}
		}
		_, r := p.ask(0, chat(strings.Repeat(fmt.Sprintf("%15d ", size), size/16), stream), up)
		if r.SharedGets > reads || r.SharedSets > writes {
			t.Errorf("%d bytes, stream %v: %d reads and %d writes, want at most %d and %d", size, stream, r.SharedGets, r.SharedSets, reads, writes)
		}
	}
	f(2<<10, false, 6, 4)
	f(32<<10, true, 8, 6)
	f(1<<20, true, 12, 6)
}

// TestMemory holds a VM to its budget after large prompts and many streams.
func TestMemory(t *testing.T) {
	p := newProxy(t, 8, 1, "")
	var open []*hostsim.Stream
	for i := range 500 {
		s, err := p.host.Stream(0)
		if err != nil {
			t.Fatal(err)
		}
		s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}}, false)
		s.RequestBody(chat(fmt.Sprint("stream ", i), true), true)
		open = append(open, s)
	}
	for _, s := range open {
		s.Abort()
	}
	p.ask(0, chat(strings.Repeat("z", 8<<20), false), hostsim.Respond(200, "{}"))
	before := p.host.Memory(0)
	for i := range 3000 {
		p.ask(0, chat(fmt.Sprint("request ", i, strings.Repeat("w", 500)), false), hostsim.Respond(200, "{}"))
	}
	after := p.host.Memory(0)
	const budget = 48 << 20
	if after > budget || after > before {
		t.Errorf("%d KiB before 3,000 requests, %d KiB after, budget %d KiB", before>>10, after>>10, budget>>10)
	}
	if n := p.host.Shared().Bytes(); n > 17<<20 {
		t.Errorf("shared data holds %d bytes", n)
	}
}
