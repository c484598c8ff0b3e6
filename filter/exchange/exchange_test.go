package exchange

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
	"github.com/warmlane/warmlane/hostsim/transcript"
)

func noWord() []byte { return nil }

func by(address []byte) func() []byte { return func() []byte { return address } }

func chatBody(text string, stream bool) []byte {
	return fmt.Appendf(nil, `{"model":"m","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, text)
}

// open sends a request up to its decision.
func (h *native) open(t *testing.T, w *Worker, body []byte) *Exchange {
	t.Helper()
	e := w.NewExchange()
	e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/chat/completions"}), false)
	e.RequestBody(body, true)
	if e.named < 0 {
		t.Fatalf("not placed: %v", e.choice.Branch)
	}
	return e
}

func ok() Headers { return headersOf(map[string]string{":status": "200"}) }

// TestSettledOnEveryWayOut leaves each exchange at every point, in every way,
// and wants the books empty and one count for each.
func TestSettledOnEveryWayOut(t *testing.T) {
	f := func(name string, want Outcome, leave func(e *Exchange)) {
		t.Helper()
		h := newNative(t, 2, "")
		e := h.open(t, h.worker, chatBody(strings.Repeat("x", 5000), true))
		if h.inFlight() != 1 {
			t.Fatalf("%s: %d on the books, want 1", name, h.inFlight())
		}
		leave(e)
		word := func() []byte { return []byte("upstream_reset_after_response_started{connection_termination}") }
		e.Settle(word)
		e.Settle(word)
		if n := h.inFlight(); n != 0 {
			t.Errorf("%s: %d still on the books", name, n)
		}
		got := uint64(0)
		for _, o := range e.series.outcomes {
			got += o.Pending
		}
		if e.series.outcomes[want].Pending != 1 || got != 1 {
			t.Errorf("%s: outcome %v counted %d times of %d", name, want, e.series.outcomes[want].Pending, got)
		}
	}
	head := func(e *Exchange, end bool) { e.ResponseHeaders(ok(), by(e.address()), end) }
	stream := func(e *Exchange) {
		e.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": "text/event-stream"}), by(e.address()), false)
	}
	f("client leaves before the head", ClientCancelled, func(*Exchange) {})
	f("whole answer", OK, func(e *Exchange) { head(e, false); e.ResponseEnd() })
	f("head only", OK, func(e *Exchange) { head(e, true) })
	f("reset after the head", UpstreamReset, func(e *Exchange) { head(e, false) })
	f("reset after the first token", UpstreamReset, func(e *Exchange) {
		stream(e)
		e.ResponseBody([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"))
	})
	f("whole stream", OK, func(e *Exchange) {
		stream(e)
		e.ResponseBody([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"))
		e.ResponseBody([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n"))
		e.ResponseEnd()
	})
	f("Envoy answers", LocalReply, func(e *Exchange) {
		e.ResponseHeaders(headersOf(map[string]string{":status": "503"}), by(nil), true)
	})
	f("another replica answers", OK, func(e *Exchange) {
		e.ResponseHeaders(ok(), by(e.pool.router.Address(1-e.named)), true)
	})
	f("a stranger answers", OK, func(e *Exchange) { e.ResponseHeaders(ok(), by([]byte("10.9.9.9:1")), true) })
	f("replica refuses", OK, func(e *Exchange) {
		e.ResponseHeaders(headersOf(map[string]string{":status": "503"}), by(e.address()), true)
	})
}

func TestCutUploadIsCounted(t *testing.T) {
	h := newNative(t, 2, "")
	e := h.worker.NewExchange()
	e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/completions"}), false)
	e.RequestBody([]byte(`{"model":"m","pro`), false)
	e.Settle(noWord)
	other := h.worker.pools[0].series.other
	if other.outcomes[ClientCancelled].Pending != 1 || h.worker.pools[0].series.status(other, 0).Pending != 1 {
		t.Errorf("outcomes %+v", other.outcomes[ClientCancelled])
	}
}

// TestOddOrderOfEvents plays events that do not fit: none may panic, and the
// books must be empty in the end.
func TestOddOrderOfEvents(t *testing.T) {
	h := newNative(t, 2, "")
	events := []func(e *Exchange){
		func(e *Exchange) {
			e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/completions"}), false)
		},
		func(e *Exchange) { e.RequestBody([]byte(`{"model":"m","prompt":"x"}`), true) },
		func(e *Exchange) { e.ResponseHeaders(ok(), by([]byte("10.0.0.1:8000")), false) },
		func(e *Exchange) { e.ResponseBody([]byte("data: x\n\n")) },
		func(e *Exchange) { e.ResponseEnd() },
		func(e *Exchange) { e.Settle(noWord) },
	}
	for code := range 6 * 6 * 6 * 6 * 6 {
		e := h.worker.NewExchange()
		for n := code; n > 0; n /= 6 {
			events[n%6](e)
		}
		e.Settle(noWord)
	}
	if n := h.inFlight(); n != 0 {
		t.Errorf("%d requests are still on the books", n)
	}
}

func TestNoStateLeavesItToEnvoy(t *testing.T) {
	h := newNative(t, 1, "")
	lone := NewWorker(h.worker.config, Env{Store: shared.NewMem().View(), Now: func() int64 { return h.now }, Dice: func() uint64 { return 1 }})
	h.worker = lone
	r, err := h.Do(&transcript.Request{Path: "/v1/completions", BodyText: `{"model":"m","prompt":"x"}`}, &transcript.Answer{})
	if err != nil || r.Named != "" || r.Status != 200 || r.Branch != "no_healthy_worker" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestNoModelIsUnknownBeforeTheFirstState(t *testing.T) {
	h := newNative(t, 1, `{"unknown_model":"reject"}`)
	state := h.store
	h.store = shared.NewMem()
	h.worker = h.newWorker(h.worker.config, 3)
	ask := func() int {
		r, err := h.Do(&transcript.Request{Path: "/v1/completions", BodyText: `{"model":"m","prompt":"x"}`}, &transcript.Answer{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	if got := ask(); got != 200 {
		t.Errorf("before the first state: %d, want 200", got)
	}
	h.store = state
	h.worker = h.newWorker(h.worker.config, 4)
	if got := ask(); got != 200 {
		t.Errorf("a known model in a fresh worker's first request: %d, want 200", got)
	}
}

func TestNoReplicaCanBeRefused(t *testing.T) {
	h := newNative(t, 1, `{"no_replica":"reject"}`)
	h.publish(t, &state.Snapshot{Epoch: 1, Generation: 2, Pools: []state.Pool{{Name: "default"}}})
	r, err := h.Do(&transcript.Request{Path: "/v1/completions", BodyText: `{"model":"m","prompt":"x"}`}, &transcript.Answer{})
	if err != nil || r.Status != 503 || r.ClientHeaders[ReasonHeader] != "no_replica" || !bytes.Contains(r.ClientBody, []byte(`"error"`)) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWorkersShare has two workers on one store: what one learned, the other
// knows, and a burst is spread though they take turns.
func TestWorkersShare(t *testing.T) {
	h := newNative(t, 3, "")
	a := h.worker
	b := h.newWorker(a.config, 99)
	prompt := chatBody(strings.Repeat("warm ", 500), false)
	first := h.open(t, a, prompt)
	first.ResponseHeaders(ok(), by(first.address()), true)
	first.Settle(noWord)
	h.now += 60_000
	second := h.open(t, b, prompt)
	if second.named != first.named || second.choice.Branch.String() != "cache_hit" {
		t.Errorf("the other worker chose slot %d (%v), want %d", second.named, second.choice.Branch, first.named)
	}
	second.Settle(noWord)
	h.now += 60_000
	counts := make([]int, 3)
	var open []*Exchange
	for i := range 30 {
		w := a
		if i%2 == 1 {
			w = b
		}
		e := h.open(t, w, chatBody(fmt.Sprintf("q%d", i), false))
		counts[e.named]++
		open = append(open, e)
	}
	for _, n := range counts {
		if n > 14 {
			t.Errorf("a burst of 30 went %v", counts)
		}
	}
	for _, e := range open {
		e.Settle(noWord)
	}
	b.Tick(h.now, false)
	if n := h.inFlight(); n != 0 {
		t.Errorf("%d still on the books", n)
	}
}

func TestNewStateReachesOtherWorkers(t *testing.T) {
	h := newNative(t, 2, "")
	b := h.newWorker(h.worker.config, 5)
	h.open(t, b, chatBody("x", false)).Settle(noWord)
	h.publish(t, &state.Snapshot{Epoch: 1, Generation: 2, Pools: []state.Pool{{Name: "default", Models: []string{"m"}, Replicas: []state.Replica{
		{Slot: 7, Incarnation: 1, Address: "10.0.0.8:8000", Health: state.Healthy, Models: []string{"m"}, Load: state.NoLoad()},
	}}}})
	b.Tick(h.now, false)
	if e := h.open(t, b, chatBody("x", false)); string(e.address()) != "10.0.0.8:8000" {
		t.Errorf("went to %s", e.address())
	}
}

// TestNoGarbage holds the hot path to its budget.
func TestNoGarbage(t *testing.T) {
	h := newNative(t, 8, `{"piggyback":{"log":true}}`)
	head := &mapHeaders{}
	pairs := headersOf(map[string]string{":method": "POST", ":path": "/v1/chat/completions", "x-request-id": "abc"}).rest
	body := chatBody(strings.Repeat("some text ", 3000), true)
	self := by(nil)
	event := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
	answer := headersOf(map[string]string{":status": "200", "content-type": "text/event-stream"}).rest
	e := h.worker.NewExchange()
	drop := func(*Metric, uint64) {}
	round := func() {
		e.Reset()
		head.rest = pairs
		e.RequestHeaders(head, false)
		e.RequestBody(body, true)
		head.rest = answer
		e.ResponseHeaders(head, self, false)
		e.ResponseBody(event)
		e.ResponseEnd()
		e.Settle(noWord)
		h.worker.Tally().Drain(drop)
	}
	round()
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestSharedBudget holds a request to its share of shared data.
func TestSharedBudget(t *testing.T) {
	f := func(size int, stream bool, reads, writes int) {
		t.Helper()
		h := newNative(t, 8, "")
		h.open(t, h.worker, chatBody("warm-up", false)).Settle(noWord)
		h.store.Gets, h.store.Sets = 0, 0
		e := h.open(t, h.worker, chatBody(strings.Repeat("0123456789abcdef", size/16), stream))
		typ := map[bool]string{true: "text/event-stream", false: "application/json"}[stream]
		e.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": typ}), by(e.address()), false)
		e.ResponseBody([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"))
		e.ResponseEnd()
		e.Settle(noWord)
		if h.store.Gets > reads || h.store.Sets > writes {
			t.Errorf("%d bytes, stream %v: %d reads and %d writes, want at most %d and %d", size, stream, h.store.Gets, h.store.Sets, reads, writes)
		}
	}
	f(2<<10, false, 6, 4)
	f(2<<10, true, 7, 5)
	f(1<<20, false, 12, 6)
	f(1<<20, true, 12, 6)
}

func FuzzExchange(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`), []byte("TEXT named_metrics.kv_cache_usage_perc=0.4"), []byte("data: {\"choices\":[]}\n\n"), uint8(3))
	f.Add([]byte(`[`), []byte("JSON {"), []byte("\r\n\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, body, report, answer []byte, cut uint8) {
		h := newNative(t, 2, "")
		e := h.worker.NewExchange()
		e.RequestHeaders(headersOf(map[string]string{":method": "POST", ":path": "/v1/chat/completions"}), false)
		for len(body) > int(cut) {
			e.RequestBody(body[:cut], false)
			body = body[max(int(cut), 1):]
		}
		e.RequestBody(body, true)
		e.ResponseHeaders(headersOf(map[string]string{":status": "200", "content-type": "text/event-stream", "endpoint-load-metrics": string(report)}), by([]byte("10.0.0.1:8000")), false)
		e.ResponseBody(answer)
		e.Settle(noWord)
		if n := h.inFlight(); n != 0 {
			t.Fatalf("%d still on the books", n)
		}
	})
}

// TestAsksWhoAnsweredInDoubtOnly counts the questions to the host.
func TestAsksWhoAnsweredInDoubtOnly(t *testing.T) {
	h := newNative(t, 2, "")
	asked := 0
	one := func(attempts, status string, other bool) {
		e := h.open(t, h.worker, chatBody("x", false))
		e.ResponseHeaders(headersOf(map[string]string{":status": status, "x-envoy-attempt-count": attempts}), func() []byte {
			asked++
			if other {
				return e.pool.router.Address(1 - e.named)
			}
			return e.address()
		}, true)
		e.Settle(noWord)
	}
	want := func(n int, what string) {
		t.Helper()
		if asked != n {
			t.Errorf("%s: asked %d times, want %d", what, asked, n)
		}
		asked = 0
	}
	for range 2 * doubtEvery {
		one("1", "200", false)
	}
	want(2, "first attempts")
	one("2", "200", false)
	want(1, "a second attempt")
	one("1", "503", false)
	want(1, "a failure")
	one("", "200", false)
	want(1, "no count")
	h.now += 5000 // the failed replica is no longer avoided
	for range doubtEvery {
		one("1", "200", true)
	}
	want(4, "the cluster knows another address: found by chance, then looked at each time")
	for range 10 {
		one("1", "200", false)
	}
	want(10, "soon after that")
	h.now += doubtMillis + 1
	for range doubtEvery {
		one("1", "200", false)
	}
	want(1, "long after that")
}
