package collect

import (
	"context"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

// This file is the collector's side of the KV index.

// newFeed makes the feed of a replica.
func (c *Collector) newFeed(p *poolFold, r *replica) *feed {
	return &feed{
		holder:   p.shelf.enter(r),
		pool:     p.config.Name,
		config:   *p.config.Events,
		address:  r.now.Address,
		client:   c.clientFor(p.config.Scrape.MaxBytes),
		timeout:  p.config.Scrape.Timeout,
		counters: c.config.Counters,
		answered: c.config.Answered,
		log:      c.config.Log.With("pool", p.config.Name, "address", r.now.Address),
		news:     make(chan facts, 1),
		doubts:   make(chan struct{}, 1),
	}
}

// runFeed runs the feed of a replica, and lets others find it meanwhile.
func (c *Collector) runFeed(ctx context.Context, r *replica) {
	c.feeds.Store(r.place.slot, r.feed)
	defer c.feeds.Delete(r.place.slot)
	r.feed.run(ctx)
}

// takeOff hands on what changes on a pool's shelf.
func (c *Collector) takeOff(pool string, s *shelf) {
	s.run(c.ctx, c.config.Coalesce, func(ch changes) {
		c.send(func(now time.Time) { c.shelved(pool, &ch, now) })
	})
}

// shelved takes in what has changed on a pool's shelf. It was gathered long
// enough; but two pools that change in turn make no more states than one.
func (c *Collector) shelved(pool string, ch *changes, now time.Time) {
	c.mark(c.fold.pools[pool].stand(ch.standings), now)
	if len(ch.records) > 0 {
		c.patches.add(pool, ch.records)
	}
	c.agenda.blocks(later(now, c.told.Add(c.config.Coalesce)))
}

// patches is what has changed of each pool's index and is not published yet.
type patches []state.Patch

// add adds what changed next. Records are state: the newest one holds.
func (p *patches) add(pool string, records []state.Record) {
	for i := range *p {
		if (*p)[i].Pool == pool {
			(*p)[i].Records = merge((*p)[i].Records, records)
			return
		}
	}
	*p = append(*p, state.Patch{Pool: pool, Records: records})
}

func (p *patches) take() []state.Patch {
	all := *p
	*p = nil
	return all
}

// merge returns the records of both lists, those of next where both have one.
func merge(old, next []state.Record) []state.Record {
	newer := make(map[uint64]struct{}, len(next))
	for i := range next {
		newer[next[i].ID] = struct{}{}
	}
	for i := range old {
		if _, ok := newer[old[i].ID]; !ok {
			next = append(next, old[i])
		}
	}
	return next
}

// KV says what is known of the blocks of the replica in a slot; ok is false
// if its events are not followed. Any goroutine may call it.
func (c *Collector) KV(slot uint16) (kv KV, ok bool) {
	f, ok := c.feedOf(slot)
	if !ok {
		return KV{}, false
	}
	return f.holder.kv(), true
}

// Blocks lists what is known to be cached by the replica of a pool in a slot,
// in the order of hashes; ok is false if its events are not followed. Any
// goroutine may call it.
func (c *Collector) Blocks(pool string, slot uint16) (list []Block, ok bool) {
	f, ok := c.feedOf(slot)
	if !ok || f.pool != pool {
		return nil, false
	}
	return f.holder.blocks(), true
}

// Doubt says that the index keeps lying about the replica in a slot. Its
// events are then asked for again, at most once in half a minute. It does not
// wait; any goroutine may call it.
func (c *Collector) Doubt(slot uint16) {
	if f, ok := c.feedOf(slot); ok {
		f.doubt()
	}
}

func (c *Collector) feedOf(slot uint16) (*feed, bool) {
	f, ok := c.feeds.Load(slot)
	if !ok {
		return nil, false
	}
	return f.(*feed), true
}
