package hostsim

// queues are the shared queues of one proxy. A queue has one consumer, the
// context that registered it last; an enqueue wakes that one VM.
type queues struct {
	byName map[string]uint32
	byID   map[uint32]*queue
	next   uint32
}

type queue struct {
	items  []string
	worker *worker
	ctx    uint32
}

func newQueues() *queues {
	return &queues{byName: map[string]uint32{}, byID: map[uint32]*queue{}}
}

func queueName(vmID, name string) string { return vmID + "\x00" + name }

// register names the consumer of a queue and keeps what is in it.
func (q *queues) register(vmID, name string, w *worker, ctx uint32) uint32 {
	key := queueName(vmID, name)
	id, ok := q.byName[key]
	if !ok {
		q.next++
		id = q.next
		q.byName[key] = id
		q.byID[id] = &queue{}
	}
	q.byID[id].worker, q.byID[id].ctx = w, ctx
	return id
}

func (q *queues) dequeue(id uint32) (string, status) {
	k, ok := q.byID[id]
	switch {
	case !ok:
		return "", statusNotFound
	case len(k.items) == 0:
		return "", statusEmpty
	}
	item := k.items[0]
	k.items = k.items[1:]
	return item, statusOK
}

// enqueue appends and posts one wake-up to the consumer's thread; the wake-up
// is delivered when time moves next.
func (h *Host) enqueue(id uint32, item string) status {
	k, ok := h.queues.byID[id]
	if !ok {
		return statusNotFound
	}
	k.items = append(k.items, item)
	w, ctx := k.worker, k.ctx
	h.clock.after(0, w, func() { w.queueReady(ctx, id) })
	return statusOK
}

func (w *worker) queueReady(ctx, id uint32) {
	v := w.vm
	if v == nil || v.failed() {
		return
	}
	if c, ok := v.contexts[ctx]; ok {
		v.event(c, v.fn.onQueueReady, uint64(ctx), uint64(id))
	}
}
