//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/node"
)

// TestMetrics sends a load of which everything is known, and then holds the
// access log against what clients saw, the decision headers against the log,
// and the metrics against the sum of its lines: each series with its labels
// and its value, and none beside them.
func TestMetrics(t *testing.T) {
	list := engines(t, 3, func(o *node.Options) { o.Wire.Models = []string{"m", "n", "o"} })
	config := pool(t, "models: [m], kv_events: true, tokenize: learned", "metrics: {max_models: 2}")
	b := &books{fleet: startFleet(t, list, config, "-workers", "2", "-max-body", "100000"), entries: map[string]*entry{}}
	b.mixed(t)
	b.flood(t)
	b.brokenStreams(t)
	b.cancelled(t)
	b.tooLong(t)
	b.retried(t)
	b.settled()
	b.audit(t)
}

// TestUnknownModels has room for a hundred names; what clients make up takes
// none of it.
func TestUnknownModels(t *testing.T) {
	b := &books{fleet: startFleet(t, engines(t, 1, nil), pool(t, "kv_events: true")), entries: map[string]*entry{}}
	b.send(t.Context(), &entry{path: chatPath, model: "m", body: body(chat("Hello"))})
	b.flood(t)
	b.eventually(5*time.Second, "all are counted", func() bool {
		return b.series("warmlane_requests_total", `model="other"`, `status="404"`) == 300 && b.series("warmlane_requests_total", `model="m"`) == 1
	})
	if n := b.series("warmlane_requests_total"); n != 301 {
		t.Errorf("%v requests are counted, want 301", n)
	}
	if page := b.get(b.admin + "/stats/prometheus"); strings.Contains(page, "ghost") {
		t.Error("names that clients made up are on the page")
	}
}

// books are what clients know of all requests.
type books struct {
	*fleet
	mu      sync.Mutex
	entries map[string]*entry // by request id
}

// entry is one request: what was sent and how it had to end.
type entry struct {
	path, model string // no model: none that can be read
	body        []byte
	fault       string // the kind of error that the scanner finds in the body
	outcome     string
	reply       reply // status 0: the client left before the head
}

// send sends a request, explained, and enters it.
func (b *books) send(ctx context.Context, e *entry) {
	b.mu.Lock()
	id := fmt.Sprint("request-", len(b.entries))
	b.entries[id] = e
	b.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+e.path, strings.NewReader(string(e.body)))
	if err != nil {
		e.reply.err = err
		return
	}
	for key, value := range map[string]string{"content-type": "application/json", "x-request-id": id, "x-warmlane-explain": "1"} {
		req.Header.Set(key, value)
	}
	e.reply.read(fresh.Do(req))
}

// read takes the answer in, as far as it came.
func (r *reply) read(resp *http.Response, err error) {
	if r.err = err; err != nil {
		return
	}
	defer resp.Body.Close()
	r.status, r.header = resp.StatusCode, resp.Header
	r.body, r.err = io.ReadAll(resp.Body)
}

// all sends requests from several clients and waits until they have ended.
func (b *books) all(ctx context.Context, clients int, entries []*entry) {
	var wg sync.WaitGroup
	next := make(chan *entry)
	for range clients {
		wg.Go(func() {
			for e := range next {
				b.send(ctx, e)
			}
		})
	}
	for _, e := range entries {
		next <- e
	}
	close(next)
	wg.Wait()
}

// entriesOf makes n requests that shall end with an outcome.
func entriesOf(n int, outcome string, make func(i int) *entry) []*entry {
	list := []*entry{}
	for i := range n {
		e := make(i)
		e.outcome = outcome
		list = append(list, e)
	}
	return list
}

// mixed sends 200 requests of all kinds, drawn by fixed dice.
func (b *books) mixed(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	b.all(t.Context(), 4, entriesOf(200, "ok", func(int) *entry { return draw(dice) }))
	for id, e := range b.entries {
		if want := e.status(); e.reply.err != nil || e.reply.status != want {
			t.Errorf("%s: status %d, %v, want %d: %.200s", id, e.reply.status, e.reply.err, want, e.reply.body)
		}
	}
}

