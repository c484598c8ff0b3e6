package abi

// entry is one live stream. Ids come from the host, which counts from 1, so id 0
// marks a free place.
type entry struct {
	id     uint32
	broken bool    // a callback panicked: the rest passes
	paused [2]bool // by StreamType: the last answer was Pause
	stream Stream  // nil: the plugin does not want to see it
}

// table maps context ids to live streams by open addressing. Unlike a Go map it
// makes no garbage while streams come and go, and as the host's ids are
// consecutive, a look-up nearly always hits at the first probe.
type table struct {
	entries []entry // a power of two, at most three quarters full
	used    int
}

// minEntries is the first size of a table.
const minEntries = 64

// find returns the place of id, or nil. It is valid until the next add or
// remove.
func (t *table) find(id uint32) *entry {
	if t.used == 0 || id == 0 {
		return nil
	}
	mask := uint32(len(t.entries) - 1)
	for i := id & mask; t.entries[i].id != 0; i = (i + 1) & mask {
		if t.entries[i].id == id {
			return &t.entries[i]
		}
	}
	return nil
}

// add makes a fresh place for id and returns it; nil for id 0.
func (t *table) add(id uint32) *entry {
	if id == 0 {
		return nil
	}
	e := t.find(id)
	if e == nil {
		if 4*(t.used+1) > 3*len(t.entries) {
			t.grow()
		}
		t.used++
		e = t.place(id)
	}
	e.begin(id)
	return e
}

// begin makes e a fresh entry for id, or a free place for 0. Field by field:
// for a struct of this size the compiler would call the memory instructions of
// Wasm, which take longer.
func (e *entry) begin(id uint32) {
	e.id, e.broken, e.stream = id, false, nil
	e.paused[RequestStream], e.paused[ResponseStream] = false, false
}

func (t *table) grow() {
	old := t.entries
	t.entries = make([]entry, max(minEntries, 2*len(old)))
	for _, e := range old {
		if e.id != 0 {
			*t.place(e.id) = e
		}
	}
}

// place finds the first free place in the run of id.
func (t *table) place(id uint32) *entry {
	mask := uint32(len(t.entries) - 1)
	i := id & mask
	for t.entries[i].id != 0 {
		i = (i + 1) & mask
	}
	return &t.entries[i]
}

// remove frees a place that find or add returned and closes the gap, so that no
// tombstones pile up.
func (t *table) remove(e *entry) {
	mask := uint32(len(t.entries) - 1)
	gap := e.id & mask
	for &t.entries[gap] != e {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.entries[i].id != 0; i = (i + 1) & mask {
		// An entry may move into the gap unless its home lies behind it.
		if home := t.entries[i].id & mask; (i-home)&mask >= (i-gap)&mask {
			t.entries[gap] = t.entries[i]
			gap = i
		}
	}
	t.entries[gap].begin(0)
	t.used--
}
