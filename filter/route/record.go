package route

import "github.com/warmlane/warmlane/filter/state"

// unknown16 is an absent u16 in a record.
const unknown16 = 0xffff

// backlog is the slot's backlog over all workers.
func (b *books) backlog(slot int, rate float32) backlog {
	if b.inFlight[slot] == 0 {
		return backlog{owed: b.owed[slot], rate: rate}
	}
	rec := b.page.record(slot)
	return backlog{owed: b.owed[slot], rate: rate, soft: rec.u32(recSoft), since: rec.i64(recSince)}
}

func (r *record) avoided(now int64) bool {
	left := r.i64(recAvoid) - now
	return left > 0 && left < maxAvoidMS
}

// maxAvoidMS is further ahead than any failure is remembered; a time beyond
// it comes from a clock that was set back.
const maxAvoidMS = 10 * 60 * 1000

// foldWork adds what was sent and takes off what was done. rate, the start
// value, counts as learned with the first sample.
func (b *books) foldWork(rec *record, slot int, m *account, rate float32) {
	if learned := rec.f32(recRate); plausibleRate(learned) {
		rate = learned
	}
	l := backlog{soft: rec.u32(recSoft), since: rec.i64(recSince), rate: rate}
	if m.begun > 0 {
		l = b.foldSent(l, slot, m)
	}
	l.soft -= min(l.soft, m.turned)
	if m.firstAt > 0 {
		l = l.first(m.firstAt, m.done)
	}
	if m.work > 0 {
		rec.setF32(recRate, learn(rate, m.work, m.span))
	}
	rec.setU64(recClock, rec.u64(recClock)+uint64(m.clock))
	rec.setU32(recSoft, l.soft)
	rec.setI64(recSince, l.since)
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

// report writes what the replica said of itself and what of that is not ours.
func (r *record) report(said *Report, f foreign) {
	r.setI64(recReportAt, said.At)
	r.setU32(recForeignOwed, uint32(f.owed))
	r.setU16(recWaiting, count16(said.Waiting))
	r.setU16(recRunning, count16(said.Running))
	r.setU16(recKV, permille(said.KV))
	r.setU16(recForeign, unknown16)
	if f.at != 0 {
		r.setU16(recForeign, count16(int32(f.inFlight)))
	}
}

// load is the load reported last; At 0 = none was.
func (r *record) load() state.Load {
	l := NoReport().Load
	if l.At = r.i64(recReportAt); l.At == 0 {
		return l
	}
	l.Waiting, l.Running = known16(r.u16(recWaiting)), known16(r.u16(recRunning))
	if kv := r.u16(recKV); kv != unknown16 {
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
	return uint16(float64(min(v, 1))*1000 + 0.5)
}
