package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/hostsim"
)

// beside is the compiled module in the role that reports, with an engine.
type beside struct {
	t       *testing.T
	host    *hostsim.Host
	metrics hostsim.Upstream // of the engine
	asked   map[int]int      // calls for the metrics, by thread
}

const engineMetrics = "vllm:num_requests_waiting 3\nvllm:num_requests_running{engine=\"0\"} 12\nvllm:kv_cache_usage_perc 0.41\n"

func newBeside(t *testing.T, workers int) *beside {
	t.Helper()
	b := &beside{t: t, asked: map[int]int{}, metrics: hostsim.Respond(200, engineMetrics)}
	host, err := hostsim.New(context.Background(), moduleBytes(t), hostsim.Options{
		Workers: workers, Failure: hostsim.FailReload, PluginConfig: `{"role":"report","report":{"cluster":"engine","path":"/m"}}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	b.host = host
	host.SetUpstream("engine", func(r *hostsim.UpstreamRequest) hostsim.Reply {
		b.asked[r.Worker]++
		if path := r.Header.Get(":path"); path != "/m" {
			t.Errorf("asked for %q", path)
		}
		return b.metrics(r)
	})
	host.Advance(time.Second)
	return b
}

// report is what the header of an answer says to a router.
func (b *beside) report(h hostsim.Header) route.Report {
	b.t.Helper()
	rep := route.NoReport()
	if bad := route.ParseReport([]byte(h.Get("endpoint-load-metrics")), &rep); bad != 0 {
		b.t.Errorf("report %q: %d bad", h.Get("endpoint-load-metrics"), bad)
	}
	return rep
}

// ask sends a request through a worker.
func (b *beside) ask(r hostsim.Request, up hostsim.Upstream) (*hostsim.Result, route.Report) {
	b.t.Helper()
	if r.Path == "" {
		r.Method, r.Path = "POST", "/v1/chat/completions"
	}
	result, err := b.host.Do(r, up)
	if err != nil {
		b.t.Fatal(err)
	}
	return result, b.report(result.Header)
}

// wantBooks asks a worker, by a question that is no work, for the ledger.
func (b *beside) wantBooks(when string, worker int, inFlight, owed int32) {
	b.t.Helper()
	_, rep := b.ask(hostsim.Request{Path: "/health", Worker: worker}, hostsim.Respond(200, ""))
	if rep.InFlight != inFlight || rep.Owed != owed {
		b.t.Errorf("%s: worker %d says %d in flight, %d owed, want %d and %d", when, worker, rep.InFlight, rep.Owed, inFlight, owed)
	}
}

// open begins a request on a worker and gives it as far as the engine has it.
func (b *beside) open(worker int, work string) *hostsim.Stream {
	b.t.Helper()
	s, err := b.host.Stream(worker)
	if err != nil {
		b.t.Fatal(err)
	}
	s.RequestHeaders(hostsim.Header{
		{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "a"}, {"x-warmlane-work", work},
	}, false)
	s.RequestBody(chat("x", true), true)
	return s
}

var sseHead = hostsim.Header{{":status", "200"}, {"content-type", "text/event-stream"}}

const sseToken = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"

// TestReportScrapesOnce: all VMs of a proxy together read the metrics once an
// interval, on the main thread.
func TestReportScrapesOnce(t *testing.T) {
	b := newBeside(t, 2)
	b.asked = map[int]int{}
	for range 10 {
		b.ask(hostsim.Request{Body: chat("x", false), Worker: rand.IntN(2)}, hostsim.Respond(200, "{}"))
		b.host.Advance(time.Second)
	}
	if n := b.asked[hostsim.MainThread]; n != 40 || len(b.asked) != 1 {
		t.Errorf("asked %v times in 10 s, want 40 on thread %d", b.asked, hostsim.MainThread)
	}
}

// TestReportOnEveryAnswer: streams, errors and replies of the proxy's own.
func TestReportOnEveryAnswer(t *testing.T) {
	b := newBeside(t, 1)
	orca := hostsim.Header{{"endpoint-load-metrics", "TEXT named_metrics.kv_cache_usage_perc=0.9"}, {"endpoint-load-metrics-bin", "MQAAAAAAABJA"}}
	for name, up := range map[string]hostsim.Upstream{
		"whole": hostsim.Respond(200, "{}"),
		"stream": func(*hostsim.UpstreamRequest) hostsim.Reply {
			return hostsim.Reply{Header: sseHead[1:], Body: []byte(sseToken)}
		},
		"no body": func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Status: 204} },
		"404":     hostsim.Respond(404, "{}"),
		"own":     func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Header: orca, Body: []byte("{}")} },
		"reset":   func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Reset: hostsim.ResetBeforeHead} },
		"no host": nil,
	} {
		body := chat(strings.Repeat("long ", 30_000), true)
		work := hostsim.Header{{"x-warmlane-work", "prompt=812, uncached=172"}}
		r, rep := b.ask(hostsim.Request{Body: body, Header: work}, up)
		if rep.Waiting != 3 || rep.Running != 12 || rep.KV != 0.41 || rep.InFlight != 1 {
			t.Errorf("%s: %q", name, r.Header.Get("endpoint-load-metrics"))
		}
		if r.Header.Has("endpoint-load-metrics-bin") {
			t.Errorf("%s: the engine's binary report stays beside ours", name)
		}
		if up != nil && (r.Upstream.Header.Has("x-warmlane-work") || string(r.Upstream.Body) != string(body)) {
			t.Errorf("%s: the engine got %d bytes, want %d, and %v", name, len(r.Upstream.Body), len(body), r.Upstream.Header)
		}
		b.wantBooks(name, 0, 0, 0)
	}
}

// TestReportLedger follows a stream on one worker from another.
func TestReportLedger(t *testing.T) {
	b := newBeside(t, 2)
	s := b.open(0, "prompt=9000, uncached=4000")
	b.wantBooks("sent", 1, 1, 4000)
	s.ResponseHeaders(sseHead, false)
	b.wantBooks("head", 1, 1, 4000)
	s.ResponseBody([]byte(sseToken), false)
	b.wantBooks("first token", 1, 1, 0)
	other := b.open(1, "prompt=100")
	b.wantBooks("two", 0, 2, 100)
	other.Abort()
	b.host.Advance(20 * time.Millisecond) // what was begun runs off by the clock
	b.wantBooks("cancelled", 0, 1, 0)
	s.ResponseBody(nil, true)
	b.wantBooks("ended", 1, 0, 0)
}

// TestReportFades takes the engine away: what it said is repeated for 2 s, what
// is counted stays.
func TestReportFades(t *testing.T) {
	b := newBeside(t, 1)
	said := func(up hostsim.Upstream, after time.Duration) int32 {
		b.metrics = up
		b.host.Advance(after)
		_, rep := b.ask(hostsim.Request{Body: chat("x", false)}, hostsim.Respond(503, ""))
		if rep.InFlight != 1 {
			t.Errorf("%d in flight", rep.InFlight)
		}
		return rep.Waiting
	}
	for name, up := range map[string]hostsim.Upstream{
		"refuses": hostsim.Respond(503, "no"),
		"garbage": hostsim.Respond(200, "<html>"),
		"large":   hostsim.Respond(200, strings.Repeat("x", 5<<20)),
		"silent":  func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Delay: time.Hour} },
		"cut off": func(*hostsim.UpstreamRequest) hostsim.Reply { return hostsim.Reply{Reset: hostsim.ResetBeforeHead} },
	} {
		if n := said(up, 1500*time.Millisecond); n != 3 {
			t.Errorf("%s: %d waiting after 1.5 s, want 3", name, n)
		}
		if n := said(up, time.Second); n != -1 {
			t.Errorf("%s: %d waiting after 2.5 s, want unknown", name, n)
		}
		if n := said(hostsim.Respond(200, engineMetrics), 2*time.Second); n != 3 {
			t.Errorf("%s: %d waiting when the engine is back, want 3", name, n)
		}
	}
	logged := 0
	for _, l := range b.host.Logs() {
		if strings.Contains(l.Message, "engine: ") {
			logged++
		}
	}
	if logged != 5 {
		t.Errorf("%d lines in the log for 5 faults: %v", logged, b.host.Logs())
	}
}

// TestReportEndsAtZero runs random streams over two workers.
func TestReportEndsAtZero(t *testing.T) {
	b := newBeside(t, 2)
	dice := rand.New(rand.NewPCG(3, 4))
	var open []*hostsim.Stream
	for range 400 {
		if len(open) < 3 || dice.IntN(4) == 0 {
			open = append(open, b.open(dice.IntN(2), fmt.Sprintf("prompt=%d", dice.IntN(9000))))
			continue
		}
		s := open[dice.IntN(len(open))]
		switch dice.IntN(6) { // some come out of order, and are refused
		case 0:
			s.ResponseHeaders(sseHead, dice.IntN(3) == 0)
		case 1:
			s.ResponseHeaders(hostsim.Header{{":status", "200"}}, false)
		case 2:
			s.ResponseBody([]byte(sseToken), dice.IntN(3) == 0)
		case 3:
			s.Abort()
		case 4:
			s.UpstreamReset()
		default:
			b.host.Advance(time.Duration(dice.IntN(300)) * time.Millisecond)
		}
	}
	for _, s := range open {
		s.Close()
	}
	b.host.Advance(time.Second)
	for worker := range 2 {
		b.wantBooks("in the end", worker, 0, 0)
	}
	if traps := b.host.Traps(); len(traps) > 0 {
		t.Errorf("a VM died: %v", traps[0].Err)
	}
}

// TestReportSharedDataBudget counts what a request costs in shared data.
func TestReportSharedDataBudget(t *testing.T) {
	b := newBeside(t, 2)
	up := func(*hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Header: sseHead[1:], Body: []byte(sseToken)}
	}
	for range 3 {
		r, _ := b.ask(hostsim.Request{Body: chat("x", true), Header: hostsim.Header{{"x-warmlane-work", "prompt=8"}}}, up)
		if r.SharedGets > 5 || r.SharedSets > 4 {
			t.Errorf("%d reads and %d writes, want at most 5 and 4", r.SharedGets, r.SharedSets)
		}
	}
}
