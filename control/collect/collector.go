package collect

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/state"
)

// Config is what a [Collector] needs. All fields must be set but Observe and,
// if no pool has Events, Counters and Answered.
type Config struct {
	Pools []Pool

	// How long changes are gathered before they are told: who is there and
	// how they are, their load, and that an unchanged load is a newer one.
	Coalesce, LoadEvery, RefreshEvery time.Duration

	// FirstWithin is how long the first state waits for a reading of every
	// replica. A state with holes makes filters forget what they know.
	FirstWithin time.Duration

	Log *slog.Logger

	// Publish is called by one goroutine with the pools as they are, and for
	// each pool what has changed of its KV index. Neither is changed later.
	Publish func([]state.Pool, []state.Patch)

	// What follows is called by many goroutines.
	Observe  func(Outcome)     // for each scrape
	Counters kvevents.Counters // of KV events
	Answered func(Answer)      // for each question for /kv_event_sources
}

// Collector watches pools and publishes their state.
type Collector struct {
	config Config
	events chan func(now time.Time)
	fold   *fold
	wg     sync.WaitGroup
	ctx    context.Context

	started bool // the first state is out
	client  map[int64]*client
	agenda  agenda
	pools   []state.Pool // as they were published last
	told    time.Time    // when anything was published last
	patches patches
	feeds   sync.Map // *feed by slot
}

// New returns a collector that does nothing yet.
func New(config Config) *Collector {
	if config.Observe == nil {
		config.Observe = func(Outcome) {}
	}
	c := &Collector{
		config: config,
		events: make(chan func(time.Time), 64),
		fold:   newFold(config.Pools),
		client: make(map[int64]*client),
	}
	for name, p := range c.fold.pools {
		if p.config.Events != nil {
			p.shelf = newShelf(name, config.Counters)
		}
	}
	return c
}

// Run watches until ctx ends, and returns when all it started has ended.
func (c *Collector) Run(ctx context.Context) {
	c.ctx = ctx
	for _, p := range c.config.Pools {
		for i, s := range p.Sources {
			c.wg.Go(func() { c.follow(p.Name, i, s) })
		}
		if s := c.fold.pools[p.Name].shelf; s != nil {
			c.wg.Go(func() { c.takeOff(p.Name, s) })
		}
	}
	c.own(ctx)
	c.wg.Wait()
	for _, cl := range c.client {
		cl.http.CloseIdleConnections()
	}
}

// own is the loop of the goroutine that owns the fold.
func (c *Collector) own(ctx context.Context) {
	timer := time.NewTimer(c.config.FirstWithin)
	defer timer.Stop()
	deadline := time.Now().Add(c.config.FirstWithin)
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-c.events:
			event(time.Now())
		case <-timer.C:
		}
		now := time.Now()
		if !c.started && (c.fold.complete() || !now.Before(deadline)) {
			c.started = true
			c.agenda.state(now, true)
		}
		timer.Reset(c.wait(now, deadline))
	}
}

// wait publishes if that is due and returns how long until something is.
func (c *Collector) wait(now, deadline time.Time) time.Duration {
	if !c.started {
		return deadline.Sub(now)
	}
	if pools, index := c.agenda.next(now); pools || index {
		if pools {
			c.pools = c.fold.snapshot()
		}
		c.config.Publish(c.pools, c.patches.take())
		c.told = now
	}
	return c.agenda.wait(now)
}

// mark sees to it that a change is published in time.
func (c *Collector) mark(u urgency, now time.Time) {
	switch u {
	case changed:
		c.agenda.state(now.Add(c.config.Coalesce), true)
	case loaded:
		c.agenda.state(later(now.Add(c.config.Coalesce), c.agenda.published.Add(c.config.LoadEvery)), false)
	case fresher:
		c.agenda.state(later(now.Add(c.config.Coalesce), c.agenda.published.Add(c.config.RefreshEvery)), false)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// send hands an event to the owner; it is dropped when the collector ends.
func (c *Collector) send(event func(now time.Time)) {
	select {
	case c.events <- event:
	case <-c.ctx.Done():
	}
}

// follow runs one source.
func (c *Collector) follow(pool string, source int, s Source) {
	emit := func(list []Member) {
		c.send(func(now time.Time) { c.members(pool, source, list, now) })
	}
	report := func(err error) {
		c.config.Log.Warn("replicas: list not usable", "pool", pool, "err", err)
	}
	s.Run(c.ctx, emit, report)
}

func (c *Collector) members(pool string, source int, list []Member, now time.Time) {
	d := c.fold.members(pool, source, list, now)
	for _, address := range d.added {
		c.watch(pool, address)
	}
	if len(d.added) > 0 || len(d.removed) > 0 {
		c.config.Log.Info("replicas", "pool", pool, "added", d.added, "removed", d.removed)
	}
	if d.refused > 0 {
		c.config.Log.Error("replicas: too many, some are left out", "pool", pool, "left_out", d.refused)
	}
	for _, r := range c.fold.pools[pool].replicas {
		c.inform(r)
	}
	c.mark(d.urgency, now)
}

// inform tells a replica's feed what the fold knows.
func (c *Collector) inform(r *replica) {
	if r.feed == nil {
		return
	}
	x := facts{life: r.life, asleep: r.asleep, feeds: r.feeds}
	if r.now.BlockSize > 0 {
		x.capacity = int(r.now.CacheTokens / r.now.BlockSize)
	}
	r.feed.note(x)
}

// watch starts the goroutines of one replica.
func (c *Collector) watch(pool, address string) {
	p := c.fold.pools[pool]
	r := p.replicas[address]
	ctx, cancel := context.WithCancel(c.ctx)
	r.stop = cancel
	before, idle := r.place.idle, make(chan struct{})
	r.place.idle = idle
	var running sync.WaitGroup
	start := func(run func()) {
		running.Go(func() {
			if before != nil {
				<-before
			}
			run()
		})
	}
	e := newEngine(c.clientFor(p.config.Scrape.MaxBytes), p.config.Scrape, address, r.place.tracker)
	start(func() {
		e.run(ctx, func(in reading) {
			c.config.Observe(in.outcome)
			c.send(func(now time.Time) { c.read(pool, address, r, &in, now) })
		})
	})
	if p.shelf != nil {
		r.feed = c.newFeed(p, r)
		start(func() { c.runFeed(ctx, r) })
	}
	c.wg.Go(func() {
		defer close(idle)
		defer cancel()
		running.Wait()
	})
}

// clientFor returns the client with that cap. Pools share it.
func (c *Collector) clientFor(maxBytes int64) *client {
	if c.client[maxBytes] == nil {
		c.client[maxBytes] = newClient(maxBytes)
	}
	return c.client[maxBytes]
}

// read takes in a reading, unless its replica has gone meanwhile.
func (c *Collector) read(pool, address string, r *replica, in *reading, now time.Time) {
	if c.fold.pools[pool].replicas[address] != r {
		return
	}
	before := r.now.Health
	c.mark(r.read(in), now)
	c.inform(r)
	if before != r.now.Health {
		c.config.Log.Info("replica health", "pool", pool, "address", address,
			"from", before.String(), "to", r.now.Health.String(), "err", in.err)
	}
}
