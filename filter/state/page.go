package state

import (
	"encoding/binary"
	"slices"
)

// Version is the major version of the format this package writes and reads.
const Version = 1

const (
	magic      = "WLS"
	headerSize = 36
	flagMore   = 1
)

// Header is what every page begins with.
type Header struct {
	Epoch uint64 // which control instance
	From  uint64 // the generation this builds on; 0 = none, the page is of a whole
	To    uint64 // the generation that holds after the last page
	Page  uint32 // counts the pages of one answer from 0
	More  bool   // page Page+1 follows
}

// Whole reports whether the page is of a whole snapshot, not of a delta.
func (h *Header) Whole() bool { return h.From == 0 }

func (h *Header) append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, Version)
	dst = binary.LittleEndian.AppendUint64(dst, h.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, h.From)
	dst = binary.LittleEndian.AppendUint64(dst, h.To)
	dst = binary.LittleEndian.AppendUint32(dst, h.Page)
	var flags uint32
	if h.More {
		flags |= flagMore
	}
	return binary.LittleEndian.AppendUint32(dst, flags)
}

// ParseHeader reads the header of a page or of a snapshot's bytes. Flags it
// does not know are ignored.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < len(magic)+1 || string(b[:len(magic)]) != magic {
		return Header{}, &CorruptError{What: "not a state page"}
	}
	if b[len(magic)] != Version {
		return Header{}, ErrVersion
	}
	if len(b) < headerSize {
		return Header{}, &CorruptError{Offset: len(b), What: "header cut off"}
	}
	h := Header{
		Epoch: binary.LittleEndian.Uint64(b[4:]),
		From:  binary.LittleEndian.Uint64(b[12:]),
		To:    binary.LittleEndian.Uint64(b[20:]),
		Page:  binary.LittleEndian.Uint32(b[28:]),
		More:  binary.LittleEndian.Uint32(b[32:])&flagMore != 0,
	}
	if h.To <= h.From {
		return Header{}, &CorruptError{Offset: 20, What: "generations do not ascend"}
	}
	return h, nil
}

// AppendSnapshot appends s as one page of any size, however far above MaxPage:
// the form in which a snapshot is kept in shared data.
func AppendSnapshot(dst []byte, s *Snapshot) []byte {
	w := writer{page: dst}
	w.header = Header{Epoch: s.Epoch, To: s.Generation}
	w.page = w.header.append(w.page)
	w.snapshot(&Snapshot{}, s)
	return w.page
}

// Pages returns what leads from old to s as pages of at most max bytes, or
// the whole of s if old is nil, with the KV records that changed in between.
// max is at most MaxPage; one replica with all it serves must fit into it. Both
// snapshots must be of the same epoch, sorted and within the caps; patches of
// pools that s has not are left out.
func Pages(old, s *Snapshot, max int, kv ...Patch) [][]byte {
	w := writer{max: max, kv: kv, header: Header{Epoch: s.Epoch, To: s.Generation}}
	if old == nil {
		old = &Snapshot{}
	}
	w.header.From = old.Generation
	w.page = w.header.append(nil)
	w.snapshot(old, s)
	return append(w.done, w.page)
}

// writer appends records to a page and begins the next one when a record does
// not fit.
type writer struct {
	header Header
	max    int // bytes of a page; 0 = no limit
	done   [][]byte
	page   []byte
	pool   string // the pool that replicas and KV records in the page now belong to
	kv     []Patch
}

// fit ends the page before the record that begins at mark if that record went
// over the limit, and carries the record over to the next page.
func (w *writer) fit(mark int, inPool bool) {
	if w.max == 0 || len(w.page) <= w.max {
		return
	}
	record := w.page[mark:]
	w.page = w.page[:mark:mark]
	w.turn(inPool, len(record))
	w.page = append(w.page, record...)
}

// turn ends the page and begins the next, for about so many bytes.
func (w *writer) turn(inPool bool, rest int) {
	binary.LittleEndian.PutUint32(w.page[headerSize-4:], flagMore)
	w.done = append(w.done, w.page)
	w.header.Page++
	w.page = nil
	w.grow(headerSize + 8 + len(w.pool) + rest)
	w.page = w.header.append(w.page)
	if inPool {
		w.page = appendPool(w.page, w.pool)
	}
}

// grow makes room for n bytes more, or as many as a page may have.
func (w *writer) grow(n int) {
	if w.max > 0 {
		n = min(n, w.max-len(w.page))
	}
	w.page = slices.Grow(w.page, max(n, 0))
}

// appendPool appends a pool record that names the pool and changes nothing.
func appendPool(dst []byte, name string) []byte {
	dst, start := openRecord(dst, pagePool)
	dst = appendString(dst, poolName, name)
	return closeRecord(dst, start)
}

// snapshot walks both snapshots in the order of names.
func (w *writer) snapshot(old, s *Snapshot) {
	i := 0
	for j := range s.Pools {
		p := &s.Pools[j]
		for i < len(old.Pools) && old.Pools[i].Name < p.Name {
			w.drop(old.Pools[i].Name)
			i++
		}
		if i < len(old.Pools) && old.Pools[i].Name == p.Name {
			w.changed(&old.Pools[i], p)
			i++
			continue
		}
		w.added(p)
	}
	for ; i < len(old.Pools); i++ {
		w.drop(old.Pools[i].Name)
	}
}

func (w *writer) drop(name string) {
	mark := len(w.page)
	w.page = appendString(w.page, pageDropped, name)
	w.fit(mark, false)
}

func (w *writer) added(p *Pool) {
	w.poolRecord(&Pool{Name: p.Name}, p)
	for i := range p.Replicas {
		w.replica(&nothing, &p.Replicas[i])
	}
	w.records(w.recordsOf(p.Name))
}

func (w *writer) changed(old, p *Pool) {
	records := w.recordsOf(p.Name)
	if len(records) == 0 && EqualPool(old, p) {
		return
	}
	w.poolRecord(old, p)
	i := 0
	for j := range p.Replicas {
		r, before := &p.Replicas[j], &nothing
		for i < len(old.Replicas) && old.Replicas[i].Slot < r.Slot {
			i++
		}
		if i < len(old.Replicas) && old.Replicas[i].Slot == r.Slot {
			before = &old.Replicas[i]
		}
		if !EqualReplica(before, r) {
			w.replica(before, r)
		}
	}
	w.records(records)
}

func (w *writer) poolRecord(old, p *Pool) {
	mark := len(w.page)
	w.pool = p.Name
	page, start := openRecord(w.page, pagePool)
	page = appendString(page, poolName, p.Name)
	if !equalNames(old.Models, p.Models) {
		page = appendNames(page, poolModels, p.Models)
	}
	page = appendRemoved(page, old.Replicas, p.Replicas)
	w.page = closeRecord(page, start)
	w.fit(mark, false)
}

// appendRemoved lists the slots that are in old and not in now.
func appendRemoved(dst []byte, old, now []Replica) []byte {
	field := len(dst)
	dst, start := openRecord(dst, poolRemoved)
	j := 0
	for i := range old {
		slot := old[i].Slot
		for j < len(now) && now[j].Slot < slot {
			j++
		}
		if j == len(now) || now[j].Slot != slot {
			dst = binary.AppendUvarint(dst, uint64(slot))
		}
	}
	if len(dst) == start {
		return dst[:field]
	}
	return closeRecord(dst, start)
}

func (w *writer) replica(old, r *Replica) {
	mark := len(w.page)
	w.page = appendReplica(w.page, old, r)
	w.fit(mark, true)
}
