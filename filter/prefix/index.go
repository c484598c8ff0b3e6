package prefix

import "github.com/warmlane/warmlane/filter/shared"

// Options are the sizes of an index. All workers of a proxy must have the
// same. A zero field has its default; all defaults together bound the index
// to 16 MiB of shared data.
type Options struct {
	Groups      int // buckets for rungs; 1,024
	GroupBytes  int // size of each at most, 1 KiB to 64 KiB; 8 KiB
	Borders     int // buckets for borders; 8,192
	BorderBytes int // size of each at most, 64 bytes to 64 KiB; 1 KiB
}

func (o Options) withDefaults() Options {
	o.Groups = within(o.Groups, 1024, 1, 1<<20)
	o.GroupBytes = within(o.GroupBytes, 8<<10, 1<<10, 64<<10)
	o.Borders = within(o.Borders, 8192, 1, 1<<20)
	o.BorderBytes = within(o.BorderBytes, 1<<10, 64, 64<<10)
	return o
}

func within(n, byDefault, low, high int) int {
	if n == 0 {
		return byDefault
	}
	return min(max(n, low), high)
}

// Replica is a candidate as the index sees it. Its clock counts the uncached
// prompt tokens it was sent, in units of 16; it may wrap around.
type Replica struct {
	Key      uint32 // names one life of one replica; another after a restart
	Clock    uint32
	Capacity uint32 // what its cache holds, in the same units
}

// holds reports whether what was written at stamp may still be in a cache of
// the given size. A stamp from the future is a worker whose clock is ahead.
func (r Replica) holds(stamp, capacity uint32) bool {
	age := int32(r.Clock - stamp)
	return age <= 0 || uint32(age) <= capacity
}

// fresh reports whether an entry is young enough to be left as it is.
func (r Replica) fresh(stamp uint32) bool { return r.holds(stamp, r.Capacity/16) }

// Stats counts what an index did since it was made.
type Stats struct {
	Reads, Writes uint64 // calls on the store
	Conflicts     uint64 // writes refused, because the image or its number was out of date
	Damaged       uint64 // buckets that were not ours to read, taken as empty
	Evicted       uint64 // entries pushed out of full buckets
}

// Index is one worker's access to the text index. It is not safe for
// concurrent use; several indexes on one store are.
type Index struct {
	store shared.Store
	opts  Options
	stats Stats

	now     int64            // milliseconds, of the last Lookup
	tags    [maxRungs]uint32 // of the prompt at hand, in its namespace
	tagged  prompt           // that prompt
	census  census           // of the candidates at hand
	runs    []uint16         // per candidate: tags in common with the bucket at hand
	longest int              // of the runs
	groups  cache
	borders cache
	numbers numbers
	key     []byte
}

// New returns an index over store.
func New(store shared.Store, o Options) *Index {
	o = o.withDefaults()
	return &Index{
		store: store, opts: o, key: make([]byte, 0, 32),
		groups:  newCache(groupMagic, o.GroupBytes+maxEntry),
		borders: newCache(borderMagic, o.BorderBytes+borderEntry),
	}
}

// Stats returns the counters.
func (x *Index) Stats() Stats { return x.stats }

// Lookup finds, for each of the replicas, how many bytes of the prompt's
// beginning it was sent before and should still have, and writes them to
// matched, which is as long as replicas. It is exact to a block or a sixteenth.
// On an error matched holds what was found until then.
//
// now is in milliseconds, on a clock that moves for all calls alike: it tells
// how old the images of buckets are that this worker keeps. So an entry written
// by another worker may be seen 20 ms later, and up to a second later if some
// replica is known to have all of the prompt.
func (x *Index) Lookup(c *Chain, ns Namespace, replicas []Replica, matched []uint32, now int64) error {
	x.now = now
	matched = matched[:len(replicas)]
	clear(matched)
	x.census.take(replicas)
	if len(x.runs) < len(replicas) {
		x.runs = make([]uint16, len(replicas))
	}
	x.tag(c, ns)
	for i := range groupsOf(c) {
		if err := x.lookupGroup(i, c, ns, replicas, matched); err != nil {
			return err
		}
	}
	return x.lookupBorders(c, ns, replicas, matched)
}

// Record says that the prompt is sent to r. It is cheapest right after the
// Lookup of the same prompt, whose reads it uses again, and costs no call if
// the prompt is known there already. If other workers win every race for a
// bucket, the prompt goes unrecorded there and Conflicts tells.
func (x *Index) Record(c *Chain, ns Namespace, r Replica) error {
	x.tag(c, ns)
	news := false
	for i := range groupsOf(c) {
		changed, err := x.recordGroup(i, c, ns, r)
		if err != nil {
			return err
		}
		news = news || changed
	}
	if !news && groupsOf(c) > 0 { // then the border was written with them
		return nil
	}
	return x.updateBorder(c, ns, func(im *image, e borderOf) bool {
		evicted, changed := im.putBorder(e, r, x.opts.BorderBytes)
		x.stats.Evicted += uint64(evicted)
		return changed
	})
}

func (x *Index) recordGroup(i int, c *Chain, ns Namespace, r Replica) (changed bool, err error) {
	want := x.want(i, c)
	return x.update(&x.groups, x.groupBucket(i, c, ns), func(im *image) bool {
		evicted, changed := im.putTags(want, r, x.opts.GroupBytes)
		x.stats.Evicted += uint64(evicted)
		return changed
	})
}

// Withdraw takes back a Record: the replica with this key never got the
// prompt. What Record put in the place of is not restored.
func (x *Index) Withdraw(c *Chain, ns Namespace, key uint32) error {
	x.tag(c, ns)
	for i := range groupsOf(c) {
		want := x.want(i, c)
		_, err := x.update(&x.groups, x.groupBucket(i, c, ns), func(im *image) bool {
			return im.dropTags(want, key)
		})
		if err != nil {
			return err
		}
	}
	return x.updateBorder(c, ns, func(im *image, e borderOf) bool {
		return im.dropBorder(e, key)
	})
}
