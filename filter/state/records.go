package state

import "encoding/binary"

// Record is one record of the KV index: the state of something that ID names,
// never a change to it. So the newest is all that counts, and taking one in
// twice does no harm. IDs are unique over all pools. What a payload says is
// the matter of package kvindex; nil says that there is no such record any
// more.
type Record struct {
	ID      uint64
	Payload []byte
}

// Patch is what changed in the KV index of one pool, each ID once at most.
type Patch struct {
	Pool    string
	Records []Record
}

// Records is handed the KV records of the pages that a [View] takes, in their
// order. They are in force from then on, whatever becomes of the answer they
// belong to.
type Records interface {
	// Begin comes before the records of a whole: all from before are void.
	Begin()
	// Record hands over one record. The payload is part of the page: copy it.
	Record(pool string, id uint64, payload []byte)
}

func (w *writer) recordsOf(pool string) []Record {
	for i := range w.kv {
		if w.kv[i].Pool == pool {
			return w.kv[i].Records
		}
	}
	return nil
}

// records appends the records of the pool the page is in.
func (w *writer) records(list []Record) {
	rest := 0
	for i := range list {
		rest += list[i].Size()
	}
	w.grow(rest)
	for i := range list {
		size := list[i].Size()
		if w.max > 0 && len(w.page)+size > w.max {
			w.turn(true, rest)
		}
		w.page = appendRecord(w.page, &list[i])
		rest -= size
	}
}

// Size is how many bytes r takes in a page.
func (r *Record) Size() int {
	n := r.content()
	return 1 + varintSize(n) + n
}

// content is the length of the fields of r.
func (r *Record) content() int {
	if r.Payload == nil {
		return 1 + 8
	}
	n := len(r.Payload)
	return 1 + 8 + 1 + varintSize(n) + n
}

func varintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func appendRecord(dst []byte, r *Record) []byte {
	dst = append(dst, pageRecord<<3|typeBytes)
	dst = binary.AppendUvarint(dst, uint64(r.content()))
	dst = append(dst, recordID<<3|typeFixed64)
	dst = binary.LittleEndian.AppendUint64(dst, r.ID)
	if r.Payload == nil {
		return dst
	}
	dst = append(dst, recordPayload<<3|typeBytes)
	dst = binary.AppendUvarint(dst, uint64(len(r.Payload)))
	return append(dst, r.Payload...)
}

// read takes the fields of a record; the payload is part of the page. It
// returns false for one that does not begin with its id: that is none of ours.
func (p *Record) read(r *reader) bool {
	if key, _ := r.next(); key != recordID<<3|typeFixed64 {
		return false
	}
	p.ID, p.Payload = r.fixed64(), nil
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case recordPayload<<3 | typeBytes:
			if p.Payload = r.bytes(); len(p.Payload) > MaxPayload {
				r.fail("KV payload too long")
			}
		default:
			r.skip(key)
		}
	}
	return r.err == nil
}

// handOver gives the records of a page, which was found to be in order, to
// the one who keeps them.
func (v *View) handOver(page []byte) {
	var record Record
	r := reader{b: page, pos: headerSize}
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case pagePool<<3 | typeBytes:
			rec := r.record()
			rec.next()
			v.pool = rec.name(v.pool)
		case pageRecord<<3 | typeBytes:
			rec := r.record()
			if record.read(&rec) {
				v.Records.Record(v.pool, record.ID, record.Payload)
			}
		default:
			r.skip(key)
		}
	}
}
