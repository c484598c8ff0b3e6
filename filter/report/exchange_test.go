package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
)

// head is a header map.
type head struct {
	pairs []string // name, value, name, value, ...
	name  []byte
	value []byte
}

func (h *head) Next() (name, value []byte, ok bool) {
	if len(h.pairs) == 0 {
		return nil, nil, false
	}
	h.name, h.value = append(h.name[:0], h.pairs[0]...), append(h.value[:0], h.pairs[1]...)
	h.pairs = h.pairs[2:]
	return h.name, h.value, true
}

func post(more ...string) *head {
	return &head{pairs: append([]string{":method", "POST", ":path", "/v1/chat/completions"}, more...)}
}

func reply(more ...string) *head { return &head{pairs: append([]string{":status", "200"}, more...)} }

const eventStream = "text/event-stream; charset=utf-8"

const token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"

// parsed is a stamp as a router reads it.
func parsed(t *testing.T, stamp []byte) route.Report {
	t.Helper()
	rep := route.NoReport()
	if bad := route.ParseReport(stamp, &rep); bad != 0 {
		t.Errorf("%q: %d bad values", stamp, bad)
	}
	return rep
}

// wantBooks fails unless a worker says this of the ledger.
func wantBooks(t *testing.T, when string, r *Reporter, now int64, inFlight, owed int32) {
	t.Helper()
	rep := parsed(t, []byte(stamped(r, now)))
	if rep.InFlight != inFlight || rep.Owed != owed {
		t.Errorf("%s: %d in flight, %d owed, want %d and %d", when, rep.InFlight, rep.Owed, inFlight, owed)
	}
}

// TestStream follows one stream through the eyes of two workers.
func TestStream(t *testing.T) {
	mem := shared.NewMem()
	a, b := newWorker(mem, 1), newWorker(mem, 2)
	e := a.NewExchange()
	if !e.RequestHeaders(post(WorkHeader, "prompt=9000, uncached=4000", "content-length", "7"), t0, false) {
		t.Error("the work header is left to the engine")
	}
	wantBooks(t, "begun", a, t0, 1, 4000)
	wantBooks(t, "begun", b, t0, 1, 4000)
	stamp, bin := e.ResponseHeaders(reply("content-type", eventStream), t0+100, false)
	if rep := parsed(t, stamp); rep.InFlight != 1 || rep.Owed != 3200 || bin { // 8,000 tokens/s
		t.Errorf("stamp %q, binary %v", stamp, bin)
	}
	if !e.ReadsResponse() {
		t.Fatal("the stream's first token is not looked for")
	}
	e.ResponseBody([]byte(": ping\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"), t0+200)
	wantBooks(t, "role", b, t0+200, 1, 2400)
	e.ResponseBody([]byte(token), t0+400)
	wantBooks(t, "first token", b, t0+400, 1, 0)
	if e.ReadsResponse() {
		t.Error("the stream is read beyond its first token")
	}
	e.ResponseEnd()
	e.Settle(t0 + 900)
	e.Settle(t0 + 900)
	wantBooks(t, "settled", a, t0+900, 0, 0)
	wantBooks(t, "settled", b, t0+900, 0, 0)
}

