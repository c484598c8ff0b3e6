package state

import "math"

// table folds the records of pages into a snapshot that it owns. A whole is
// the delta from nothing, so there is one way for both: what a record leaves
// out stays as it is in a replica that exists, and is not known in a new one.
//
// Elements behind the length of a slice keep their memory for the next use, so
// elements are moved by swapping, never overwritten: no two share a list.
type table struct {
	s    *Snapshot
	last int   // index of the pool that was named last; -1 = none
	pool *Pool // that pool, if this page has named it
	slot int   // last slot seen in it; -1 = none
	kv   int   // bytes of the KV records so far
}

// page folds in one page, whose header was read already.
func (t *table) page(b []byte) error {
	t.pool = nil
	r := reader{b: b, pos: headerSize}
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case pagePool<<3 | typeBytes:
			rec := r.record()
			t.poolRecord(&rec)
			r.err = rec.err
		case pageReplica<<3 | typeBytes:
			rec := r.record()
			t.replicaRecord(&rec)
			r.err = rec.err
		case pageRecord<<3 | typeBytes:
			rec := r.record()
			t.record(&rec)
			r.err = rec.err
		case pageDropped<<3 | typeBytes:
			t.dropPool(&r)
		default:
			r.skip(key)
		}
	}
	return r.err
}

// poolRecord makes the pool it names the current one. Pools come in the order
// of their names; only at the head of a later page the last one comes again.
func (t *table) poolRecord(r *reader) {
	if key, _ := r.next(); key != poolName<<3|typeBytes {
		r.fail("pool without its name first")
		return
	}
	name := r.bytes()
	if len(name) > MaxName {
		r.fail("name too long")
		return
	}
	order := t.compareLast(name)
	if order < 0 || order == 0 && t.pool != nil {
		r.fail("pools out of order")
		return
	}
	if order > 0 {
		t.slot = -1
	}
	known := t.find(name)
	if !known && !t.addPool(r, name) {
		return
	}
	t.pool = &t.s.Pools[t.last]
	if models := t.pool.read(r); !models && !known {
		t.pool.Models = nil
	}
}

// compareLast says whether name comes after (1) the pool named last, is that
// one (0), or comes before it (-1). Nothing before the last one is touched any
// more, so its index stays.
func (t *table) compareLast(name []byte) int {
	if t.last < 0 {
		return 1
	}
	switch last := t.s.Pools[t.last].Name; {
	case string(name) > last:
		return 1
	case string(name) == last:
		return 0
	default:
		return -1
	}
}

// read takes over the fields of a record and says whether Models was there.
func (p *Pool) read(r *reader) (models bool) {
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case poolModels<<3 | typeBytes:
			rec := r.record()
			p.Models = rec.names(p.Models)
			r.err = rec.err
			models = true
		case poolRemoved<<3 | typeBytes:
			rec := r.record()
			p.remove(&rec)
			r.err = rec.err
		default:
			r.skip(key)
		}
	}
	return models
}

// find makes the pool of that name the last one if there is one.
func (t *table) find(name []byte) bool {
	for i := max(t.last, 0); i < len(t.s.Pools); i++ {
		if t.s.Pools[i].Name == string(name) {
			t.last = i
			return true
		}
	}
	return false
}

// addPool puts an empty pool where its name belongs and makes it the last one.
func (t *table) addPool(r *reader, name []byte) bool {
	pools := t.s.Pools
	if len(pools) == MaxPools {
		r.fail("too many pools")
		return false
	}
	at := len(pools)
	for at > 0 && pools[at-1].Name > string(name) {
		at--
	}
	pools = insert(pools, at)
	p := &pools[at]
	if p.Name != string(name) {
		p.Name = string(name)
	}
	p.Replicas = p.Replicas[:0]
	t.s.Pools, t.last = pools, at
	return true
}

// dropPool takes out a pool behind the one named last.
func (t *table) dropPool(r *reader) {
	name := r.bytes()
	for i := t.last + 1; i < len(t.s.Pools); i++ {
		if t.s.Pools[i].Name == string(name) {
			t.s.Pools = cut(t.s.Pools, i)
			return
		}
	}
	r.fail("a pool that is not there is dropped")
}

// remove reads slots and takes their replicas out.
func (p *Pool) remove(r *reader) {
	for r.pos < len(r.b) {
		slot := r.number(math.MaxUint16, "slot too large")
		at, ok := p.find(uint16(slot))
		if r.err != nil {
			return
		}
		if !ok {
			r.fail("a replica that is not there is removed")
			return
		}
		p.Replicas = cut(p.Replicas, at)
	}
}

// find returns where slot is or belongs. In a whole that is the end.
func (p *Pool) find(slot uint16) (at int, ok bool) {
	lo, hi := 0, len(p.Replicas)
	if hi > 0 && p.Replicas[hi-1].Slot < slot {
		return hi, false
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.Replicas[mid].Slot < slot {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(p.Replicas) && p.Replicas[lo].Slot == slot
}

func (t *table) replicaRecord(r *reader) {
	key, _ := r.next()
	if key != replicaSlot<<3|typeVarint {
		r.fail("replica without its slot first")
		return
	}
	slot := r.number(math.MaxUint16, "slot too large")
	if t.pool == nil {
		r.fail("replica outside a pool")
	}
	if r.err != nil {
		return
	}
	if int(slot) <= t.slot {
		r.fail("replicas out of order")
		return
	}
	t.slot = int(slot)
	at, known := t.pool.find(uint16(slot))
	if known {
		t.pool.Replicas[at].read(r)
		return
	}
	if len(t.pool.Replicas) == MaxReplicas {
		r.fail("too many replicas")
		return
	}
	t.pool.Replicas = insert(t.pool.Replicas, at)
	t.pool.Replicas[at].readNew(r, uint16(slot))
}

// record looks whether a KV record is in order, and counts it. It is no part
// of the snapshot.
func (t *table) record(r *reader) {
	var record Record
	if !record.read(r) {
		return
	}
	if t.pool == nil {
		r.fail("KV record outside a pool")
		return
	}
	t.kv += record.Size()
}
