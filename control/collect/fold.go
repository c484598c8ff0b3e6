package collect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/filter/state"
)

// Pool is a set of replicas to watch. Models, if any, are those the pool is
// said to serve; without, they are learned from the replicas.
type Pool struct {
	Name    string
	Models  []string
	Sources []Source
	Scrape  Scrape
	Events  *Events // nil = KV events are not followed
}

// urgency is how soon a change must be told. Load changes all the time and is
// told in batches: each telling costs every proxy a decode.
type urgency int

const (
	nothing urgency = iota
	fresher         // the load is as it was, and newer
	loaded          // a load changed
	changed         // who is there, how they are, what they serve
)

// fold is the next state in the making. One goroutine owns it; it waits for
// nothing and takes the time as an argument.
type fold struct {
	pools map[string]*poolFold
	slots slots
}

type poolFold struct {
	config   Pool
	lists    [][]Member // of each source; nil = not heard yet
	replicas map[string]*replica
	shelf    *shelf // nil = KV events are not followed
}

// replica is one address in one pool, as it is known now.
type replica struct {
	place    *place
	draining bool
	heard    bool // a first reading is there, good or bad
	now      state.Replica
	stop     func()

	feed    *feed             // nil = KV events are not followed
	feeds   []kvevents.Source // that are configured
	life    uint32            // counts the engines that were seen
	asleep  bool              // the engine is
	settled bool              // the feed's first word is there
}

func newFold(pools []Pool) *fold {
	f := &fold{pools: make(map[string]*poolFold, len(pools))}
	for _, p := range pools {
		fold := &poolFold{
			config: p, lists: make([][]Member, len(p.Sources)), replicas: make(map[string]*replica),
		}
		f.pools[p.Name] = fold
	}
	return f
}

// difference is what a new list changed.
type difference struct {
	added, removed []string // addresses
	refused        int      // replicas above the caps
	urgency        urgency
}

// members takes in the list of one source. Replicas that are in no list any
// more are stopped.
func (f *fold) members(pool string, source int, list []Member, now time.Time) (d difference) {
	f.slots.sweep(now)
	p := f.pools[pool]
	p.lists[source] = append([]Member{}, list...)
	all := normal(slices.Concat(p.lists...))
	d.refused = max(len(all)-state.MaxReplicas, 0)
	all = all[:len(all)-d.refused]
	d.removed = p.gone(all)
	for _, address := range d.removed {
		p.replicas[address].stop()
		delete(p.replicas, address)
		f.slots.leave(key{pool, address}, now)
		d.urgency = changed
	}
	for _, m := range all {
		f.member(p, m, &d)
	}
	return d
}

func (f *fold) member(p *poolFold, m Member, d *difference) {
	r := p.replicas[m.Address]
	if r == nil {
		if r = f.add(p, m); r == nil {
			d.refused++
			return
		}
		d.added, d.urgency = append(d.added, m.Address), changed
	}
	if r.draining != m.Draining {
		r.draining, d.urgency = m.Draining, changed
	}
	r.feeds = m.Feeds
}

// gone returns the addresses of replicas that all does not list.
func (p *poolFold) gone(all []Member) []string {
	left := maps.Clone(p.replicas)
	for _, m := range all {
		delete(left, m.Address)
	}
	return slices.Collect(maps.Keys(left))
}

// add makes a replica; nil if no slot is free.
func (f *fold) add(p *poolFold, m Member) *replica {
	place, ok := f.slots.take(key{p.config.Name, m.Address})
	if !ok {
		return nil
	}
	r := &replica{
		place: place, draining: m.Draining, stop: func() {},
		now: state.Replica{Slot: place.slot, Address: m.Address, Load: state.NoLoad()},
	}
	p.replicas[m.Address] = r
	return r
}

// read takes in what a replica said.
func (r *replica) read(in *reading) urgency {
	next := r.now
	next.Health, next.Load = in.health, in.load
	next.Incarnation, next.BlockSize, next.CacheTokens = in.incarnation, in.block, in.cacheTokens
	next.Models, next.Adapters = in.served.models, in.served.adapters
	old, first := r.now, !r.heard
	if old.Incarnation != 0 && old.Incarnation != next.Incarnation {
		r.life++
		next.KV, next.Tags = state.KVNone, false // what the feed has yet to learn
	}
	r.now, r.heard, r.asleep = next, true, in.asleep
	if first {
		return changed
	}
	return compare(&old, &next)
}

// stand takes in what the replicas' feeds think of themselves. What is said of
// an engine that is no more does not count.
func (p *poolFold) stand(all map[*replica]standing) (u urgency) {
	for r, s := range all {
		if p.replicas[r.now.Address] != r || s.life != r.life {
			continue
		}
		if r.now.KV != s.kv || r.now.Tags != s.tags {
			r.now.KV, r.now.Tags = s.kv, s.tags
			u = changed
		}
		r.settled = s.settled
	}
	return u
}

// compare sorts the difference of two states of a replica.
func compare(old, next *state.Replica) urgency {
	was := *old
	was.Load = next.Load
	if !state.EqualReplica(&was, next) {
		return changed
	}
	was.Load = old.Load
	was.Load.At = next.Load.At
	if !state.EqualLoad(&was.Load, &next.Load) {
		return loaded
	}
	if old.Load.At != next.Load.At {
		return fresher
	}
	return nothing
}

// complete reports whether every source has given its list, and every replica
// its first reading and what it has cached.
func (f *fold) complete() bool {
	for _, p := range f.pools {
		if slices.ContainsFunc(p.lists, func(l []Member) bool { return l == nil }) {
			return false
		}
		for _, r := range p.replicas {
			if !r.heard || r.feed != nil && !r.settled {
				return false
			}
		}
	}
	return true
}

// snapshot returns the pools as they are now, sorted as package state wants
// them. What it returns is never changed later.
func (f *fold) snapshot() []state.Pool {
	pools := make([]state.Pool, 0, len(f.pools))
	for _, p := range f.pools {
		pools = append(pools, p.snapshot())
	}
	slices.SortFunc(pools, func(a, b state.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools
}

func (p *poolFold) snapshot() state.Pool {
	out := state.Pool{Name: p.config.Name, Replicas: make([]state.Replica, 0, len(p.replicas))}
	for _, r := range p.replicas {
		now := r.now
		if r.draining {
			now.Health = state.Draining
		}
		out.Replicas = append(out.Replicas, now)
	}
	slices.SortFunc(out.Replicas, func(a, b state.Replica) int { return cmp.Compare(a.Slot, b.Slot) })
	out.Models = p.models()
	return out
}

// models returns the configured models, or all that the replicas serve; nil
// while neither is known.
func (p *poolFold) models() []string {
	if len(p.config.Models) > 0 {
		return p.config.Models
	}
	var all []string
	for _, r := range p.replicas {
		if r.now.Models != nil && all == nil {
			all = []string{}
		}
		all = append(all, r.now.Models...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), state.MaxModels)]
}
