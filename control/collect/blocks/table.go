package blocks

import (
	"math/bits"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// entry says what an engine means by a hash. At least one of gpu and low is set.
type entry struct {
	hash  kvevents.Hash
	block blockID // noBlock: known by name only
	gpu   uint16  // copies on the GPU, at most maxCopies
	low   uint8   // lower tiers that have it, a bit for each
}

const maxCopies = 1<<16 - 1

func (e *entry) free() bool { return e.gpu == 0 && e.low == 0 }

// table holds an engine's entries by hash: open addressing with linear probing,
// at most 4/5 full.
type table struct {
	slots []entry
	n     int
}

const firstSlots = 64

// home is where the search for a hash begins. Any number of slots will do.
func (t *table) home(h kvevents.Hash) int {
	hi, _ := bits.Mul64(h*0x9e3779b97f4a7c15, uint64(len(t.slots)))
	return int(hi)
}

func (t *table) next(i int) int {
	if i++; i == len(t.slots) {
		return 0
	}
	return i
}

// find returns the entry of h, nil if there is none. It is valid until the next
// put or remove.
func (t *table) find(h kvevents.Hash) *entry {
	if t.n == 0 {
		return nil
	}
	for i := t.home(h); !t.slots[i].free(); i = t.next(i) {
		if t.slots[i].hash == h {
			return &t.slots[i]
		}
	}
	return nil
}

// put returns the entry of h. If it is fresh, the caller sets gpu or low before
// anything else is done with the table.
func (t *table) put(h kvevents.Hash) (e *entry, fresh bool) {
	if 5*(t.n+1) > 4*len(t.slots) {
		t.grow()
	}
	i := t.home(h)
	for ; !t.slots[i].free(); i = t.next(i) {
		if t.slots[i].hash == h {
			return &t.slots[i], false
		}
	}
	t.n++
	t.slots[i] = entry{hash: h}
	return &t.slots[i], true
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]entry, max(firstSlots, len(old)+len(old)/2))
	for _, e := range old {
		if e.free() {
			continue
		}
		i := t.home(e.hash)
		for !t.slots[i].free() {
			i = t.next(i)
		}
		t.slots[i] = e
	}
}

// remove takes out e, an entry of the table whose counts are at zero, and closes
// the gap.
func (t *table) remove(e *entry) {
	gap := t.home(e.hash)
	for &t.slots[gap] != e {
		gap = t.next(gap)
	}
	t.n--
	for i := t.next(gap); !t.slots[i].free(); i = t.next(i) {
		// It may move up if its home does not lie after the gap.
		if t.steps(t.home(t.slots[i].hash), i) >= t.steps(gap, i) {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = entry{}
}

// steps is how often next leads from one place to another.
func (t *table) steps(from, to int) int {
	if to < from {
		return to - from + len(t.slots)
	}
	return to - from
}

// reset takes out all. The memory is kept for an engine that fills up again.
func (t *table) reset() {
	clear(t.slots)
	t.n = 0
}
