package kvindex

// queue holds records on their way into buckets: of each id the newest, those
// of one bucket together. Its memory is used again once it has run empty.
type queue struct {
	first   []int32 // by bucket: 1 + index of its newest record, 0 = none
	records []record
	bytes   []byte   // the payloads
	buckets []uint32 // that have records, in the order in which they got one
	done    int      // of those
}

type record struct {
	id   uint64
	from uint32 // its payload in bytes
	size uint16
	next int32 // 1 + index of the next one of its bucket, 0 = none
}

func newQueue(buckets int) queue { return queue{first: make([]int32, buckets)} }

func (q *queue) pending() int { return len(q.buckets) - q.done }

func (q *queue) payload(r *record) []byte { return q.bytes[r.from:][:r.size] }

// put adds a record or replaces the one of the same id.
func (q *queue) put(id uint64, payload []byte) {
	bucket := uint32(id % uint64(len(q.first)))
	if q.first[bucket] == 0 {
		q.buckets = append(q.buckets, bucket)
	}
	r := q.find(bucket, id)
	if r == nil {
		q.records = append(q.records, record{id: id, next: q.first[bucket]})
		q.first[bucket] = int32(len(q.records))
		r = &q.records[len(q.records)-1]
	}
	if len(payload) > int(r.size) {
		r.from = uint32(len(q.bytes))
		q.bytes = append(q.bytes, payload...)
	} else {
		copy(q.bytes[r.from:], payload)
	}
	r.size = uint16(len(payload))
}

func (q *queue) find(bucket uint32, id uint64) *record {
	for i := q.first[bucket]; i != 0; {
		r := &q.records[i-1]
		if r.id == id {
			return r
		}
		i = r.next
	}
	return nil
}

// bucket returns the one to be written next.
func (q *queue) bucket() uint32 { return q.buckets[q.done] }

// pop takes the records of that bucket out.
func (q *queue) pop() {
	q.first[q.bucket()] = 0
	q.done++
	if q.pending() == 0 {
		q.records, q.bytes, q.buckets, q.done = q.records[:0], q.bytes[:0], q.buckets[:0], 0
	}
}

// clear empties the queue.
func (q *queue) clear() {
	for q.pending() > 0 {
		q.pop()
	}
}
