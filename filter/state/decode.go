package state

import "math"

// DecodeSnapshot reads what AppendSnapshot wrote, or a whole of one page, into
// *into. It uses the memory that into has, and keeps those of its strings that
// have not changed, so that decoding a state much like the one before makes no
// garbage; no string aliases b. After an error into holds rubbish: decode into
// a spare, or let a [View] do that.
func DecodeSnapshot(b []byte, into *Snapshot) error {
	h, err := ParseHeader(b)
	if err != nil {
		return err
	}
	if !h.Whole() || h.Page != 0 || h.More {
		return ErrGap
	}
	if len(b) > MaxSnapshot {
		return &CorruptError{Offset: MaxSnapshot, What: "snapshot too large"}
	}
	into.Pools = into.Pools[:0]
	into.Epoch, into.Generation = h.Epoch, h.To
	t := table{s: into, last: -1}
	return t.page(b)
}

// readNew reads a replica into memory that another one had: what the record
// leaves out is not known.
func (p *Replica) readNew(r *reader, slot uint16) {
	models, adapters := p.Models, p.Adapters
	*p = Replica{Slot: slot, Address: p.Address, Load: NoLoad()}
	p.Models, p.Adapters = models, adapters
	seen := p.read(r)
	if seen&(1<<replicaModels) == 0 {
		p.Models = nil
	}
	if seen&(1<<replicaAdapters) == 0 {
		p.Adapters = nil
	}
	if seen&(1<<replicaAddress) == 0 {
		r.fail("replica without an address")
	}
}

// read takes over the fields of a record and returns a bit for each.
func (p *Replica) read(r *reader) (seen uint32) {
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case replicaIncarnation<<3 | typeVarint:
			p.Incarnation = r.uint32()
		case replicaAddress<<3 | typeBytes:
			p.Address = r.name(p.Address)
		case replicaHealth<<3 | typeVarint:
			p.Health = Health(r.state(uint64(Draining)))
		case replicaModels<<3 | typeBytes, replicaAdapters<<3 | typeBytes, replicaLoad<<3 | typeBytes:
			rec := r.record()
			p.readRecord(key>>3, &rec)
			r.err = rec.err
		case replicaBlockSize<<3 | typeVarint:
			p.BlockSize = r.uint32()
		case replicaCacheTokens<<3 | typeVarint:
			p.CacheTokens = r.uint32()
		case replicaRate<<3 | typeFixed32:
			p.Rate = r.rate()
		case replicaKV<<3 | typeVarint:
			p.KV = KVState(r.state(uint64(KVComplete)))
		case replicaTags<<3 | typeVarint:
			p.Tags = r.varint() != 0
		default:
			r.skip(key)
			continue
		}
		seen |= 1 << (key >> 3)
	}
	return seen
}

func (p *Replica) readRecord(field uint64, r *reader) {
	switch field {
	case replicaModels:
		p.Models = r.names(p.Models)
	case replicaAdapters:
		p.Adapters = r.adapters(p.Adapters)
	case replicaLoad:
		p.Load = NoLoad()
		p.Load.read(r)
	}
}

func (l *Load) read(r *reader) {
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case loadAt<<3 | typeVarint:
			l.At = int64(r.number(math.MaxInt64, "time too large"))
		case loadWaiting<<3 | typeVarint:
			l.Waiting = int32(r.number(math.MaxInt32, "count too large"))
		case loadRunning<<3 | typeVarint:
			l.Running = int32(r.number(math.MaxInt32, "count too large"))
		case loadKV<<3 | typeFixed32:
			l.KV = r.float()
		case loadHit<<3 | typeFixed32:
			l.Hit = r.float()
		case loadRPS<<3 | typeFixed32:
			l.RPS = r.float()
		case loadTPS<<3 | typeFixed32:
			l.TPS = r.float()
		default:
			r.skip(key)
		}
	}
}

func (r *reader) uint32() uint32 {
	return uint32(r.number(math.MaxUint32, "number too large"))
}

// state reads an enumeration; a value this version does not know is 0.
func (r *reader) state(max uint64) uint64 {
	if v := r.varint(); v <= max {
		return v
	}
	return 0
}

// rate is a float whose unknown is 0.
func (r *reader) rate() float32 {
	if f := r.float(); f == f {
		return f
	}
	return 0
}

// count reads the head of a list: how many items follow, each of at least one
// byte, or that the list is not known.
func (r *reader) count(max uint64) (n int, known bool) {
	v := r.varint()
	if v == 0 {
		return 0, false
	}
	if v--; v > max || v > uint64(len(r.b)-r.pos) {
		r.fail("list too long")
		return 0, false
	}
	return int(v), true
}

// end refuses bytes behind the last item of a list.
func (r *reader) end() {
	if r.pos < len(r.b) {
		r.fail("bytes behind a list")
	}
}

// names reads a list of strings into the memory of old.
func (r *reader) names(old []string) []string {
	n, known := r.count(MaxModels)
	if !known {
		r.end()
		return nil
	}
	list := resize(old, n)
	for i := range list {
		list[i] = r.name(list[i])
	}
	r.end()
	return list
}

// adapters reads a list of adapter records into the memory of old.
func (r *reader) adapters(old []Adapter) []Adapter {
	n, known := r.count(MaxAdapters)
	if !known {
		r.end()
		return nil
	}
	list := resize(old, n)
	for i := range list {
		rec := r.record()
		list[i].read(&rec)
		r.err = rec.err
	}
	r.end()
	return list
}

func (a *Adapter) read(r *reader) {
	old := a.Name
	a.Name, a.State = "", AdapterUnknown
	for key, ok := r.next(); ok; key, ok = r.next() {
		switch key {
		case adapterName<<3 | typeBytes:
			a.Name = r.name(old)
		case adapterState<<3 | typeVarint:
			a.State = AdapterState(r.state(uint64(AdapterFailed)))
		default:
			r.skip(key)
		}
	}
}
