package prefix

import "encoding/binary"

// putTags makes an entry with the tags want for r the newest of the bucket and
// keeps the bucket within limit bytes. Nothing changes if r has a fresh entry
// that covers them. Entries of r that the new one covers, or that r has
// outlived, go.
func (im *image) putTags(want []uint32, r Replica, limit int) (evicted int, changed bool) {
	if im.hasTags(want, r) {
		return 0, false
	}
	im.clearFor(want, r)
	e := im.buf[im.n : im.n+entryHead+4*len(want)]
	binary.LittleEndian.PutUint32(e, r.Key)
	binary.LittleEndian.PutUint32(e[4:], r.Clock)
	binary.LittleEndian.PutUint32(e[8:], uint32(len(want)))
	for i, t := range want {
		binary.LittleEndian.PutUint32(e[entryHead+4*i:], t)
	}
	im.n += len(e)
	return im.evictTags(limit), true
}

// hasTags reports whether r has a fresh entry that covers want.
func (im *image) hasTags(want []uint32, r Replica) bool {
	for at := magicBytes; at < im.n; {
		size := entrySize(im.buf[at:im.n])
		if size == 0 {
			return false
		}
		e := im.buf[at : at+size]
		at += size
		if binary.LittleEndian.Uint32(e) == r.Key && r.fresh(binary.LittleEndian.Uint32(e[4:])) && covers(e, want) {
			return true
		}
	}
	return false
}

// clearFor removes the entries of r that one for want replaces.
func (im *image) clearFor(want []uint32, r Replica) {
	to := magicBytes
	for at := magicBytes; at < im.n; {
		size := entrySize(im.buf[at:im.n])
		if size == 0 { // damaged: what follows cannot be read
			break
		}
		e := im.buf[at : at+size]
		at += size
		if binary.LittleEndian.Uint32(e) == r.Key &&
			(!r.holds(binary.LittleEndian.Uint32(e[4:]), r.Capacity) || coveredBy(e, want)) {
			continue
		}
		if to < at-size {
			copy(im.buf[to:], e)
		}
		to += size
	}
	im.n = to
}

// covers reports whether the entry has all tags of want. Hashes are chained, so
// the last tells; the others are compared all the same, because a damaged
// entry that seems to cover the prompt would keep it from being recorded.
func covers(e []byte, want []uint32) bool {
	if len(e) < entryHead+4*len(want) {
		return false
	}
	for i := len(want) - 1; i >= 0; i-- {
		if binary.LittleEndian.Uint32(e[entryHead+4*i:]) != want[i] {
			return false
		}
	}
	return true
}

// coveredBy reports whether want has all tags of the entry.
func coveredBy(e []byte, want []uint32) bool {
	n := (len(e) - entryHead) / 4
	return n <= len(want) && binary.LittleEndian.Uint32(e[len(e)-4:]) == want[n-1]
}

// evictTags drops the oldest entries until the bucket has at most limit bytes.
func (im *image) evictTags(limit int) (evicted int) {
	at := magicBytes
	for im.n-at+magicBytes > limit {
		at += entrySize(im.buf[at:im.n])
		evicted++
	}
	if evicted > 0 {
		im.n = magicBytes + copy(im.buf[magicBytes:], im.buf[at:im.n])
	}
	return evicted
}

// dropTags removes the entry of key that has just the tags want.
func (im *image) dropTags(want []uint32, key uint32) bool {
	for at := magicBytes; at < im.n; {
		size := entrySize(im.buf[at:im.n])
		if size == 0 {
			return false
		}
		e := im.buf[at : at+size]
		if binary.LittleEndian.Uint32(e) == key && covers(e, want) && coveredBy(e, want) {
			copy(e, im.buf[at+size:im.n])
			im.n -= size
			return true
		}
		at += size
	}
	return false
}
