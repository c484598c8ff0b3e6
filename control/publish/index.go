package publish

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/warmlane/warmlane/filter/state"
)

// index is the KV records of all pools as they are now.
type index struct {
	pools   map[string]*records
	bytes   int
	dropped uint64
}

// records are those of one pool, by id.
type records struct {
	payload map[uint64][]byte
	bytes   int // in pages
}

// change names the records of a pool that a state changed. What they say is
// not kept: a reader needs only what they say now.
type change struct {
	pool string
	ids  []uint64
}

// named is how many records g names.
func (g *generation) named() (n int) {
	for i := range g.changes {
		n += len(g.changes[i].ids)
	}
	return n
}

// of returns the ids that g changed in a pool.
func (g *generation) of(pool string) []uint64 {
	for i := range g.changes {
		if g.changes[i].pool == pool {
			return g.changes[i].ids
		}
	}
	return nil
}

func newIndex() index { return index{pools: make(map[string]*records)} }

// absorb takes over patches of the pools of s, up to max bytes of all records,
// and names what they changed.
func (x *index) absorb(patches []state.Patch, s *state.Snapshot, max int) (changes []change) {
	for i := range patches {
		p := &patches[i]
		if !slices.ContainsFunc(s.Pools, func(q state.Pool) bool { return q.Name == p.Pool }) {
			x.dropped += uint64(len(p.Records))
			continue
		}
		of := x.of(p.Pool)
		var ids []uint64
		for _, r := range p.Records {
			if x.put(of, r, max) {
				ids = append(ids, r.ID)
			}
		}
		if len(ids) > 0 {
			changes = append(changes, change{pool: p.Pool, ids: ids})
		}
	}
	return changes
}

// of returns the records of a pool.
func (x *index) of(pool string) *records {
	r := x.pools[pool]
	if r == nil {
		r = &records{payload: make(map[uint64][]byte)}
		x.pools[pool] = r
	}
	return r
}

// put takes over one record and reports whether it changed anything. One for
// which there is no room is as good as removed.
func (x *index) put(in *records, r state.Record, max int) (changed bool) {
	before, there := in.payload[r.ID]
	if len(r.Payload) == 0 {
		r.Payload = nil
	}
	if there == (r.Payload != nil) && bytes.Equal(before, r.Payload) {
		return false
	}
	if there {
		x.grow(in, -(&state.Record{ID: r.ID, Payload: before}).Size())
		delete(in.payload, r.ID)
	}
	if r.Payload == nil {
		return true
	}
	if len(r.Payload) > state.MaxPayload || x.bytes+r.Size() > max {
		x.dropped++
		return there
	}
	x.grow(in, r.Size())
	in.payload[r.ID] = r.Payload
	return true
}

func (x *index) grow(in *records, n int) {
	in.bytes += n
	x.bytes += n
}

// patch returns what records of these ids say now. It uses up ids, which may
// name some more than once.
//
// The order is that of the ids' bits from the lowest up. A reader that keeps
// records in 2^n buckets by id thus meets them bucket by bucket, whatever n.
func (in *records) patch(ids []uint64) []state.Record {
	for i, id := range ids {
		ids[i] = bits.Reverse64(id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	list := make([]state.Record, len(ids))
	for i, reversed := range ids {
		id := bits.Reverse64(reversed)
		list[i] = state.Record{ID: id, Payload: in.payload[id]}
	}
	return list
}

// whole returns all records of the chosen pools.
func (x *index) whole(s *state.Snapshot) []state.Patch {
	var all []state.Patch
	for i := range s.Pools {
		in := x.pools[s.Pools[i].Name]
		if in == nil {
			continue
		}
		ids := make([]uint64, 0, len(in.payload))
		for id := range in.payload {
			ids = append(ids, id)
		}
		all = append(all, state.Patch{Pool: s.Pools[i].Name, Records: in.patch(ids)})
	}
	return all
}

// since returns those records of the pools of s that later states changed.
func (x *index) since(later []*generation, s *state.Snapshot) []state.Patch {
	var all []state.Patch
	for i := range s.Pools {
		name := s.Pools[i].Name
		var ids []uint64
		for _, g := range later {
			ids = append(ids, g.of(name)...)
		}
		if len(ids) > 0 {
			all = append(all, state.Patch{Pool: name, Records: x.pools[name].patch(ids)})
		}
	}
	return all
}

// size is how many bytes the records of the pools of s take in pages.
func (x *index) size(s *state.Snapshot) (n int) {
	for i := range s.Pools {
		if in := x.pools[s.Pools[i].Name]; in != nil {
			n += in.bytes
		}
	}
	return n
}

// sizeOf is how many bytes patches take in pages.
func sizeOf(patches []state.Patch) (n int) {
	for i := range patches {
		for j := range patches[i].Records {
			n += patches[i].Records[j].Size()
		}
	}
	return n
}