// TestFirstByte: in a stream that cannot be read, some byte stands for the
// first token.
func TestFirstByte(t *testing.T) {
	f := func(name string, body string, more ...string) {
		t.Helper()
		r := newWorker(shared.NewMem(), 1)
		e := r.NewExchange()
		e.RequestHeaders(post(WorkHeader, "prompt=9000"), t0, false)
		e.ResponseHeaders(reply(append(more, "content-type", eventStream)...), t0+10, false)
		e.ResponseBody(nil, t0+10)
		wantBooks(t, name, r, t0+10, 1, 9000-80)
		e.ResponseBody([]byte(body), t0+10)
		wantBooks(t, name, r, t0+10, 1, 0)
	}
	f("compressed", "\x1f", "content-encoding", "gzip")
	f("unknown dialect", strings.Repeat("data: {\"token\":{\"id\":1}}\n\n", 3000))
	f("messages", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n")
	f("responses", "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n")
}

// TestWhatCounts enters requests by what is known of them.
func TestWhatCounts(t *testing.T) {
	mem := shared.NewMem()
	f := func(name string, h *head, end bool, inFlight, owed int32, strip bool) {
		t.Helper()
		r := newWorker(mem, rand.Uint64())
		e := r.NewExchange()
		if got := e.RequestHeaders(h, t0, end); got != strip {
			t.Errorf("%s: strip is %v", name, got)
		}
		wantBooks(t, name, r, t0, inFlight, owed)
		e.Settle(t0)
		wantBooks(t, name, r, t0, 0, 0)
	}
	f("announced", post(WorkHeader, "uncached=5, prompt=10"), false, 1, 5, true)
	f("announced, all resident", post(WorkHeader, "prompt=10, uncached=0"), false, 1, 0, true)
	f("announced in vain", post(WorkHeader, "much", "content-length", "400"), false, 1, 100, true)
	f("length", post("content-length", "400"), false, 1, 100, false)
	f("forged", post(WorkHeader, "prompt=999999999999"), false, 1, 1<<22, true)
	f("huge", post("content-length", "999999999999999"), false, 1, maxEstimate, false)
	f("no length", post("content-length", "4x"), false, 0, 0, false)
	f("no body", post(WorkHeader, "prompt=1"), true, 0, 0, true)
	f("not work", &head{pairs: []string{":method", "POST", ":path", "/v1/load_lora_adapter", "content-length", "40"}}, false, 0, 0, false)
	f("read", &head{pairs: []string{":method", "GET", ":path", "/v1/chat/completions"}}, true, 0, 0, false)

	r := newWorker(mem, 99)
	e := r.NewExchange()
	e.RequestHeaders(post(), t0, false)
	for range 4 {
		e.RequestBody(100, t0, false)
	}
	wantBooks(t, "half a body", r, t0, 0, 0)
	e.RequestBody(0, t0, true)
	if e.CountsRequest() {
		t.Error("counts on after the end")
	}
	wantBooks(t, "a body without a length", r, t0, 1, 100)
}

// TestEstimateByHitRatio: what the engine mostly finds in its cache is not owed.
func TestEstimateByHitRatio(t *testing.T) {
	r := newWorker(shared.NewMem(), 1)
	for i, text := range []string{"1000\nvllm:prefix_cache_hits_total 0\n", "2000\nvllm:prefix_cache_hits_total 750\n"} {
		if err := answer(r, t0+int64(i), "vllm:prefix_cache_queries_total "+text); err != nil {
			t.Fatal(err)
		}
	}
	r.NewExchange().RequestHeaders(post("content-length", "4000"), t0+1, false)
	wantBooks(t, "three quarters are resident", r, t0+1, 1, 250)
}

// TestStamp merges what the engine says in its answer's head with what it said
// in its metrics and what is counted.
func TestStamp(t *testing.T) {
	const counted = "named_metrics.owed_tokens=0, named_metrics.in_flight=0"
	f := func(metrics string, h *head, want string, bin bool) {
		t.Helper()
		r := newWorker(shared.NewMem(), 1)
		if metrics != "" {
			if err := answer(r, t0, metrics); err != nil {
				t.Fatal(err)
			}
		}
		e := r.NewExchange()
		e.RequestHeaders(&head{pairs: []string{":method", "GET", ":path", "/health"}}, t0, true)
		got, b := e.ResponseHeaders(h, t0, true)
		if string(got) != want || b != bin {
			t.Errorf("%q, binary %v, want %q, %v", got, b, want, bin)
		}
	}
	f("", reply(), "TEXT "+counted, false)
	f("vllm:num_requests_waiting 3\nvllm:num_requests_running 12\nvllm:kv_cache_usage_perc 0.41\n", reply(),
		"TEXT named_metrics.kv_cache_usage_perc=0.41, named_metrics.num_requests_waiting=3, named_metrics.num_requests_running=12, "+counted, false)
	f("", reply(ReportHeader, "TEXT named_metrics.num_requests_waiting=2.0, named_metrics.kv_cache_usage_perc=0.5"),
		"TEXT named_metrics.kv_cache_usage_perc=0.5, named_metrics.num_requests_waiting=2, "+counted, false)
	f("vllm:num_requests_waiting 3\n", reply(ReportHeader, `JSON {"named_metrics":{"num_requests_waiting":2.0,"kv_cache_usage_perc":0.5}}`),
		"TEXT named_metrics.kv_cache_usage_perc=0.5, named_metrics.num_requests_waiting=3, "+counted, false)
	f("", reply(BinaryHeader, "MQAAAAAAABJA"), "TEXT "+counted+", rps_fractional=4.5", true)
	f("", reply(ReportHeader, "TEXT named_metrics.in_flight=99, nonsense"), "TEXT "+counted, false)
	f("DCGM_FI_DEV_GPU_UTIL 87\nDCGM_FI_DEV_FB_USED 30\nDCGM_FI_DEV_FB_FREE 10\n", reply(":status", "503"),
		"TEXT "+counted+", named_metrics.gpu_utilization=0.87, named_metrics.gpu_memory_utilization=0.75", false)
}

// TestRouterReadsTheStamp: what is reported arrives.
func TestRouterReadsTheStamp(t *testing.T) {
	r := newWorker(shared.NewMem(), 1)
	for i := range 5 {
		text := fmt.Sprintf("vllm:num_requests_waiting %d\nvllm:num_requests_running 4\nvllm:kv_cache_usage_perc 0.375\n"+
			"vllm:prefix_cache_queries_total %d\nvllm:prefix_cache_hits_total %d\nvllm:request_success_total %d\nvllm:generation_tokens_total %d\n",
			i, 100*i, 75*i, 2*i, 500*i)
		if err := answer(r, t0+int64(1000*i), text); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		r.NewExchange().RequestHeaders(post(WorkHeader, "prompt=500, uncached=100"), t0+4000, false)
	}
	got := parsed(t, []byte(stamped(r, t0+4000)))
	want := route.NoReport()
	want.Waiting, want.Running, want.KV, want.Hit, want.RPS, want.TPS = 4, 4, 0.375, 0.75, 2, 500
	want.Owed, want.InFlight = 300, 3
	if got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

// TestEveryHistoryEndsAtZero runs random exchanges over workers that also die.
func TestEveryHistoryEndsAtZero(t *testing.T) {
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 1))
		mem := shared.NewMem()
		workers := []*Reporter{newWorker(mem, 1+dice.Uint64()), newWorker(mem, 1+dice.Uint64()), newWorker(mem, 1+dice.Uint64())}
		var open []*Exchange
		now := t0
		for range 300 {
			now += int64(dice.IntN(200))
			i := dice.IntN(len(workers))
			if dice.IntN(100) == 0 { // its requests are gone with it
				dead := workers[i]
				workers[i] = newWorker(mem, 1+dice.Uint64())
				kept := open[:0]
				for _, e := range open {
					if e.reporter != dead {
						kept = append(kept, e)
					}
				}
				open = kept
			}
			if len(open) == 0 || dice.IntN(4) == 0 {
				open = append(open, begin(dice, workers[i], now))
				continue
			}
			step(dice, open[dice.IntN(len(open))], now)
			workers[i].Tick(now)
		}
		for _, e := range open {
			e.Settle(now)
		}
		for _, w := range workers {
			w.Tick(now)
		}
		now += route.Defaults().LeaseMS + 1
		wantBooks(t, fmt.Sprint("seed ", seed), newWorker(mem, 7), now, 0, 0)
		if t.Failed() {
			return
		}
	}
}

