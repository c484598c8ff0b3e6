package kvindex

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

// model is the truth that the index is about, kept block by block: which
// prompts there are and who holds what.
type model struct {
	r      *rand.Rand
	root   uint64
	blocks map[uint64]*block
	order  []uint64 // keys of the blocks, for a reproducible choice
	texts  map[uint64]uint64
	slots  int
}

type block struct {
	key, parent uint64
	depth       int
	children    []uint64
	gpu, any    map[int]bool // slots
}

const modelBlockSize = 16

func newModel(seed uint64, slots int) *model {
	m := &model{
		r: rand.New(rand.NewPCG(seed, 7)), root: Root("default", nil, 0),
		blocks: make(map[uint64]*block), texts: make(map[uint64]uint64), slots: slots,
	}
	m.blocks[0] = &block{depth: -1}
	return m
}

// grow adds n blocks after the one with key parent (0 = at the root) and
// returns the last one's key.
func (m *model) grow(parent uint64, n int) uint64 {
	for range n {
		seed := parent
		if parent == 0 {
			seed = m.root
		}
		b := &block{key: Next(seed, []uint32{m.r.Uint32()}), parent: parent, depth: m.blocks[parent].depth + 1,
			gpu: make(map[int]bool), any: make(map[int]bool)}
		m.blocks[b.key] = b
		m.blocks[parent].children = append(m.blocks[parent].children, b.key)
		m.order = append(m.order, b.key)
		parent = b.key
	}
	return parent
}

// path are the keys from the root to the block.
func (m *model) path(key uint64) []uint64 {
	var keys []uint64
	for ; key != 0; key = m.blocks[key].parent {
		keys = append(keys, key)
	}
	slices.Reverse(keys)
	return keys
}

func (m *model) anyBlock() uint64 { return m.order[m.r.IntN(len(m.order))] }

// step changes something at random.
func (m *model) step() {
	if len(m.order) == 0 || m.r.IntN(6) == 0 {
		parent := uint64(0)
		if len(m.order) > 0 && m.r.IntN(4) > 0 {
			parent = m.anyBlock()
		}
		m.texts[m.r.Uint64()] = m.grow(parent, 1+m.r.IntN(200))
		return
	}
	slot := m.r.IntN(m.slots)
	switch m.r.IntN(8) {
	case 0: // forgets
		for _, key := range m.order {
			if m.r.IntN(10) == 0 {
				delete(m.blocks[key].gpu, slot)
				if m.r.IntN(2) == 0 {
					delete(m.blocks[key].any, slot)
				}
			}
		}
	case 1: // restarts
		for _, key := range m.order {
			delete(m.blocks[key].gpu, slot)
			delete(m.blocks[key].any, slot)
		}
	case 2: // a text is forgotten
		for _, t := range sortedKeys(m.texts)[:min(len(m.texts), 1)] {
			delete(m.texts, t)
		}
	case 3:
		m.prune()
	default:
		lower := m.r.IntN(4) == 0
		for _, key := range m.path(m.anyBlock()) {
			m.blocks[key].any[slot] = true
			if !lower {
				m.blocks[key].gpu[slot] = true
			}
		}
	}
}

// prune removes a leaf and what led only to it.
func (m *model) prune() {
	key := m.anyBlock()
	for range 50 {
		b := m.blocks[key]
		if key == 0 || len(b.children) > 0 {
			return
		}
		p := m.blocks[b.parent]
		p.children = slices.DeleteFunc(p.children, func(k uint64) bool { return k == key })
		m.order = slices.DeleteFunc(m.order, func(k uint64) bool { return k == key })
		delete(m.blocks, key)
		for t, end := range m.texts {
			if end == key {
				delete(m.texts, t)
			}
		}
		key = b.parent
	}
}

// records are all records of what the model holds. Nodes end where prompts part
// and at every MaxRun blocks, as if full ones had been split.
func (m *model) records() map[uint64][]byte {
	all := make(map[uint64][]byte)
	nodeOf := make(map[uint64]uint64)
	for _, child := range m.blocks[0].children {
		m.addNodes(all, nodeOf, child, 0)
	}
	for t, end := range m.texts {
		b := m.blocks[end]
		leaf := nodeOf[end]
		all[t] = AppendText(nil, &Text{
			Leaf: leaf, Blocks: uint8(b.depth - m.blocks[leaf].depth + 1), Depth: uint32(b.depth + 1), Size: modelBlockSize,
		})
	}
	return all
}

