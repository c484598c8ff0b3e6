package kvindex

import (
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// A read makes the host allocate for the answer, which costs more than all that
// a look-up does with it, and prompts share their beginnings. So a worker keeps
// the records it used last, and one serves instead of a read for keptFor
// milliseconds.
const (
	keptFor     = 20
	keptRecords = 256
	keptBytes   = 512 // longer payloads are read each time
)

// kept is the last record that was read in its place.
type kept struct {
	id    uint64
	at    int64
	valid bool
	n     int // 0: there is no such record
	buf   [keptBytes]byte
}

// fresh reports whether what was read at some time still serves. A clock that
// was set back makes it too old.
func fresh(now, at int64) bool { return uint64(now-at) < keptFor }

// payload returns the payload of id, nil if there is none. It is valid until
// the next call.
func (r *Reader) payload(id uint64) ([]byte, error) {
	k := &r.kept[id%keptRecords]
	if k.valid && k.id == id && fresh(r.now, k.at) {
		return k.buf[:k.n], nil
	}
	payload, err := r.read(id)
	k.valid = err == nil && len(payload) <= keptBytes
	if k.valid {
		k.id, k.at, k.n = id, r.now, copy(k.buf[:], payload)
	}
	return payload, err
}

// forget makes all records be read again.
func (r *Reader) forget() {
	for i := range r.kept {
		r.kept[i].valid = false
	}
}

func (r *Reader) read(id uint64) ([]byte, error) {
	r.key = shared.AppendBlocksKey(r.key[:0], uint32(id%uint64(r.opts.Buckets)))
	r.stats.Reads++
	value, _, err := r.store.Get(r.key)
	if errors.Is(err, shared.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, damaged := entriesOf(value, r.head.epoch)
	if damaged {
		r.stats.Damaged++
	}
	return payloadOf(entries, id), nil
}

// node returns the node of an id; ok is false if there is none.
func (r *Reader) node(id uint64) (v nodeView, ok bool, err error) {
	payload, err := r.payload(id)
	if err != nil || len(payload) == 0 {
		return v, false, err
	}
	v, bad := viewNode(payload)
	if bad != nil {
		r.stats.Damaged++
	}
	return v, bad == nil, nil
}

// text reads the text of an id into t and reports whether there is one.
func (r *Reader) text(id uint64, t *Text) bool {
	payload, err := r.payload(id)
	if err != nil || len(payload) == 0 {
		return false
	}
	bad := t.Decode(payload)
	if bad != nil {
		r.stats.Damaged++
	}
	return bad == nil
}
