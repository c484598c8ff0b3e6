package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Options is what a workload is played against. A zero field has its default.
type Options struct {
	Fleet   int           // engines; 8
	Engine  engine.Config // each of them; what the function Engine gives
	Proxies int           // Envoys that know nothing of each other; 1
	Workers int           // of each proxy; 4
	// Delay is how long after the step that caused it a KV event is in the
	// proxies' index, and from when engines tell their load until the proxies know;
	// 40 ms.
	Delay   time.Duration
	Routing string // the object "routing" of the plugin's configuration; its defaults
	Seed    uint64 // of dice
}

func (o Options) withDefaults() Options {
	if o.Fleet == 0 {
		o.Fleet = 8
	}
	if o.Engine.PrefillRate == 0 {
		o.Engine = Engine()
	}
	o.Proxies = max(o.Proxies, 1)
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Delay == 0 {
		o.Delay = 40 * time.Millisecond
	}
	return o
}

// play is one play of a workload.
type play struct {
	clock   clock
	fleet   *fleet
	policy  policy
	dice    *rand.Rand
	options Options
	flights []*flight
	left    int // requests without an end
	gauge   gauge
	failed  error // the first error met
}

// headDelay is how long after its arrival an engine sends the head of a
// stream: long before the first token.
const headDelay = 20 * time.Millisecond

// Run plays the workload under the named policy (see [Policies]).
func Run(name string, w *Workload, o Options) (Result, error) {
	if len(w.Requests) == 0 {
		return Result{}, errors.New("the workload has no requests")
	}
	p := newPlay(w, o)
	var err error
	if p.policy, err = newPolicy(name, p); err != nil {
		return Result{}, err
	}
	if err := p.run(); err != nil {
		return Result{}, err
	}
	return p.result(name, w), nil
}

// newPlay gives every request its door.
func newPlay(w *Workload, o Options) *play {
	o = o.withDefaults()
	p := &play{options: o, left: len(w.Requests), dice: rand.New(rand.NewPCG(o.Seed, 2))}
	p.fleet = newFleet(&p.clock, o.Fleet, o.Engine)
	p.fleet.listener = p
	for i := range w.Requests {
		p.flights = append(p.flights, &flight{Request: &w.Requests[i], id: i, door: door{p.dice.IntN(o.Proxies), p.dice.IntN(o.Workers)}})
	}
	return p
}

// run takes arrivals, what is planned and the ends of steps in the order of
// their times.
func (p *play) run() error {
	for next := 0; p.left > 0 && p.failed == nil; {
		arrival := never
		if next < len(p.flights) {
			arrival = p.flights[next].At
		}
		engine, ends := p.fleet.next()
		switch planned := p.clock.next(); min(arrival, planned, ends) {
		case planned:
			p.clock.step()
		case arrival:
			p.clock.now = arrival
			if err := p.arrive(p.flights[next]); err != nil {
				return err
			}
			next++
		default:
			p.clock.now = ends
			engine.Advance(ends)
		}
	}
	return p.failed
}

// fail ends the run if err is not nil.
func (p *play) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

func (p *play) arrive(f *flight) error {
	if limit := p.fleet.replicas[0].Config().MaxModelLen; f.Tokens+f.Output > limit {
		return fmt.Errorf("request %d has %d tokens, prompt and answer; an engine takes %d", f.id, f.Tokens+f.Output, limit)
	}
	slot := p.policy.pick(f)
	if slot < 0 {
		return fmt.Errorf("request %d was not placed", f.id)
	}
	p.clock.at(f.At+headDelay, func() { p.head(f) })
	return p.fleet.send(f, slot)
}

func (p *play) head(f *flight) {
	if !f.headed {
		f.headed = true
		p.policy.head(f)
	}
}

// first implements listener.
func (p *play) first(f *flight) {
	p.head(f)
	p.gauge.first(p.clock.now, f)
	p.policy.first(f)
}

// done implements listener.
func (p *play) done(f *flight) {
	p.left--
	p.gauge.done(p.clock.now, f)
	p.policy.done(f)
	f.prompt, f.job = nil, nil
}
