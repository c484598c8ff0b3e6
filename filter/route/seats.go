package route

import "math"

// expire empties the seats of silent workers. A lease from too far ahead means
// that the clock was set back.
func (b *books) expire(now int64) {
	b.gone, b.until = 0, math.MaxInt64
	for i := range b.page.seats() {
		at := b.page.seat(i)
		nonce, lease := b.page.u32(at), b.page.i64(at+4)
		if nonce == 0 {
			continue
		}
		if lease >= now && lease <= now+2*b.lease {
			if nonce != b.nonce {
				b.until = min(b.until, lease)
			}
			continue
		}
		clear(b.page[at:b.page.entry(i, b.page.slots())])
		b.gone++
	}
}

// sit finds this worker's seat, or takes one if it has something to account
// for.
func (b *books) sit() {
	if b.seat >= 0 && b.seat < b.page.seats() && b.page.u32(b.page.seat(b.seat)) == b.nonce {
		return
	}
	had := b.seat >= 0
	b.seat = -1
	if !b.busy() {
		return
	}
	if had {
		b.stats.Evicted++
	}
	b.take()
}

// take claims a free seat.
func (b *books) take() {
	if b.seat >= 0 {
		return
	}
	for i := range b.page.seats() {
		if b.page.u32(b.page.seat(i)) == 0 {
			b.seat = i
			break
		}
	}
	if b.seat < 0 && b.page.seats() < maxSeats {
		b.page, b.seat = b.page.addSeat()
	}
	if b.seat < 0 {
		b.stats.NoSeat++
		return
	}
	b.page.setU32(b.page.seat(b.seat), b.nonce)
}

// aging says that the seat's lease needs renewing.
func (b *books) aging(now int64) bool {
	return b.seat >= 0 && b.busy() && b.page.i64(b.page.seat(b.seat)+4) < now+b.lease/2
}

// busy says whether this worker has anything to account for.
func (b *books) busy() bool {
	for slot := range b.page.slots() {
		if b.mine[slot].inFlight > 0 {
			return true
		}
	}
	return false
}

// alone says that no other worker has a seat, as last read.
func (b *books) alone() bool {
	for i := range b.page.seats() {
		if i != b.seat && b.page.u32(b.page.seat(i)) != 0 {
			return false
		}
	}
	return b.seat >= 0
}

// publish copies this worker's accounts into its seat.
func (b *books) publish() {
	if b.seat < 0 {
		return
	}
	for slot := range b.page.slots() {
		b.post(slot)
	}
}

func (b *books) post(slot int) {
	if b.seat < 0 {
		return
	}
	at, m := b.page.entry(b.seat, slot), &b.mine[slot]
	if !b.holds(slot, m.key) {
		b.page.setU16(at, 0)
		b.page.setU32(at+2, 0)
		return
	}
	b.page.setU16(at, uint16(min(m.inFlight, math.MaxUint16)))
	b.page.setU32(at+2, m.owed)
}

// sum totals the slots from one to before another over the seats. Without a
// seat the worker still knows of its own.
func (b *books) sum(from, to int) {
	clear(b.inFlight[from:to])
	clear(b.owed[from:to])
	for i := range b.page.seats() {
		at := b.page.entry(i, from)
		for slot := from; slot < to; slot++ {
			b.inFlight[slot] += uint32(b.page.u16(at))
			b.owed[slot] = addCapped(b.owed[slot], b.page.u32(at+2))
			at += entrySize
		}
	}
	for slot := from; slot < to && b.seat < 0; slot++ {
		if m := &b.mine[slot]; b.holds(slot, m.key) {
			b.inFlight[slot] += m.inFlight
			b.owed[slot] = addCapped(b.owed[slot], m.owed)
		}
	}
}

func addCapped(a, b uint32) uint32 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxUint32
}
