package blocks

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// model is a pool of engines, and what is to be known of them, in the simplest
// form. The engines publish to an index.
type model struct {
	b       *bench
	dice    *rand.Rand
	engines []*modelEngine
	texts   map[uint64]prompt
}

// modelEngine has blocks by hash. Its requests either ask for reports or make
// copies of whole prompts, as nothing else could tell these two apart.
type modelEngine struct {
	at      At
	seed    uint64
	reports bool
	sure    bool // it is known to report
	sized   bool // it has stored something
	copies  map[kvevents.Hash]int
	low     map[kvevents.Hash]bool
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{b: newBench(t), dice: rand.New(rand.NewPCG(seed, 1)), texts: map[uint64]prompt{}}
	for i, at := range []At{{0, 0}, {1, 0}, {1, 1}, {2, -1}, {4, 0}, {4, 1}} {
		m.engines = append(m.engines, &modelEngine{at: at, seed: uint64(i), reports: i%2 == 1})
		m.engines[i].empty()
	}
	return m
}

func (e *modelEngine) empty() {
	e.copies, e.low = map[kvevents.Hash]int{}, map[kvevents.Hash]bool{}
}

// prompt is a random one. All share few beginnings; some are long.
func (m *model) prompt() prompt {
	p := prompt{space: []space{{}, {lora: "sql"}, {salt: "t"}, {lora: "sql", salt: "t"}}[m.dice.IntN(8)/2%4]}
	n := 1 + m.dice.IntN(12)
	if m.dice.IntN(10) == 0 {
		n += 128 + m.dice.IntN(200)
	}
	if m.dice.IntN(2) == 0 {
		p.space = space{}
	}
	for i := range n {
		word := 1 // the rest of a long prompt is always the same
		if i < 12 {
			word = 1 + m.dice.IntN(40)/39*m.dice.IntN(3) + m.dice.IntN(10)/9
		}
		p.blocks = append(p.blocks, word)
	}
	return p
}

// hits is how many leading blocks of p the engine has.
func (e *modelEngine) hits(p prompt) int {
	n := 0
	for n < len(p.blocks) && e.copies[p.hash(e.seed, n)] > 0 {
		n++
	}
	return n
}

func (m *model) batch() float64 {
	if m.dice.IntN(3) > 0 {
		m.b.ts++
	}
	return m.b.ts
}

// request has an engine serve a prompt: it reports what it has if asked to, and
// stores the rest in some pieces.
func (m *model) request(e *modelEngine) {
	p := m.prompt()
	hits := min(e.hits(p), len(p.blocks)-1) // the last block is computed anew
	key := uint64(m.dice.IntN(30))
	m.b.ts++
	if e.reports && (hits >= 2 || hits == 1 && e.sure) && m.dice.IntN(2) == 0 {
		e.sure = true
		m.store(e, p, 0, hits, key, false)
	}
	if e.reports && hits == 0 && e.hits(p) == 1 {
		return // looks like a report of one block
	}
	twice := hits == 0 && !e.reports && m.dice.IntN(4) == 0
	ts := m.b.ts
	for from := hits; from < len(p.blocks); {
		to := min(len(p.blocks), from+1+m.dice.IntN(len(p.blocks)))
		m.store(e, p, from, to, key, true)
		if twice && from == 0 && m.b.ts == ts {
			m.store(e, p, from, to, key, true)
		}
		from = to
		m.batch()
	}
}

func (m *model) store(e *modelEngine, p prompt, from, to int, key uint64, copies bool) {
	ev := p.stored(e.seed, from, to)
	if key > 0 {
		ev.Session = session(key)
	}
	m.b.Stored(e.at, ev, m.b.ts)
	e.sized = true
	for i := from; copies && i < to; i++ {
		e.copies[p.hash(e.seed, i)]++
	}
	path := prompt{p.space, p.blocks[:to]}
	if old := m.texts[key]; key > 0 && !(old.space == path.space && len(old.blocks) >= to && slices.Equal(old.blocks[:to], path.blocks)) {
		m.texts[key] = path
	}
}

