package prefix

import "encoding/binary"

// group is a stretch of the ladder that lies in one bucket.
type group struct {
	first   int // the first rung an entry has
	address int // the rung that chooses the bucket
	end     int // the rung after the last
}

// In groups B and C an entry begins with the rung that chose the bucket. It
// proves all that is below.
var ladderGroups = [...]group{
	{first: 0, address: 3, end: 48},
	{first: 47, address: 47, end: 144},
	{first: 143, address: 143, end: maxRungs},
}

// An entry of a group's bucket, all fields little-endian uint32. The entry
// last written comes last.
//
//	key    of the replica
//	stamp  its clock when the prompt was sent
//	count  of tags
//	tags   the lower halves of the rungs, mixed with the namespace
const (
	entryHead = 12
	maxTags   = maxRungs - 143
	maxEntry  = entryHead + 4*maxTags
)

// groupsOf is how many groups a prompt has: those with a rung of their own
// beyond the one that chooses the bucket. A prompt of under four blocks has
// none.
func groupsOf(c *Chain) int {
	n := 0
	for n < len(ladderGroups) && c.rungs > ladderGroups[n].address {
		n++
	}
	if n > 1 && c.rungs == ladderGroups[n-1].address+1 {
		n--
	}
	return n
}

// prompt tells prompts with other tags apart.
type prompt struct {
	hash  uint64
	rungs int
	ns    Namespace
}

// tag computes the tags of the prompt, unless they are there since the Lookup.
func (x *Index) tag(c *Chain, ns Namespace) {
	if x.tagged.rungs == c.rungs && x.tagged.hash == c.hash && x.tagged.ns == ns {
		return
	}
	x.tagged.hash, x.tagged.rungs, x.tagged.ns = c.hash, c.rungs, ns
	for i, h := range c.rung[:c.rungs] {
		x.tags[i] = uint32(ns.mix(h))
	}
}

// want returns the tags of an entry that has all of the prompt.
func (x *Index) want(i int, c *Chain) []uint32 {
	g := ladderGroups[i]
	return x.tags[g.first:min(g.end, c.rungs)]
}

func (x *Index) groupBucket(i int, c *Chain, ns Namespace) uint32 {
	return scale(ns.mix(c.rung[ladderGroups[i].address]), x.opts.Groups)
}

// scale maps the upper half of h to 0..n-1; the lower half is the tag.
func scale(h uint64, n int) uint32 {
	return uint32((h >> 32) * uint64(n) >> 32)
}

// lookupGroup matches the prompt with the bucket of a group.
func (x *Index) lookupGroup(i int, c *Chain, ns Namespace, replicas []Replica, matched []uint32) error {
	bucket, want := x.groupBucket(i, c, ns), x.want(i, c)
	im, err := x.image(&x.groups, bucket, serveKnown)
	if err != nil {
		return err
	}
	x.match(im.entries(), want, replicas)
	if !im.shows(x.now, serveAny) && !x.deep(i, c) {
		if im, err = x.read(&x.groups, bucket); err != nil {
			return err
		}
		x.match(im.entries(), want, replicas)
	}
	if x.longest == 0 {
		return nil
	}
	for r, run := range x.runs[:len(replicas)] {
		if run > 0 {
			matched[r] = rungBytes(i, int(run))
		}
	}
	return nil
}

// deep reports whether the longest run is about all that the group can tell.
func (x *Index) deep(i int, c *Chain) bool {
	return x.longest > 0 &&
		(x.longest == len(x.want(i, c)) || near(rungBytes(i, x.longest), c.Bytes()))
}

// near reports whether a prompt of so many bytes is found as exactly as the
// ladder can tell.
func near(found uint32, bytes int64) bool {
	return bytes-int64(found) <= max(BlockBytes, bytes/16)
}

// rungBytes is how long a prompt is that has run tags of a group.
func rungBytes(i, run int) uint32 {
	return uint32(blocksAt(ladderGroups[i].first+run-1) * BlockBytes)
}

// match finds for each replica the longest run of tags from the first that an
// entry has in common with want. It stops at an entry that cannot be.
func (x *Index) match(entries []byte, want []uint32, replicas []Replica) {
	x.longest = 0
	if len(entries) == 0 {
		return
	}
	clear(x.runs[:len(replicas)])
	for len(entries) > 0 {
		size := entrySize(entries)
		if size == 0 {
			x.stats.Damaged++
			return
		}
		e := entries[:size]
		entries = entries[size:]
		if binary.LittleEndian.Uint32(e[entryHead:]) == want[0] {
			x.extend(e, want, replicas)
		}
	}
}

// extend lengthens the run of the entry's replica. Hashes are chained, so the
// tags before the present run need no second look.
func (x *Index) extend(e []byte, want []uint32, replicas []Replica) {
	i, ok := x.census.find(binary.LittleEndian.Uint32(e))
	if !ok || !replicas[i].holds(binary.LittleEndian.Uint32(e[4:]), replicas[i].Capacity) {
		return
	}
	run := int(x.runs[i])
	limit := min(len(want), (len(e)-entryHead)/4)
	for run < limit && binary.LittleEndian.Uint32(e[entryHead+4*run:]) == want[run] {
		run++
	}
	x.runs[i] = uint16(run)
	x.longest = max(x.longest, run)
}

// entrySize is the size of the entry that b begins with, 0 if there is none.
func entrySize(b []byte) int {
	if len(b) < entryHead {
		return 0
	}
	count := binary.LittleEndian.Uint32(b[8:])
	size := entryHead + 4*int(count)
	if count == 0 || count > maxTags || size > len(b) {
		return 0
	}
	return size
}
