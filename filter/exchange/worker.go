package exchange

import (
	"github.com/warmlane/warmlane/filter/prefix"
	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// Env is what comes from outside.
type Env struct {
	Store shared.Store
	Now   func() int64  // milliseconds since the Unix epoch
	Dice  func() uint64 // uniform random numbers
}

// Worker is what one VM keeps between exchanges.
type Worker struct {
	config   *Config
	env      Env
	tally    *Tally
	pools    []*pool
	index    *prefix.Index
	tier2    *tier2 // nil if no pool has KV events
	sequence uint32 // of the state in force; 0 = none yet
	snapshot state.Snapshot
	verdict  Verdict
	reply    Reply
	report   route.Report // that an answer's head brought
	scratch  scratch
	metrics  workerSeries
}

// pool is a pool of the configuration with what is known of it.
type pool struct {
	name    []byte
	known   map[string]struct{} // models that the configuration or a replica names
	router  *route.Router
	series  *poolSeries
	precise *precise         // nil if its replicas publish no KV events
	warm    []prefix.Replica // by slot, for the text index
	matched []uint32         // by slot, bytes and then tokens
	opened  []uint32         // by slot, bytes of what stands before the prompt

	answers  uint32 // so far, see doubts
	missedAt int64  // when another replica than the one named last answered; 0 = never
}

// scratch is memory that verdicts point into.
type scratch struct {
	order, decision, load, log, body, session, length, work []byte
}

// NewWorker returns a worker that knows no replicas yet. It touches nothing
// in env until the first event.
func NewWorker(c *Config, env Env) *Worker {
	w := &Worker{config: c, env: env, tally: NewTally()}
	w.index = prefix.New(env.Store, c.index())
	for _, pc := range c.pools() {
		p := &pool{
			name: []byte(pc.Name), known: make(map[string]struct{}), precise: newPrecise(&pc),
			router: route.New(env.Store, pc.Name, c.routing(), uint32(env.Dice())),
			series: newPoolSeries(w.tally, pc.Name, c.Metrics.MaxModels),
		}
		for _, m := range pc.Models {
			p.learn(m)
		}
		if p.precise != nil && w.tier2 == nil {
			w.tier2 = newTier2(env.Store)
		}
		w.pools = append(w.pools, p)
	}
	w.metrics = newWorkerSeries(w.tally)
	return w
}

// routing is the part of the configuration that package route works by.
func (c *Config) routing() route.Config {
	r := route.Defaults()
	r.Behind, r.PerRequest = float32(c.Routing.QueueWeight), float32(c.Routing.InFlightCost)
	r.StartRate, r.HalfLifeMS = float32(c.Routing.PrefillRate), c.Routing.LoadHalfLifeMS
	return r
}

// index divides its bound between the two kinds of buckets.
func (c *Config) index() prefix.Options {
	half := c.Routing.IndexMiB << 19
	return prefix.Options{Groups: half >> 13, GroupBytes: 1 << 13, Borders: half >> 10, BorderBytes: 1 << 10}
}

// pools are those of the configuration, or the one that need not be named.
func (c *Config) pools() []PoolConfig {
	if len(c.Pools) == 0 {
		p := newPoolConfig()
		p.Name = "default"
		return []PoolConfig{p}
	}
	return c.Pools
}

// PoolNames are the pools in the order of the configuration.
func (c *Config) PoolNames() []string {
	names := make([]string, len(c.pools()))
	for i, p := range c.pools() {
		names[i] = p.Name
	}
	return names
}

// Tally is where the worker's counts gather.
func (w *Worker) Tally() *Tally { return w.tally }

func (p *pool) learn(model string) {
	p.known[model] = struct{}{}
	p.series.admit(model)
}

// Announce takes over state that this VM has just published and spreads its
// sequence number through the ledgers, where every worker sees it with its
// next request.
func (w *Worker) Announce(now int64) {
	w.adopt()
	for _, p := range w.pools {
		p.router.Spread(now)
	}
}

// adopt puts the state in shared data in force, if it is newer. What cannot be
// read changes nothing.
func (w *Worker) adopt() {
	sequence, blob, err := shared.LoadPublished(w.env.Store, []byte(shared.StateKey))
	if err != nil || sequence == w.sequence {
		return
	}
	if err := state.DecodeSnapshot(blob, &w.snapshot); err != nil {
		return
	}
	w.sequence = sequence
	for _, p := range w.pools {
		p.adopt(poolNamed(&w.snapshot, string(p.name)), sequence)
	}
}

// poolNamed finds a pool; one that control does not know is empty.
func poolNamed(s *state.Snapshot, name string) *state.Pool {
	for i := range s.Pools {
		if s.Pools[i].Name == name {
			return &s.Pools[i]
		}
	}
	return &state.Pool{Name: name}
}

func (p *pool) adopt(s *state.Pool, sequence uint32) {
	p.router.Adopt(s, sequence)
	for _, m := range s.Models {
		p.learn(m)
	}
	for i := range s.Replicas {
		for _, m := range s.Replicas[i].Models {
			p.learn(m)
		}
		for _, a := range s.Replicas[i].Adapters {
			p.learn(a.Name)
		}
	}
	for len(p.warm) < p.router.Slots() {
		p.warm, p.matched, p.opened = append(p.warm, prefix.Replica{}), append(p.matched, 0), append(p.opened, 0)
	}
	if p.precise != nil {
		p.precise.adopt(s, p.router.Slots())
	}
}

// behind says that a ledger has been written by a worker with newer state.
func (p *pool) behind(generation uint32) bool {
	return int32(generation-p.router.Generation()) > 0
}

// Tick does what is due now and then: seats in the ledgers, state that others
// have published, gauges (by the one VM that leads).
func (w *Worker) Tick(now int64, leading bool) {
	for _, p := range w.pools {
		p.router.Tick(now)
		if p.behind(p.router.Newest()) {
			w.adopt()
		}
		if p.precise != nil {
			p.precise.windows(p.router, now)
		}
		for slot := range p.router.Slots() {
			if leading && (p.router.Key(slot) != 0 || slot < len(p.series.inFlight)) {
				w.tally.set(p.series.gauge(slot), uint64(p.router.InFlight(slot)))
			}
		}
	}
}

// Doubts tells of each replica whose index keeps claiming what is not there, by
// its slot. It tells of it once; if it goes on, again.
func (w *Worker) Doubts(say func(slot uint16)) {
	for _, p := range w.pools {
		if p.precise == nil {
			continue
		}
		for slot := range p.precise.slots {
			if t := &p.precise.slots[slot].trust; t.doubt {
				t.doubt = false
				say(uint16(slot))
			}
		}
	}
}

// Freshness says how old, in milliseconds, the word of control is and which
// generation it was; age -1 says that it was never heard.
func (w *Worker) Freshness(age int64, generation uint64) {
	if age >= 0 {
		w.tally.set(w.metrics.stateAge, uint64(age))
		w.tally.set(w.metrics.generation, generation)
	}
}

// Panics tells how many panics this VM has recovered so far.
func (w *Worker) Panics(total uint64) {
	w.tally.add(w.metrics.panics, total-w.metrics.panicsSeen)
	w.metrics.panicsSeen = total
}

// poolOf finds the pool that serves model; found is false if none names it.
func (w *Worker) poolOf(model []byte) (p *pool, found bool) {
	for _, p := range w.pools {
		if _, ok := p.known[string(model)]; ok {
			return p, true
		}
	}
	return w.pools[0], false
}

// knowsModels says whether there is any ground to call a model unknown: before
// the first state there is none, but for the configuration.
func (w *Worker) knowsModels() bool {
	for _, p := range w.pools {
		if len(p.known) > 0 {
			return true
		}
	}
	return false
}
