package route

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/warmlane/warmlane/filter/state"
)

// MaxSlots is how many replicas a pool can have. Replicas in higher slots are
// ignored and counted by [Stats].
const MaxSlots = 256

// maxNames bounds the model and adapter names of one pool.
const maxNames = 64 * MaxSlots

// A Table is the compiled view of one pool. The zero value is an empty pool.
type Table struct {
	generation uint32
	lanes      []lane   // by slot; key 0 = no replica there
	names      []uint64 // hashes of names, each lane's in a row
	text       []byte   // addresses, each lane's in a row
	beyond     int      // replicas that had no place
	model      []byte   // what the lanes' standing is for ...
	judged     bool     // ... if they have one
}

// lane is one replica as control sees it.
type lane struct {
	key            uint32 // of address and incarnation, never 0
	health         state.Health
	addrLo, addrHi uint32
	nameLo, nameHi uint32 // empty: the replica's models are not known
	ring           uint64 // of the address alone: restarts move no prompts
	capacity       uint32 // cache size in units of [ClockUnit]; 0 = not known
	rate           float32
	load           state.Load
	foreign        foreign // of load; settled at the first choice that sees it
	settled        bool
	standing       Filter // FilterModel, Unhealthy, Draining, Unknown or NumFilters: see [Table.judge]
}

// build replaces the table's contents. It keeps nothing of p.
func (t *Table) build(p *state.Pool, generation uint32) {
	t.generation = generation
	t.lanes, t.names, t.text, t.beyond, t.judged = t.lanes[:0], t.names[:0], t.text[:0], 0, false
	for i := range p.Replicas {
		t.add(&p.Replicas[i])
	}
}

func (t *Table) add(r *state.Replica) {
	slot := int(r.Slot)
	if slot >= MaxSlots || r.Address == "" {
		t.beyond++
		return
	}
	for len(t.lanes) <= slot {
		t.lanes = append(t.lanes, lane{})
	}
	l := &t.lanes[slot]
	*l = lane{
		key:      laneKey(r.Address, r.Incarnation),
		health:   r.Health,
		ring:     xxhash.Sum64String(r.Address),
		capacity: r.CacheTokens / ClockUnit,
		load:     r.Load,
	}
	if plausibleRate(r.Rate) {
		l.rate = r.Rate
	}
	l.addrLo = uint32(len(t.text))
	t.text = append(t.text, r.Address...)
	l.addrHi = uint32(len(t.text))
	t.addNames(l, r)
}

// addNames notes what the replica can serve. An adapter that is loading may
// be joined, one that failed may not.
func (t *Table) addNames(l *lane, r *state.Replica) {
	l.nameLo = uint32(len(t.names))
	for _, m := range r.Models {
		t.addName(m)
	}
	for i := range r.Adapters {
		if len(r.Models) > 0 && r.Adapters[i].State != state.AdapterFailed {
			t.addName(r.Adapters[i].Name)
		}
	}
	l.nameHi = uint32(len(t.names))
}

func (t *Table) addName(name string) {
	if len(t.names) < maxNames {
		t.names = append(t.names, xxhash.Sum64String(name))
	}
}

// serves says whether the lane answers for the model with this hash. A
// replica whose models are not known gets the benefit of the doubt.
func (t *Table) serves(l *lane, model uint64) bool {
	if l.nameLo == l.nameHi {
		return true
	}
	for _, n := range t.names[l.nameLo:l.nameHi] {
		if n == model {
			return true
		}
	}
	return false
}

func (t *Table) address(slot int) []byte {
	if slot < 0 || slot >= len(t.lanes) {
		return nil
	}
	l := &t.lanes[slot]
	return t.text[l.addrLo:l.addrHi:l.addrHi]
}

func (t *Table) slot(address []byte) int {
	ring := xxhash.Sum64(address)
	for i := range t.lanes {
		if t.lanes[i].ring == ring && t.lanes[i].key != 0 {
			return i
		}
	}
	return -1
}

// laneKey tells replicas of one slot apart over time.
func laneKey(address string, incarnation uint32) uint32 {
	var d xxhash.Digest
	var b [4]byte
	d.Reset()
	binary.LittleEndian.PutUint32(b[:], incarnation)
	d.Write(b[:])
	d.WriteString(address)
	key := uint32(d.Sum64())
	if key == 0 {
		return 1
	}
	return key
}