// draw makes a request: one in five is not for a replica's taste.
func draw(dice *rand.Rand) *entry {
	model := [...]string{"m", "m", "n", "o"}[dice.IntN(4)]
	turns := []string{words(fmt.Sprint("mixed", dice.IntN(8)), 20+10*dice.IntN(20))}
	if dice.IntN(2) == 0 {
		turns = append(turns, " fine", words("more", dice.IntN(50)))
	}
	prompt := with(with(chat(turns...), "model", model), "max_tokens", 2+dice.IntN(4))
	switch dice.IntN(10) {
	case 0, 1, 2:
		return &entry{path: chatPath, model: model, body: body(prompt)}
	case 3, 4:
		prompt = with(with(prompt, "stream", true), "stream_options", object{"include_usage": true})
		return &entry{path: chatPath, model: model, body: body(prompt)}
	case 5:
		return &entry{path: chatPath, model: model, body: body(with(prompt, "stream", true))}
	case 6:
		text := object{"model": model, "prompt": turns[0], "max_tokens": 3}
		return &entry{path: completionPath, model: model, body: body(text)}
	case 7:
		numbers := object{"model": model, "prompt": ids(dice.IntN(5), 40+dice.IntN(60)), "max_tokens": 3}
		return &entry{path: completionPath, model: model, body: body(numbers)}
	case 8:
		whole := body(prompt)
		return &entry{path: chatPath, body: whole[:len(`{"ma`)], fault: "truncated"}
	}
	return &entry{path: chatPath, model: model, body: body(object{"model": model}), fault: "no_prompt"}
}

// status is what the replicas, and so clients, answer to an entry of mixed.
func (e *entry) status() int {
	if e.fault != "" {
		return 400
	}
	return 200
}

// flood asks for 300 models that nobody has.
func (b *books) flood(t *testing.T) {
	list := entriesOf(300, "ok", func(i int) *entry {
		model := fmt.Sprint("ghost-", i)
		return &entry{path: chatPath, model: model, body: body(with(chat("Is anybody there?"), "model", model))}
	})
	b.all(t.Context(), 8, list)
	for _, e := range list {
		if e.reply.status != 404 || e.reply.branch() != "no_healthy_worker" {
			t.Fatalf("%s: status %d, %v: %s", e.model, e.reply.status, e.reply.err, e.reply.header.Get("x-warmlane-decision"))
		}
	}
}

// streams are n requests for streams of 20 tokens.
func streams(name string, n int, outcome string) []*entry {
	return entriesOf(n, outcome, func(i int) *entry {
		long := with(with(chat(words(fmt.Sprint(name, i), 60)), "max_tokens", 20), "stream", true)
		return &entry{path: chatPath, model: "m", body: body(long)}
	})
}

// brokenStreams has engines fail in the middle of answers.
func (b *books) brokenStreams(t *testing.T) {
	for fault, outcome := range map[string]string{
		"error_after_events": "stream_error", "abort_after_events": "stream_error", "die_after_events": "upstream_reset",
	} {
		b.faults(fmt.Sprintf(`{%q: 3}`, fault))
		list := streams(fault, 5, outcome)
		b.all(t.Context(), 5, list)
		for _, e := range list {
			if cut := e.reply.err != nil; e.reply.status != 200 || cut != (outcome == "upstream_reset") {
				t.Errorf("%s: status %d, %v", fault, e.reply.status, e.reply.err)
			}
		}
		b.healed()
	}
}

// healed ends all faults.
func (b *books) healed() {
	for _, r := range b.replicas {
		r.Heal()
	}
}

// cancelled has clients leave before the head and in the middle of the answer.
// Meanwhile the gauges say what replicas have.
func (b *books) cancelled(t *testing.T) {
	for _, fault := range []string{`{"hang": true}`, `{"stall_after_events": 3}`} {
		b.settled()
		b.faults(fault)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); b.all(ctx, 6, streams(fault, 6, "client_cancelled")) }()
		b.eventually(5*time.Second, "6 requests in flight", func() bool { return b.series("warmlane_in_flight", `pool="default"`) == 6 })
		cancel()
		<-done
		b.healed()
	}
}

// tooLong sends more than is allowed: Envoy answers.
func (b *books) tooLong(t *testing.T) {
	list := entriesOf(3, "local_reply", func(int) *entry {
		return &entry{path: chatPath, body: []byte(strings.Repeat(" ", 150_000))}
	})
	b.all(t.Context(), 1, list)
	for _, e := range list {
		if e.reply.status != 413 {
			t.Errorf("status %d, %v", e.reply.status, e.reply.err)
		}
	}
}

// retried has the warm replica refuse: the next one named answers.
func (b *books) retried(t *testing.T) {
	b.settled()
	warm := body(chat(words("retried", 100)))
	first := &entry{path: chatPath, model: "m", body: warm, outcome: "ok"}
	b.send(t.Context(), first)
	home := b.read(t, first.reply).at
	b.replicas[home].Faults(`{"status": 503, "times": 1}`)
	again := &entry{path: chatPath, model: "m", body: warm, outcome: "ok"}
	b.send(t.Context(), again)
	if a := b.read(t, again.reply); a.at == home || !strings.Contains(a.header.Get("x-warmlane-decision"), b.replicas[home].Addr) {
		t.Errorf("replica %d answered again: %s", a.at, a.header.Get("x-warmlane-decision"))
	}
}
