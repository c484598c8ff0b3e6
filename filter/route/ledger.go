package route

import (
	"math/bits"

	"github.com/warmlane/warmlane/filter/shared"
)

// tries bounds a compare-and-set loop. Each loss means that another worker
// made progress; what was lost stays pending.
const tries = 8

// books are one worker's hand on the ledger: its copy of the page as last
// read, the truth about its own requests, and what it has still to write.
type books struct {
	store shared.Store
	key   []byte
	nonce uint32
	lease int64

	page   page
	spare  []byte // to widen into
	number number
	kept   bool  // page is what the last write left in the store ...
	keptAt int64 // ... at this time
	until  int64 // first end of another worker's lease
	seat   int   // -1 = none
	dirty  bool  // there is something to write ...
	news   Slots // ... for the records of these slots
	gone   int   // seats emptied since the page was read

	mine     [MaxSlots]account
	start    [MaxSlots]float32 // rates to start from
	inFlight [MaxSlots]uint32  // totals over all seats
	owed     [MaxSlots]uint32

	stats Stats
}

// account is what this worker has going at one replica.
type account struct {
	key      uint32
	inFlight uint32
	owed     uint32 // tokens of streams that wait for their first token
	pending
}

// pending is what the replica's record has not been told yet.
type pending struct {
	sentAt int64  // last dispatch
	begun  uint32 // requests dispatched
	clock  uint32 // tokens that went into its cache
	fresh  uint32 // tokens dispatched that are in owed
	soft   uint32 // tokens dispatched that are not
	turned uint32 // tokens dispatched that were not and now are

	firstAt int64  // last first token
	done    uint32 // tokens of the streams that had theirs
	work    uint32 // tokens done ...
	span    int64  // ... in so many ms, as a sample of the rate

	avoid   int64
	report  Report // At 0 = none
	foreign foreign
}

// Stats counts what went wrong on the ledger, since the start of this worker.
type Stats struct {
	Lost    uint64 // adjustments put off because every try met another write
	Retries uint64 // writes repeated because another came first, or might have
	Damaged uint64 // values under our key that were no ledger, replaced
	Expired uint64 // seats taken from workers that had gone silent
	Evicted uint64 // times this worker found its own seat gone
	Late    uint64 // settlements for a replica that is no longer in its slot
	NoSeat  uint64 // writes without a seat: more workers than seats
	Beyond  uint64 // replicas of the last adopted state that had no place
}

// read brings the page up to date with the store, with t and with this worker's
// own books, and sums up. What it did stays local until write. A page that is
// likely to be still in the store is not fetched: write finds out.
func (b *books) read(t *Table, now int64) {
	if b.kept && b.number.steady() && b.lasts(now) {
		b.resume()
		return
	}
	b.reread(t, now)
}

// lasts says that no other worker's lease has run out since the page was
// written, nor was the clock set back.
func (b *books) lasts(now int64) bool { return now >= b.keptAt && now <= b.until }

// resume is read for the page as this worker wrote it: only what it did itself
// since then can be new.
func (b *books) resume() {
	if !b.dirty {
		return
	}
	b.kept = false
	slots := b.page.slots()
	for i, word := range b.news {
		for ; word != 0; word &= word - 1 {
			if slot := i*64 + bits.TrailingZeros64(word); slot < slots {
				b.post(slot)
				b.sum(slot, slot+1)
				b.fold(slot)
			}
		}
	}
}

// reread is read with a look into the store.
func (b *books) reread(t *Table, now int64) {
	b.fetch(t)
	b.reconcile(t)
	b.expire(now)
	b.sit()
	b.publish()
	slots := b.page.slots()
	b.sum(0, slots)
	for slot := range slots {
		if b.news.Has(slot) {
			b.fold(slot)
		}
	}
}

// write tries to store the page. On success nothing is pending any more.
func (b *books) write(now int64) bool {
	if b.seat >= 0 {
		b.page.setI64(b.page.seat(b.seat)+4, now+b.lease)
	}
	if b.store.Set(b.key, b.page, b.number.page) != nil {
		b.kept = false
		b.stats.Retries++
		return false
	}
	b.number.wrote(b.store.Sets())
	b.kept, b.keptAt = b.seat >= 0, now // without a seat the next read looks for one
	b.stats.Expired += uint64(b.gone)
	b.settled()
	return true
}

// update reads and writes until a write holds or tries are used up.
func (b *books) update(t *Table, now int64) {
	for range tries {
		b.read(t, now)
		if b.write(now) {
			return
		}
	}
	b.stats.Lost++
}

func (b *books) settled() {
	if !b.dirty {
		return
	}
	for i, word := range b.news {
		for ; word != 0; word &= word - 1 {
			b.mine[i*64+bits.TrailingZeros64(word)].pending = pending{}
		}
	}
	b.dirty, b.news = false, Slots{}
}

// fetch copies the value, or starts a new one.
func (b *books) fetch(t *Table) {
	kept := b.kept
	b.kept = false
	value, cas, err := b.store.Get(b.key)
	if err != nil {
		b.number.page = shared.Absent
	} else {
		b.number.read(cas, b.store.Sets(), kept)
		if page(value).valid() {
			b.page = append(b.page[:0], value...)
			return
		}
		b.stats.Damaged++
	}
	b.page = newPage(b.page, len(t.lanes), t.generation)
}

// reconcile gives slots to the replicas of t, unless the ledger is already at
// a later generation than this worker.
func (b *books) reconcile(t *Table) {
	if n := len(t.lanes); b.page.slots() < n {
		w := b.page.widen(b.spare, n)
		b.spare, b.page = b.page, w
	}
	if int32(b.page.generation()-t.generation) > 0 {
		return
	}
	b.page.setU32(8, t.generation)
	for slot := range t.lanes {
		if key := t.lanes[slot].key; key != 0 && !b.holds(slot, key) {
			b.page.reset(slot, key)
		}
	}
}

func (b *books) holds(slot int, key uint32) bool {
	return key != 0 && slot < b.page.slots() && b.page.record(slot).u32(recKey) == key
}

// fold tells the slot's record what is pending for it. The totals must be up
// to date.
func (b *books) fold(slot int) {
	m := &b.mine[slot]
	if !b.news.Has(slot) || !b.holds(slot, m.key) {
		return
	}
	rec := b.page.record(slot)
	b.foldWork(rec, slot, m, b.start[slot])
	if m.avoid > rec.i64(recAvoid) {
		rec.setI64(recAvoid, m.avoid)
	}
	if m.report.At > rec.i64(recReportAt) {
		rec.report(&m.report, m.foreign)
	}
}
