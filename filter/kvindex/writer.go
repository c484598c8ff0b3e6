package kvindex

import (
	"bytes"
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// ErrDeposed says that this writer has neither begun nor taken over the index,
// or that another has since. What it writes would be old.
var ErrDeposed = errors.New("kv index: not this worker's to write")

// maxTries bounds the compare-and-set loop of a bucket. Only one worker writes,
// so even one loss is rare.
const maxTries = 4

// Writer puts records into the index. One worker of the proxy does so at a
// time, the one that hears from control. It is not safe for concurrent use.
type Writer struct {
	store shared.Store
	opts  Options
	stats Stats
	head  head // as this writer last wrote it
	queue queue
	value []byte // of the bucket or head at hand
	key   []byte
}

// NewWriter returns a writer that has neither begun nor taken over.
func NewWriter(store shared.Store, o Options) *Writer {
	o = o.withDefaults()
	return &Writer{
		store: store, opts: o, queue: newQueue(o.Buckets),
		value: make([]byte, 0, o.BucketBytes), key: make([]byte, 0, 32),
	}
}

// Stats returns the counters.
func (w *Writer) Stats() Stats { return w.stats }

// State is what the head of the index says, whoever wrote it.
func (w *Writer) State() (epoch uint32, complete bool, err error) {
	h, _, err := w.readHead()
	return h.epoch, h.complete, err
}

// Begin starts an empty index. Readers see none until it is complete. What was
// queued is forgotten.
func (w *Writer) Begin() error {
	w.queue.clear()
	return w.succeed(func(h head) head {
		h.epoch, h.complete = h.term, false
		return h
	})
}

// Resume takes over the index as it is. If complete is false there is none to
// go on with: ask for all records and Begin.
func (w *Writer) Resume() (complete bool, err error) {
	w.queue.clear()
	err = w.succeed(func(h head) head { return h })
	return err == nil && w.head.complete, err
}

// Complete lets readers see the index. It is for after Apply has said that it
// is done.
func (w *Writer) Complete() error {
	return w.change(func(h head) (head, error) {
		h.complete = true
		return h, w.leads(h)
	})
}

// succeed begins a term, after which no other writer writes.
func (w *Writer) succeed(change func(head) head) error {
	return w.change(func(h head) (head, error) {
		if h.term++; h.term == 0 {
			h.term = 1
		}
		return change(h), nil
	})
}

// change writes the head anew by compare-and-set.
func (w *Writer) change(next func(head) (head, error)) error {
	for range maxTries {
		h, cas, err := w.readHead()
		if err != nil {
			return err
		}
		if h, err = next(h); err != nil {
			return err
		}
		w.value = h.append(w.value[:0])
		w.stats.Writes++
		err = w.store.Set(w.key, w.value, cas)
		if err == nil {
			w.head = h
		}
		if !errors.Is(err, shared.ErrCAS) {
			return err
		}
		w.stats.Conflicts++
	}
	return shared.ErrCAS
}

// readHead gives a head of zeros if there is none.
func (w *Writer) readHead() (h head, cas uint32, err error) {
	w.key = append(w.key[:0], shared.BlocksKey...)
	w.stats.Reads++
	value, cas, err := w.store.Get(w.key)
	if errors.Is(err, shared.ErrNotFound) {
		return head{}, shared.Absent, nil
	}
	if err != nil {
		return head{}, 0, err
	}
	h, ok := readHead(value)
	if !ok {
		w.stats.Damaged++
	}
	return h, cas, nil
}

// Queue takes a record to be applied later: the newest state of id, or that it
// is removed if payload is empty. It copies the payload, and what was queued
// for the same id before is forgotten. A payload over MaxPayload removes the id
// and counts as dropped.
//
// The queue is as large as what is put into it between two times that Apply
// says done.
func (w *Writer) Queue(id uint64, payload []byte) {
	if len(payload) > MaxPayload {
		w.stats.Dropped++
		payload = nil
	}
	w.queue.put(id, payload)
}

// Pending is how many buckets are still to be written.
func (w *Writer) Pending() int { return w.queue.pending() }

// Apply writes what was queued, at most so many buckets, each with one read and
// one write, and reports whether that was all. After an error the rest is still
// queued.
//
// A record that finds no room in its bucket is dropped, and with it what the
// bucket said of its id before: readers then know less, not wrong things.
func (w *Writer) Apply(maxBuckets int) (done bool, err error) {
	if w.Pending() == 0 {
		return true, nil
	}
	if err := w.lead(); err != nil {
		return false, err
	}
	for range maxBuckets {
		if err := w.write(w.queue.bucket()); err != nil {
			return false, err
		}
		w.queue.pop()
		if w.Pending() == 0 {
			return true, nil
		}
	}
	return false, nil
}

// lead checks that this is still the writer.
func (w *Writer) lead() error {
	h, _, err := w.readHead()
	if err != nil {
		return err
	}
	return w.leads(h)
}

func (w *Writer) leads(h head) error {
	if h.term == 0 || h.term != w.head.term {
		return ErrDeposed
	}
	return nil
}

// write brings the queued records of a bucket into it.
func (w *Writer) write(bucket uint32) error {
	for range maxTries {
		old, cas, err := w.read(bucket)
		if err != nil {
			return err
		}
		dropped := w.merge(bucket)
		if !bytes.Equal(old, w.value) {
			w.stats.Writes++
			err = w.store.Set(w.key, w.value, cas)
		}
		if err == nil {
			w.stats.Dropped += dropped
		}
		if !errors.Is(err, shared.ErrCAS) {
			return err
		}
		w.stats.Conflicts++
	}
	return shared.ErrCAS
}

// read copies a bucket to w.value. What of it is damaged or belongs to another
// epoch is left out.
func (w *Writer) read(bucket uint32) (old []byte, cas uint32, err error) {
	w.key = shared.AppendBlocksKey(w.key[:0], bucket)
	w.value = appendBucketHead(w.value[:0], w.head.epoch)
	w.stats.Reads++
	old, cas, err = w.store.Get(w.key)
	if errors.Is(err, shared.ErrNotFound) {
		return nil, shared.Absent, nil
	}
	if err != nil {
		return nil, 0, err
	}
	entries, damaged := entriesOf(old, w.head.epoch)
	if n := whole(entries); n < len(entries) {
		entries, damaged = entries[:n], true
	}
	if damaged {
		w.stats.Damaged++
	}
	w.value = append(w.value, entries...)
	return old, cas, nil
}

// merge makes w.value what it is with the queued records of the bucket: first
// the old ones go, then there is the most room for the new.
func (w *Writer) merge(bucket uint32) (dropped uint64) {
	q := &w.queue
	for i := q.first[bucket]; i != 0; i = q.records[i-1].next {
		w.value = remove(w.value, q.records[i-1].id)
	}
	for i := q.first[bucket]; i != 0; i = q.records[i-1].next {
		r := &q.records[i-1]
		switch {
		case r.size == 0:
		case len(w.value)+entryHead+int(r.size) > w.opts.BucketBytes:
			dropped++
		default:
			w.value = appendEntry(w.value, r.id, q.payload(r))
		}
	}
	return dropped
}