func (m *model) addNodes(all map[uint64][]byte, nodeOf map[uint64]uint64, first, parent uint64) {
	run := []*block{m.blocks[first]}
	for last := run[0]; len(last.children) == 1 && (last.depth+1)%MaxRun != 0; {
		last = m.blocks[last.children[0]]
		run = append(run, last)
	}
	n := Node{Parent: parent, Depth: uint32(run[0].depth), Size: modelBlockSize}
	for _, b := range run {
		n.Tags = append(n.Tags, uint16(b.key))
		nodeOf[b.key] = first
	}
	for slot := range m.slots {
		held := Held{Slot: uint16(slot)}
		for held.Any < uint8(len(run)) && run[held.Any].any[slot] {
			held.Any++
		}
		for held.Run < uint8(len(run)) && run[held.Run].gpu[slot] {
			held.Run++
		}
		if held.Any > 0 {
			n.Held = append(n.Held, held)
		}
	}
	all[first] = AppendNode(nil, &n)
	for _, child := range run[len(run)-1].children {
		m.addNodes(all, nodeOf, child, first)
	}
}

// runs are what a look-up of the keys should find.
func (m *model) runs(keys []uint64) []Run {
	runs := make([]Run, m.slots)
	for slot := range runs {
		runs[slot] = Run{
			GPU: m.count(keys, func(b *block) bool { return b.gpu[slot] }),
			Any: m.count(keys, func(b *block) bool { return b.any[slot] }),
		}
	}
	return runs
}

func (m *model) count(keys []uint64, has func(*block) bool) uint32 {
	for i, key := range keys {
		if b := m.blocks[key]; b == nil || !has(b) {
			return uint32(i)
		}
	}
	return uint32(len(keys))
}

// prompt is one to look up: a part of a known path, perhaps going on otherwise.
// It does not part from the path by a key with the same tag.
func (m *model) prompt() []uint64 {
	keys := m.path(m.anyBlock())
	keys = keys[:m.r.IntN(len(keys)+1)]
	if m.r.IntN(2) == 0 {
		return keys
	}
	other := m.r.Uint64()
	if n := len(keys); n > 0 && len(m.blocks[keys[n-1]].children) == 1 {
		other = ^m.blocks[keys[n-1]].children[0]
	}
	return append(keys, other, m.r.Uint64())
}

func sortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }

// queueChanges queues what differs between two states of all records.
func queueChanges(w *Writer, old, now map[uint64][]byte) (changed int) {
	for _, id := range sortedKeys(old) {
		if now[id] == nil {
			w.Queue(id, nil)
			changed++
		}
	}
	for _, id := range sortedKeys(now) {
		if string(old[id]) != string(now[id]) {
			w.Queue(id, now[id])
			changed++
		}
	}
	return changed
}

// fill begins an index of the records and completes it.
func fill(t testing.TB, w *Writer, records map[uint64][]byte) {
	t.Helper()
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	queueChanges(w, nil, records)
	applyAll(t, w)
	if err := w.Complete(); err != nil {
		t.Fatal(err)
	}
}

func applyAll(t testing.TB, w *Writer) {
	t.Helper()
	for {
		if done, err := w.Apply(100); err != nil {
			t.Fatal(err)
		} else if done {
			return
		}
	}
}

// world is a model with an index of it.
type world struct {
	*model
	mem    *shared.Mem
	writer *Writer
	reader *Reader
	told   map[uint64][]byte // the records the writer was given
	now    int64
}

func newWorld(t testing.TB, seed uint64, slots int, o Options) *world {
	mem := shared.NewMem()
	w := &world{
		model: newModel(seed, slots), mem: mem,
		writer: NewWriter(mem.View(), o), reader: NewReader(mem.View(), o),
	}
	fill(t, w.writer, nil)
	return w
}

// begin has the reader read everything anew.
func (w *world) begin(t testing.TB) {
	t.Helper()
	w.now += keptFor
	if !w.reader.Begin(w.now) {
		t.Fatal("no index")
	}
}

// tell queues what changed since it was last called.
func (w *world) tell() (changed int) {
	records := w.records()
	changed = queueChanges(w.writer, w.told, records)
	w.told = records
	return changed
}
