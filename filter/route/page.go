package route

import (
	"encoding/binary"
	"math"
)

// A page is the ledger's value in shared data, little-endian:
//
//	header   magic u32, slots u16, seats u16, generation u32, 0 u32
//	records  slots x {key u32, rate f32, clock u64, since i64, soft u32,
//	         foreignOwed u32, reportAt i64, avoidUntil i64,
//	         waiting u16, running u16, kv u16, foreign u16}
//	seats    seats x {nonce u32, lease i64, slots x {inFlight u16, owed u32}}
//
// generation is that of the state the keys belong to. Times are milliseconds
// since the Unix epoch. rate is tokens per second, 0 = nothing learned. clock
// counts the tokens that ever went into its cache. since, soft: see [backlog]. From
// foreignOwed on it is what the replica last reported: owed and foreign are
// what it had beyond this proxy's own requests at that time; kv is in permille;
// 0xffff is not known. A seat is taken while its nonce is not 0 and its lease
// has not run out.
type page []byte

const (
	pageMagic = 0x314c4c57 // "WLL1"
	maxSeats  = 256

	headSize   = 16
	recordSize = 56
	seatHead   = 12
	entrySize  = 6

	recKey         = 0
	recRate        = 4
	recClock       = 8
	recSince       = 16
	recSoft        = 24
	recForeignOwed = 28
	recReportAt    = 32
	recAvoid       = 40
	recWaiting     = 48
	recRunning     = 50
	recKV          = 52
	recForeign     = 54
)

func pageSize(slots, seats int) int {
	return headSize + slots*recordSize + seats*(seatHead+slots*entrySize)
}

// valid says whether p is a page. Anything else under our key is another
// plugin's or another version's and is replaced.
func (p page) valid() bool {
	return len(p) >= headSize && p.u32(0) == pageMagic &&
		p.slots() <= MaxSlots && p.seats() <= maxSeats &&
		len(p) == pageSize(p.slots(), p.seats())
}

// newPage makes dst an empty page.
func newPage(dst []byte, slots int, generation uint32) page {
	p := page(grow(dst[:0], pageSize(slots, 0)))
	clear(p)
	p.setU32(0, pageMagic)
	p.setU16(4, uint16(slots))
	p.setU32(8, generation)
	return p
}

// grow lengthens b by n bytes of any content.
func grow(b []byte, n int) []byte {
	for cap(b)-len(b) < n {
		b = append(b[:cap(b)], 0)[:len(b)]
	}
	return b[:len(b)+n]
}

func (p page) slots() int         { return int(p.u16(4)) }
func (p page) seats() int         { return int(p.u16(6)) }
func (p page) generation() uint32 { return p.u32(8) }

func (p page) record(slot int) *record { return (*record)(p[headSize+slot*recordSize:]) }

func (p page) seat(i int) int {
	slots := p.slots()
	return headSize + slots*recordSize + i*(seatHead+slots*entrySize)
}

func (p page) entry(seat, slot int) int { return p.seat(seat) + seatHead + slot*entrySize }

// addSeat appends an empty seat and returns its number.
func (p page) addSeat() (page, int) {
	n := p.seats()
	size := pageSize(p.slots(), n+1)
	old := len(p)
	p = grow(p, size-old)
	clear(p[old:])
	p.setU16(6, uint16(n+1))
	return p, n
}

// widen copies p into dst with room for more slots.
func (p page) widen(dst []byte, slots int) page {
	w := newPage(dst, slots, p.generation())
	copy(w[headSize:], p[headSize:headSize+p.slots()*recordSize])
	for i := range p.seats() {
		w, _ = w.addSeat()
		copy(w[w.seat(i):], p[p.seat(i):p.seat(i)+seatHead+p.slots()*entrySize])
	}
	return w
}

// reset gives the slot to another replica.
func (p page) reset(slot int, key uint32) {
	r := p.record(slot)
	*r = record{}
	r.setU32(recKey, key)
	for i := range p.seats() {
		e := p.entry(i, slot)
		clear(p[e : e+entrySize])
	}
}

func (p page) u16(at int) uint16       { return binary.LittleEndian.Uint16(p[at:]) }
func (p page) u32(at int) uint32       { return binary.LittleEndian.Uint32(p[at:]) }
func (p page) i64(at int) int64        { return int64(binary.LittleEndian.Uint64(p[at:])) }
func (p page) setU16(at int, v uint16) { binary.LittleEndian.PutUint16(p[at:], v) }
func (p page) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(p[at:], v) }
func (p page) setI64(at int, v int64)  { binary.LittleEndian.PutUint64(p[at:], uint64(v)) }

// A record is one slot's record in a page. As its length is known, reading a
// field costs no check.
type record [recordSize]byte

func (r *record) u16(at int) uint16       { return binary.LittleEndian.Uint16(r[at:]) }
func (r *record) u32(at int) uint32       { return binary.LittleEndian.Uint32(r[at:]) }
func (r *record) u64(at int) uint64       { return binary.LittleEndian.Uint64(r[at:]) }
func (r *record) i64(at int) int64        { return int64(r.u64(at)) }
func (r *record) f32(at int) float32      { return math.Float32frombits(r.u32(at)) }
func (r *record) setU16(at int, v uint16) { binary.LittleEndian.PutUint16(r[at:], v) }
func (r *record) setU32(at int, v uint32) { binary.LittleEndian.PutUint32(r[at:], v) }
func (r *record) setU64(at int, v uint64) { binary.LittleEndian.PutUint64(r[at:], v) }
func (r *record) setI64(at int, v int64)  { r.setU64(at, uint64(v)) }
func (r *record) setF32(at int, v float32) {
	r.setU32(at, math.Float32bits(v))
}
