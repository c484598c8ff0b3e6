package prefix

import "encoding/binary"

// An entry of a bucket of borders, all fields little-endian uint32. The entry
// last written comes last.
//
//	tag    the lower half of the border's hash, mixed with the namespace
//	bytes  of the prompt up to the border
//	key    of the replica
//	stamp  its clock when the prompt was sent
const borderEntry = 16

// borderOf is a border as it is looked for: in which bucket and as what.
type borderOf struct {
	bucket     uint32
	tag, bytes uint32
}

func (x *Index) borderOf(b border, ns Namespace) borderOf {
	h := ns.mix(b.hash)
	return borderOf{
		bucket: uint32(x.opts.Groups) + scale(h, x.opts.Borders),
		tag:    uint32(h),
		bytes:  uint32(min(b.bytes, 1<<32-1)),
	}
}

func (e borderOf) in(entry []byte) bool {
	return binary.LittleEndian.Uint32(entry) == e.tag && binary.LittleEndian.Uint32(entry[4:]) == e.bytes
}

// lookupBorders asks for borders that lie beyond what the groups found. The
// last is where this very prompt ended before. The one two before it, or
// three, is where the prompt of the turn before ended: since then came an
// answer and a question, or a call and two results.
func (x *Index) lookupBorders(c *Chain, ns Namespace, replicas []Replica, matched []uint32) error {
	deepest := uint32(0)
	for _, m := range matched {
		deepest = max(deepest, m)
	}
	for _, back := range [...]int{0, 2, 3} {
		b, ok := c.lastBorder(back)
		if !ok || !worthAsking(c, b, deepest) {
			continue
		}
		found, err := x.lookupBorder(x.borderOf(b, ns), replicas, matched)
		if found || err != nil {
			return err
		}
	}
	return nil
}

// worthAsking reports whether a border may tell more than the groups did: if
// it lies as far beyond what they found as they are exact. If nobody has seen
// the first blocks of the prompt, nobody has seen a border beyond them.
func worthAsking(c *Chain, b border, deepest uint32) bool {
	if deepest > 0 {
		return !near(deepest, b.bytes)
	}
	return b.bytes > 0 && (groupsOf(c) == 0 || b.bytes < int64(blocksAt(ladderGroups[0].address))*BlockBytes)
}

func (x *Index) lookupBorder(e borderOf, replicas []Replica, matched []uint32) (found bool, err error) {
	im, err := x.image(&x.borders, e.bucket, serveKnown)
	if err != nil {
		return false, err
	}
	found = x.matchBorder(im.entries(), e, replicas, matched)
	if found || im.shows(x.now, serveAny) {
		return found, nil
	}
	if im, err = x.read(&x.borders, e.bucket); err != nil {
		return false, err
	}
	return x.matchBorder(im.entries(), e, replicas, matched), nil
}

func (x *Index) matchBorder(entries []byte, e borderOf, replicas []Replica, matched []uint32) (found bool) {
	for ; len(entries) >= borderEntry; entries = entries[borderEntry:] {
		if e.in(entries) && x.credit(entries, e.bytes, replicas, matched) {
			found = true
		}
	}
	return found
}

// credit notes that the entry's replica was sent so many bytes.
func (x *Index) credit(entry []byte, bytes uint32, replicas []Replica, matched []uint32) bool {
	i, ok := x.census.find(binary.LittleEndian.Uint32(entry[8:]))
	if !ok || !replicas[i].holds(binary.LittleEndian.Uint32(entry[12:]), replicas[i].Capacity) {
		return false
	}
	matched[i] = max(matched[i], bytes)
	return true
}

// updateBorder changes the bucket of the end of the prompt.
func (x *Index) updateBorder(c *Chain, ns Namespace, change func(*image, borderOf) bool) error {
	b, ok := c.lastBorder(0)
	if !ok || b.bytes == 0 {
		return nil
	}
	e := x.borderOf(b, ns)
	_, err := x.update(&x.borders, e.bucket, func(im *image) bool { return change(im, e) })
	return err
}

// putBorder makes the border's entry for r the newest of the bucket and keeps
// the bucket within limit bytes. Nothing changes if it is there and fresh.
func (im *image) putBorder(e borderOf, r Replica, limit int) (evicted int, changed bool) {
	if at := im.findBorder(e, r.Key); at > 0 {
		if r.fresh(binary.LittleEndian.Uint32(im.buf[at+12:])) {
			return 0, false
		}
		im.cutBorder(at)
	}
	for im.n > magicBytes && im.n+borderEntry > limit {
		im.cutBorder(magicBytes)
		evicted++
	}
	entry := im.buf[im.n : im.n+borderEntry]
	binary.LittleEndian.PutUint32(entry, e.tag)
	binary.LittleEndian.PutUint32(entry[4:], e.bytes)
	binary.LittleEndian.PutUint32(entry[8:], r.Key)
	binary.LittleEndian.PutUint32(entry[12:], r.Clock)
	im.n += borderEntry
	return evicted, true
}

func (im *image) dropBorder(e borderOf, key uint32) bool {
	at := im.findBorder(e, key)
	if at > 0 {
		im.cutBorder(at)
	}
	return at > 0
}

// findBorder returns where the border's entry for key begins, 0 if nowhere.
func (im *image) findBorder(e borderOf, key uint32) int {
	for at := magicBytes; at+borderEntry <= im.n; at += borderEntry {
		if e.in(im.buf[at:]) && binary.LittleEndian.Uint32(im.buf[at+8:]) == key {
			return at
		}
	}
	return 0
}

func (im *image) cutBorder(at int) {
	copy(im.buf[at:], im.buf[at+borderEntry:im.n])
	im.n -= borderEntry
}
