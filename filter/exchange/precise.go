package exchange

import (
	"github.com/cespare/xxhash/v2"

	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/route"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// tier2 is what a worker has for pools whose replicas publish KV events.
type tier2 struct {
	blocks  *kvindex.Reader
	learned *kvindex.Learned
	chain   kvindex.Chain
	tokens  []uint32 // of the prompt at hand
	keys    []uint64 // of its blocks, where they were learned
	kept    keeper
	jobs    [maxJobs]job
	call    Call
}

func newTier2(store shared.Store) *tier2 {
	return &tier2{
		blocks:  kvindex.NewReader(store, kvindex.Options{}),
		learned: kvindex.NewLearned(store, kvindex.Options{}),
	}
}

// precise is what a worker knows of a pool whose replicas publish KV events.
type precise struct {
	config   PoolConfig
	hash     uint64 // of the pool's name
	slots    []slot
	sizes    []uint32            // block sizes of the replicas, at most maxSizes
	adapters map[string]struct{} // LoRA names; every other model is the base
	indexed  bool                // some replica's blocks are known
	tagged   bool                // some replica's events carry session tags

	runs  []kvindex.Run // by slot, of the prompt at hand
	young []uint32      // by slot, bytes sent so lately that events may be missing

	perByte float32 // tokens a canonical byte makes, as a moving average
	rest    backoff
	budget  allowance
	calls   int   // learning calls in flight
	strayAt int64 // when the tag of a known prompt last led nowhere; 0 = never
}

// slot is what is known of a replica's index.
type slot struct {
	state state.KVState
	size  uint32 // block size, tokens; 0 = not known
	held  uint32 // tokens it holds of the prompt at hand, lower tiers weighted
	all   bool   // it holds all blocks that are known of the prompt at hand
	trust trust
	sent  window
	open  uint32 // of that window, as last looked at
}

// maxSizes bounds the block sizes looked up for one prompt.
const maxSizes = 2

func newPrecise(c *PoolConfig) *precise {
	if !c.KVEvents {
		return nil
	}
	return &precise{
		config: *c, hash: xxhash.Sum64String(c.Name), perByte: 1.0 / bytesPerToken,
		adapters: make(map[string]struct{}),
		budget:   allowance{perS: c.Budget.CallsPerS},
	}
}

// adopt takes over what control says of the pool's replicas, which have places
// for so many slots.
func (p *precise) adopt(s *state.Pool, slots int) {
	for len(p.slots) < slots {
		p.slots = append(p.slots, slot{})
		p.runs, p.young = append(p.runs, kvindex.Run{}), append(p.young, 0)
	}
	for i := range p.slots {
		p.slots[i].state, p.slots[i].size = state.KVNone, 0
	}
	clear(p.adapters)
	p.sizes, p.indexed, p.tagged = p.sizes[:0], false, false
	for i := range s.Replicas {
		r := &s.Replicas[i]
		for _, a := range r.Adapters {
			p.adapters[a.Name] = struct{}{}
		}
		if int(r.Slot) < slots && r.KV != state.KVNone && r.BlockSize > 0 {
			p.index(r)
		}
	}
}

// indexed says that the blocks of some replica of the pool are known. Until then
// a pool costs what one without KV events costs.
func (p *pool) indexed() bool { return p.precise != nil && p.precise.indexed }

func (w *Worker) indexed() bool {
	for _, p := range w.pools {
		if p.indexed() {
			return true
		}
	}
	return false
}

// index adopts a replica whose blocks are known.
func (p *precise) index(r *state.Replica) {
	p.slots[r.Slot].state, p.slots[r.Slot].size = r.KV, r.BlockSize
	p.indexed, p.tagged = true, p.tagged || r.Tags
	for _, size := range p.sizes {
		if size == r.BlockSize {
			return
		}
	}
	if len(p.sizes) < maxSizes {
		p.sizes = append(p.sizes, r.BlockSize)
	}
}

// density learns how many tokens a byte of text makes, from a prompt that is text
// and nothing else.
func (p *precise) density(tokens uint32, bytes int64) {
	p.perByte += (min(float32(tokens)/float32(bytes), 1) - p.perByte) / 16
}

// root is the namespace of a prompt's blocks.
func (p *precise) root(model []byte, salt uint64) uint64 {
	if _, ok := p.adapters[string(model)]; !ok {
		model = nil
	}
	return kvindex.Root(p.config.Name, model, salt)
}

// forget begins a look-up.
func (p *precise) forget() {
	for i := range p.slots {
		p.slots[i].held, p.slots[i].all = 0, false
	}
}

// take notes what runs say of the replicas with blocks of so many tokens, where
// depth blocks of the prompt are known.
func (p *precise) take(size, depth uint32) {
	for i, run := range p.runs {
		s := &p.slots[i]
		if s.size != size {
			continue
		}
		lower := float32(max(run.Any, run.GPU)-run.GPU) * float32(p.config.TierWeight)
		s.held = run.GPU*size + uint32(lower*float32(size))
		s.all = run.Any >= depth
	}
}

// nodes is how many nodes of the index a prompt of so many tokens has, if no
// other prompt parts from it.
func (p *precise) nodes(tokens uint32) int {
	return int(tokens/(p.sizes[0]*kvindex.MaxRun)) + 1
}

// tiny says that a prompt of so many tokens has no block that can be cached.
func (p *precise) tiny(tokens uint32) bool {
	for _, size := range p.sizes {
		if cacheable(tokens, size) > 0 {
			return false
		}
	}
	return true
}

// merge turns the text tier's word, in bytes by slot, into tokens in place and
// brings the engines' word in. The text counts where it knows more than the
// index can: the replica's index has gaps or has been wrong, its events may
// still be on their way, or it holds all that is known in tokens.
func (p *precise) merge(r *route.Router, k *knowledge, text []uint32, now int64) {
	for i := range text {
		s := &p.slots[i]
		last := cacheable(k.prompt, s.size)
		weight := s.trust.weight(r.Key(i), now)
		bytes := text[i]
		if s.state == state.KVComplete && weight == 1 && !s.all {
			bytes = p.young[i]
		}
		held := uint32(float32(min(s.held, last)) * weight)
		sent := uint32(float32(bytes)*k.perByte) / max(s.size, 1) * max(s.size, 1) // an engine holds whole blocks
		text[i] = max(held, min(sent, last))
	}
}

// windows finds how much of the newest of each replica's text entries the index
// may not have; any says that there is some.
func (p *precise) windows(r *route.Router, now int64) (any bool) {
	for i := range p.slots {
		if r.Key(i) != 0 {
			s := &p.slots[i]
			s.open = s.sent.open(r.Clock(i), uint32(r.Owed(i, now))/route.ClockUnit, now)
			any = any || s.open > 0
		}
	}
	return any
}
