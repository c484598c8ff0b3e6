package lab

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/filter/exchange"
	"github.com/warmlane/warmlane/filter/state"
)

// pool is the one pool of the lab.
const pool = "default"

// warmlane is proxies with the real decision core.
type warmlane struct {
	play      *play
	proxies   []*proxy
	collector *collector // nil: no KV events
	open      map[*flight]*exchange.Exchange
}

func newWarmlane(kind string, p *play) (*warmlane, error) {
	c, err := exchange.ParseConfig(configOf(kind, p.options.Routing))
	if err != nil {
		return nil, err
	}
	w := &warmlane{play: p, open: make(map[*flight]*exchange.Exchange)}
	for range p.options.Proxies {
		w.proxies = append(w.proxies, newProxy(c, p.options.Workers, &p.clock, p.dice))
	}
	if kind != "text" {
		if err := w.listen(); err != nil {
			return nil, err
		}
	}
	if err := w.publish(w.loads()); err != nil {
		return nil, err
	}
	w.tick()
	return w, nil
}

// configOf writes the plugin's configuration.
func configOf(kind, routing string) []byte {
	if routing == "" {
		routing = "{}"
	}
	precise := ""
	switch kind {
	case "precise-ask":
		precise = `,"kv_events":true,"tokenize":"ask"`
	case "precise-learned":
		precise = `,"kv_events":true,"tokenize":"learned"`
	}
	return fmt.Appendf(nil, `{"routing":%s,"pools":[{"name":%q,"cluster":"replicas"%s}]}`, routing, pool, precise)
}

// listen has the engines' KV events collected.
func (w *warmlane) listen() error {
	w.collector = newCollector(w.play.fleet, w.proxies)
	for _, x := range w.proxies {
		if err := x.begin(); err != nil {
			return err
		}
	}
	w.play.fleet.hear = func(slot int, at time.Duration, events []engine.Event) {
		sent := payload(at, events)
		w.play.clock.at(at+w.play.options.Delay, func() {
			w.collector.take(slot, sent)
			w.play.fail(w.collector.failed)
		})
	}
	return nil
}

// publish tells all proxies what control knows of the engines.
func (w *warmlane) publish(loads []state.Load) error {
	p := state.Pool{Name: pool, Models: []string{Model}}
	for slot, r := range w.play.fleet.replicas {
		c := r.Config()
		known := state.Replica{
			Slot: uint16(slot), Incarnation: 1, Address: address(slot), Health: state.Healthy, Models: p.Models,
			Load: loads[slot], BlockSize: uint32(c.BlockSize), CacheTokens: uint32((c.Blocks - 1) * c.BlockSize),
		}
		if w.collector != nil {
			known.KV, known.Tags = state.KVComplete, w.collector.index.Tagged(uint16(slot))
		}
		p.Replicas = append(p.Replicas, known)
	}
	for _, x := range w.proxies {
		if err := x.publish(&state.Snapshot{Epoch: 1, Generation: 1, Pools: []state.Pool{p}}, w.play.clock.now); err != nil {
			return err
		}
	}
	return nil
}

// loads is what the engines say of themselves now, as far as control pushes it.
func (w *warmlane) loads() []state.Load {
	var all []state.Load
	for _, r := range w.play.fleet.replicas {
		running, waiting, usage := r.Load()
		l := state.NoLoad()
		l.At, l.Running, l.Waiting, l.KV = millis(w.play.clock.now), int32(running), int32(waiting), float32(usage)
		all = append(all, l)
	}
	return all
}

// tick does what is due every tickEvery: the workers' ticks, and control's
// scrape, which happens to be as frequent.
func (w *warmlane) tick() {
	c := &w.play.clock
	for _, x := range w.proxies {
		x.tick(c.now)
	}
	loads := w.loads()
	c.at(c.now+w.play.options.Delay, func() { w.play.fail(w.publish(loads)) })
	c.at(c.now+tickEvery, w.tick)
}

// pick plays the request's side of an exchange.
func (w *warmlane) pick(f *flight) int {
	e := w.worker(f).NewExchange()
	w.open[f] = e
	slot := w.obey(f, e.RequestHeaders(requestHead(), false))
	for body := f.Body(); e.ReadsRequest(); {
		n := min(len(body), bodyChunk)
		slot = w.obey(f, e.RequestBody(body[:n], n == len(body)))
		body = body[n:]
	}
	return slot
}

// bodyChunk is in which pieces Envoy hands a body on.
const bodyChunk = 16 << 10

func (w *warmlane) worker(f *flight) *exchange.Worker {
	return w.proxies[f.door.proxy].workers[f.door.worker]
}

// obey does what Envoy would about a verdict, and returns the engine that it
// names, -1 if none. Calls to /tokenize are answered at once.
func (w *warmlane) obey(f *flight, v *exchange.Verdict) (slot int) {
	slot = -1
	for _, p := range v.Properties {
		switch p.Name {
		case "warmlane.destination":
			slot = slotOf(p.Value)
		case "warmlane.session":
			f.session = string(p.Value)
		}
	}
	c := v.Call
	if c == nil {
		return slot
	}
	w.play.gauge.calls++
	job := c.Job
	status, answer := tokenized(c.Body)
	if job == 0 {
		return w.obey(f, w.open[f].Tokenized(status, answer))
	}
	w.worker(f).Tokenized(job, status, answer)
	return slot
}

// tokenized is what an engine answers to /tokenize.
func tokenized(body []byte) (status int, answer []byte) {
	var c chatBody
	if err := json.Unmarshal(body, &c); err != nil {
		return 400, nil
	}
	prompt := (&Request{Messages: c.Messages}).Prompt()
	answer, err := json.Marshal(struct {
		Count  int            `json:"count"`
		Tokens []engine.Token `json:"tokens"`
	}{len(prompt), prompt})
	if err != nil {
		return 500, nil
	}
	return 200, answer
}

func (w *warmlane) head(f *flight) {
	answered := func() []byte { return []byte(address(f.replica.slot)) }
	w.obey(f, w.open[f].ResponseHeaders(answerHead(), answered, false))
}

func (w *warmlane) first(f *flight) { w.open[f].ResponseBody(firstEvents) }

func (w *warmlane) done(f *flight) {
	e := w.open[f]
	delete(w.open, f)
	if e.ReadsResponseBody() {
		e.ResponseBody(lastEvents(f))
	}
	e.ResponseEnd()
	w.obey(f, e.Settle(func() []byte { return nil }))
}
