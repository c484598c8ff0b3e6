package route

import (
	"math"

	"github.com/warmlane/warmlane/filter/state"
)

// unknown16 is an absent u16 in a record.
const unknown16 = 0xffff

// backlog is the slot's backlog over all workers.
func (b *books) backlog(slot int, rate float32) backlog {
	l := backlog{owed: b.owed[slot], rate: rate}
	if slot < b.page.slots() && b.inFlight[slot] > 0 {
		at := b.page.record(slot)
		l.soft = b.page.u32(at + recSoft)
		l.since = b.page.i64(at + recSince)
	}
	return l
}

// rate is what was learned, or 0.
func (b *books) rate(slot int) float32 { return b.page.f32(b.page.record(slot) + recRate) }

func (b *books) avoided(slot int, now int64) bool {
	left := b.page.i64(b.page.record(slot)+recAvoid) - now
	return left > 0 && left < maxAvoidMS
}

// maxAvoidMS is further ahead than any failure is remembered; a time beyond
// it comes from a clock that was set back.
const maxAvoidMS = 10 * 60 * 1000

// foldWork adds what was sent and takes off what was done. rate, the start
// value, counts as learned with the first sample.
func (b *books) foldWork(at, slot int, m *account, rate float32) {
	if plausibleRate(b.rate(slot)) {
		rate = b.rate(slot)
	}
	l := backlog{soft: b.page.u32(at + recSoft), since: b.page.i64(at + recSince), rate: rate}
	if m.begun > 0 {
		l = b.foldSent(l, slot, m)
	}
	if m.firstAt > 0 {
		l = l.first(m.firstAt, m.done)
	}
	if m.work > 0 {
		b.page.setF32(at+recRate, learn(rate, m.work, m.span))
	}
	b.page.setU64(at+recClock, b.page.u64(at+recClock)+uint64(m.clock))
	b.page.setU32(at+recSoft, l.soft)
	b.page.setI64(at+recSince, l.since)
}

// foldSent brings the record to the moment of the dispatch and adds to it.
func (b *books) foldSent(l backlog, slot int, m *account) backlog {
	if b.inFlight[slot] <= m.begun {
		l.soft, l.since = 0, m.sentAt
	}
	if m.fresh < b.owed[slot] {
		l.owed = b.owed[slot] - m.fresh
	}
	if m.sentAt > l.since {
		l = l.send(m.sentAt)
	}
	l.soft = addCapped(l.soft, m.soft)
	return l
}

// foldReport writes what the replica said of itself and what of that is not
// ours.
func (b *books) foldReport(at int, m *account) {
	r := &m.report
	b.page.setI64(at+recReportAt, r.At)
	b.page.setU32(at+recForeignOwed, uint32(m.foreign.owed))
	b.page.setU16(at+recWaiting, count16(r.Waiting))
	b.page.setU16(at+recRunning, count16(r.Running))
	b.page.setU16(at+recKV, permille(r.KV))
	b.page.setU16(at+recForeign, unknown16)
	if m.foreign.at != 0 {
		b.page.setU16(at+recForeign, count16(int32(m.foreign.inFlight)))
	}
}

// foreign is the load reported last that was not ours.
func (b *books) foreign(slot int) foreign {
	at := b.page.record(slot)
	n := b.page.u16(at + recForeign)
	if n == unknown16 {
		return foreign{}
	}
	return foreign{
		at:       b.page.i64(at + recReportAt),
		inFlight: float32(n),
		owed:     float32(b.page.u32(at + recForeignOwed)),
	}
}

// load is the load reported last.
func (b *books) load(slot int) state.Load {
	at := b.page.record(slot)
	l := NoReport().Load
	if l.At = b.page.i64(at + recReportAt); l.At == 0 {
		return l
	}
	l.Waiting, l.Running = known16(b.page.u16(at+recWaiting)), known16(b.page.u16(at+recRunning))
	if kv := b.page.u16(at + recKV); kv != unknown16 {
		l.KV = float32(kv) / 1000
	}
	return l
}

func known16(v uint16) int32 {
	if v == unknown16 {
		return -1
	}
	return int32(v)
}

func count16(v int32) uint16 {
	if v < 0 {
		return unknown16
	}
	return uint16(min(v, unknown16-1))
}

func permille(v float32) uint16 {
	if !(v >= 0) {
		return unknown16
	}
	return uint16(math.Round(float64(min(v, 1)) * 1000))
}
