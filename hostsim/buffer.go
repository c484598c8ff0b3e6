package hostsim

// body is a run of body bytes the chain passes on. Its identity matters: a
// filter that stops on bytes that are already the held-back ones must not
// hold them back twice.
type body struct{ b []byte }

func (d *body) len() int {
	if d == nil {
		return 0
	}
	return len(d.b)
}

func (d *body) bytes() []byte {
	if d == nil {
		return nil
	}
	return d.b
}

// take empties d and returns what it held.
func (d *body) take() []byte {
	b := d.b
	d.b = nil
	return b
}

// edit is proxy_set_buffer_bytes on a live body: from 0 it replaces the first
// size bytes, from the end or beyond it appends; Envoy does nothing else.
func (d *body) edit(start, size uint32, value []byte) status {
	switch {
	case start == 0:
		n := min(uint64(size), uint64(len(d.b)))
		d.b = append(append(make([]byte, 0, len(value)+len(d.b)), value...), d.b[n:]...)
	case uint64(start) >= uint64(len(d.b)):
		d.b = append(d.b[:len(d.b):len(d.b)], value...)
	default:
		return statusBadArgument
	}
	return statusOK
}
