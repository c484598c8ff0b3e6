package collect

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// Scrape says how engines are asked.
type Scrape struct {
	Interval       time.Duration // between two scrapes, give or take a tenth
	Timeout        time.Duration // of one answer, to the end of its body
	MaxBytes       int64         // of one body
	ModelsEvery    time.Duration // between two looks at /v1/models
	HealthEvery    time.Duration // between two looks at /health
	UnhealthyAfter int           // failures in a row
}

// DefaultScrape is what is used unless the configuration says otherwise.
var DefaultScrape = Scrape{
	Interval:       250 * time.Millisecond,
	Timeout:        2 * time.Second,
	MaxBytes:       4 << 20,
	ModelsEvery:    2 * time.Second,
	HealthEvery:    time.Second,
	UnhealthyAfter: 3,
}

// reading is what one round of questions to an engine gave.
type reading struct {
	outcome     Outcome
	err         error
	health      state.Health
	load        state.Load // of the last good scrape
	incarnation uint32
	block       uint32
	cacheTokens uint32
	asleep      bool // and so without a cache
	served      served
}

// engine asks one replica and remembers what it said. It belongs to one
// goroutine.
type engine struct {
	base    string // "http://10.0.0.7:8000"
	client  *client
	scrape  Scrape
	tracker *tracker

	health     state.Health
	failures   int  // in a row
	down       bool // by /health
	load       state.Load
	served     served
	models     time.Time // of the last look at /v1/models
	healthSeen time.Time
}

func newEngine(c *client, scrape Scrape, address string, t *tracker) *engine {
	return &engine{base: "http://" + address, client: c, scrape: scrape, tracker: t, load: state.NoLoad()}
}

// run asks until ctx ends. The first question comes after a moment, so that a
// large pool does not begin in step.
func (e *engine) run(ctx context.Context, tell func(reading)) {
	if !sleep(ctx, rand.N(min(e.scrape.Interval, 50*time.Millisecond))) {
		return
	}
	for {
		r := e.ask(ctx, time.Now)
		if ctx.Err() != nil {
			return
		}
		tell(r)
		if !sleep(ctx, jitter(e.scrape.Interval)) {
			return
		}
	}
}

// jitter spreads d by a tenth either way.
func jitter(d time.Duration) time.Duration {
	tenth := d / 10
	return d - tenth + rand.N(2*tenth+1)
}

// ask goes one round: the load, and what else is due.
func (e *engine) ask(ctx context.Context, now func() time.Time) reading {
	s, err := e.client.metrics(ctx, e.scrape.Timeout, e.base)
	at := now()
	if err == nil {
		e.load = e.tracker.observe(&s, at)
		e.askHealth(ctx, at)
		e.askModels(ctx, at, s.Adapters)
	}
	e.judge(err)
	return reading{
		outcome: outcome(err), err: err, health: e.health, load: e.load,
		incarnation: e.tracker.incarnation(), block: e.tracker.block,
		cacheTokens: e.tracker.cacheTokens, asleep: err == nil && s.asleep(), served: e.served,
	}
}

// judge decides on the replica's health: good after one good scrape, bad
// after several that failed or as soon as /health says so.
func (e *engine) judge(err error) {
	if err == nil {
		e.failures = 0
		e.health = state.Healthy
		if e.down {
			e.health = state.Unhealthy
		}
		return
	}
	if e.failures++; e.failures >= e.scrape.UnhealthyAfter {
		e.health = state.Unhealthy
		e.models = time.Time{} // whoever comes back may serve something else
	}
}

// askHealth looks at /health: an engine whose core has died still serves its
// metrics for a while. Only a server's error counts; a server that has no such
// page is not ill.
func (e *engine) askHealth(ctx context.Context, now time.Time) {
	if !e.down && now.Sub(e.healthSeen) < e.scrape.HealthEvery {
		return
	}
	e.healthSeen = now
	err := e.client.get(ctx, e.scrape.Timeout, e.base+"/health", func([]byte) error { return nil })
	var status statusError
	e.down = errors.As(err, &status) && status >= 500
}

// askModels looks at /v1/models, at once when the metrics name an adapter that
// was not listed. An answer that cannot be used leaves what was known.
func (e *engine) askModels(ctx context.Context, now time.Time, adapters []string) {
	due := now.Sub(e.models) >= e.scrape.ModelsEvery
	for _, name := range adapters {
		due = due || !e.served.lists(name) && now.Sub(e.models) >= e.scrape.Interval
	}
	if !due {
		return
	}
	e.models = now
	_ = e.client.get(ctx, e.scrape.Timeout, e.base+"/v1/models", func(body []byte) error {
		s, err := parseModels(body)
		if err == nil {
			e.served = s
		}
		return err
	})
}