func begin(dice *rand.Rand, r *Reporter, now int64) *Exchange {
	e := r.NewExchange()
	h := [...]*head{post(WorkHeader, fmt.Sprintf("prompt=%d", dice.IntN(9000))), post("content-length", "5000"), post()}[dice.IntN(3)]
	e.RequestHeaders(h, now, false)
	return e
}

func step(dice *rand.Rand, e *Exchange, now int64) {
	switch dice.IntN(6) {
	case 0:
		e.RequestBody(dice.IntN(1000), now, dice.IntN(2) == 0)
	case 1:
		e.ResponseHeaders(reply("content-type", eventStream), now, dice.IntN(5) == 0)
	case 2:
		e.ResponseHeaders(reply(), now, dice.IntN(5) == 0)
	case 3:
		e.ResponseBody([]byte(token), now)
	case 4:
		e.ResponseEnd()
	default:
		e.Settle(now)
		e.Reset()
	}
}

// turn is one whole stream.
func turn(e *Exchange, request, response *head, now int64) {
	pairs := [2][]string{request.pairs, response.pairs}
	e.Reset()
	e.RequestHeaders(request, now, false)
	e.ResponseHeaders(response, now+5, false)
	e.ResponseBody(firstToken, now+50)
	e.ResponseEnd()
	e.Settle(now + 90)
	request.pairs, response.pairs = pairs[0], pairs[1]
}

var firstToken = []byte(token)

func TestExchangeMakesNoGarbage(t *testing.T) {
	r := newWorker(shared.NewMem(), 1)
	if err := answer(r, t0, string(realMetrics(t))); err != nil {
		t.Fatal(err)
	}
	e := r.NewExchange()
	request, response := post(WorkHeader, "prompt=812, uncached=172"), reply("content-type", eventStream)
	now := t0
	if n := testing.AllocsPerRun(100, func() {
		turn(e, request, response, now)
		now += 7
	}); n != 0 {
		t.Errorf("%v allocations for a stream", n)
	}
}

func BenchmarkStream(b *testing.B) {
	r := newWorker(shared.NewMem(), 1)
	if err := answer(r, t0, string(realMetrics(b))); err != nil {
		b.Fatal(err)
	}
	e := r.NewExchange()
	request, response := post(WorkHeader, "prompt=812, uncached=172"), reply("content-type", eventStream)
	b.ReportAllocs()
	now := t0
	for b.Loop() {
		turn(e, request, response, now)
		now += 7
		if now > t0+1000 {
			now = t0
		}
	}
}