// evict takes blocks of a prompt from an engine, from the end or anywhere.
func (m *model) evict(e *modelEngine) {
	p := m.prompt()
	n := e.hits(p)
	for i := range 1 + m.dice.IntN(2*len(p.blocks)) {
		at := n - 1 - i
		if m.dice.IntN(4) == 0 {
			at = m.dice.IntN(len(p.blocks))
		}
		if at < 0 {
			continue
		}
		m.b.Removed(e.at, p.removed(e.seed, at))
		h := p.hash(e.seed, at)
		if e.copies[h]--; e.copies[h] <= 0 {
			delete(e.copies, h)
		}
	}
}

// offload puts leading blocks of a prompt into a lower tier, or takes some out.
func (m *model) offload(e *modelEngine) {
	p := m.prompt()
	n := 1 + m.dice.IntN(len(p.blocks))
	if m.dice.IntN(2) == 0 {
		ev := p.stored(e.seed, 0, n)
		ev.Medium = kvevents.CPU
		m.b.Stored(e.at, ev, m.b.ts)
		for i := 0; e.sized && i < n; i++ {
			e.low[p.hash(e.seed, i)] = true
		}
		return
	}
	ev := p.removed(e.seed, n-1)
	ev.Medium = kvevents.CPU
	m.b.Removed(e.at, ev)
	delete(e.low, p.hash(e.seed, n-1))
}

func (m *model) step() {
	e := m.engines[m.dice.IntN(len(m.engines))]
	switch n := m.dice.IntN(1000); {
	case n < 550:
		m.request(e)
	case n < 900:
		m.evict(e)
	case n < 980:
		m.offload(e)
	case n < 990:
		m.b.Cleared(e.at)
		e.empty()
	case n < 995:
		m.b.Reset(e.at)
		e.empty()
		e.sure, e.sized = false, false
	case n < 997:
		m.b.Drop(e.at.Slot)
		for _, other := range m.engines {
			if other.at.Slot == e.at.Slot {
				other.empty()
				other.sure, other.sized = false, false
			}
		}
	}
}

// runs is how many leading blocks of p a slot has, on GPUs and in any tier.
func (m *model) runs(slot uint16, p prompt) (onGPU, any int) {
	for i := range p.blocks {
		has, low := false, false
		for _, e := range m.engines {
			if e.at.Slot == slot {
				h := p.hash(e.seed, i)
				has, low = has || e.copies[h] > 0, low || e.low[h]
			}
		}
		if has && onGPU == i {
			onGPU++
		}
		if any == i && (has || low) {
			any++
		}
	}
	return onGPU, any
}

func (m *model) compare() {
	t := m.b.t
	m.b.pull()
	for range 20 {
		p := m.prompt()
		for slot := range uint16(5) {
			gpu, any := m.b.run(slot, p.keys())
			if wantGPU, wantAny := m.runs(slot, p); gpu != wantGPU || any != wantAny {
				t.Fatalf("slot %d has %d and %d blocks of %v, want %d and %d", slot, gpu, any, p, wantGPU, wantAny)
			}
		}
	}
	for slot := range uint16(5) {
		want := map[kvevents.Hash]int{}
		for _, e := range m.engines {
			if e.at.Slot == slot {
				maps.Copy(want, e.copies)
			}
		}
		if got := m.b.Hashes(slot); !maps.Equal(got, want) || m.b.Blocks(slot) != len(want) {
			t.Fatalf("slot %d: %d blocks, copies %v, want %v", slot, m.b.Blocks(slot), got, want)
		}
	}
	for key, p := range m.texts {
		m.b.textIs(key, p)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestModel lets random engines publish and compares what a filter sees through
// the records with what they have.
func TestModel(t *testing.T) {
	most := 0
	for seed := range uint64(6) {
		m := newModel(t, seed)
		for i := range 1500 {
			m.step()
			if i%(3+int(seed)*7) == 0 {
				m.compare()
				most = max(most, len(m.b.records))
			}
		}
		if n := m.b.anomalies[kvevents.UnknownParent] + m.b.anomalies[kvevents.OverCapacity]; n > 0 {
			t.Errorf("anomalies %v", m.b.anomalies)
		}
	}
	if most < 50 {
		t.Errorf("never more than %d records: too tame", most)
	}
}
