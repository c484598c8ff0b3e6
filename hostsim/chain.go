package hostsim

// flow is one direction of a stream: an ordered chain of filters that headers,
// body and trailers pass, each of which may stop it. The rules are those of
// Envoy's filter manager. Bytes held back lie in one buffer for the whole
// chain, whichever filter holds them; so a guest that pauses after it let
// bytes pass to a buffering filter sees those bytes again.
type flow struct {
	stream   *Stream
	slots    []*slot
	headers  *Header // what passes; filters change it in place
	trailers *Header
	held     *body // nil if nothing was ever held back
	limit    int
	throttle bool // held back under flow control: no limit, the peer waits
	sawEnd   bool // the peer has sent everything
	aborted  bool // a local reply was asked for in a filter's callback
	calls    int  // filter callbacks running

	tooLarge func() // what happens when more than limit bytes are held
}

// filter is one direction of one filter. The results are the ABI's numbers.
type filter interface {
	onHeaders(end bool) uint64
	onData(d *body, end bool) uint64
	onTrailers() uint64
}

// guestSlot is the place of the guest in either direction: it sees a request
// first and a response last but for the client.
const guestSlot = 0

type slot struct {
	filter    filter
	state     iteration
	continued bool // headers have gone on from here
	ended     bool // end of stream was told to this filter
}

type iteration int

const (
	iterating  iteration = iota
	stoppedOne           // this filter is called further, later ones wait
	stoppedAll           // this filter is not called either
)

// passHeaders offers the headers to the filters from index i on.
func (f *flow) passHeaders(i int, end bool) {
	for ; i < len(f.slots) && f.open(); i++ {
		s := f.slots[i]
		s.ended = end
		result := f.call(func() uint64 { return s.filter.onHeaders(end) })
		if f.aborted {
			return
		}
		if !s.afterHeaders(result, f) {
			return
		}
	}
}

// call runs a filter's callback. A local reply asked for inside is sent after
// it, and ends the iteration.
func (f *flow) call(callback func() uint64) uint64 {
	f.calls++
	result := callback()
	f.calls--
	if f.aborted {
		f.stream.sendPrepared()
	}
	return result
}

// afterHeaders books a filter's answer and says whether to go on.
func (s *slot) afterHeaders(result uint64, f *flow) bool {
	switch result {
	case headersStop:
		s.state = stoppedOne
	case headersStopAllBuf, headersStopAllWater:
		s.state = stoppedAll
		f.throttle = result == headersStopAllWater
	default:
		s.continued = true
		return true
	}
	return false
}

// passData offers bytes to the filters from index i on.
func (f *flow) passData(i int, d *body, end bool) {
	hadTrailers, added := f.trailers != nil, -1
	for ; i < len(f.slots) && f.open(); i++ {
		s := f.slots[i]
		if s.state == stoppedAll {
			f.hold(d)
			return
		}
		if s.ended {
			return
		}
		s.ended = end && f.trailers == nil
		ended := s.ended
		result := f.call(func() uint64 { return s.filter.onData(d, ended) })
		if f.aborted {
			return
		}
		if !hadTrailers && f.trailers != nil && added < 0 {
			end, added = false, i
		}
		if !f.afterData(i, result, d) {
			break
		}
	}
	if added >= 0 {
		f.passTrailers(added + 1)
	}
}

func (f *flow) afterData(i int, result uint64, d *body) bool {
	s := f.slots[i]
	if result == dataContinue {
		if s.state != stoppedOne {
			return true
		}
		f.hold(d)
		f.resumeAt(i)
		return false
	}
	s.state = stoppedOne
	switch {
	case result == dataStopAndBuffer || result == dataStopAndWater:
		f.throttle = result == dataStopAndWater
		f.hold(d)
	case f.sawEnd && f.trailers == nil && f.held == nil:
		f.held = &body{} // so that a later resume still brings the end
	}
	return false
}

// hold keeps d for later, unless d is what is held already.
func (f *flow) hold(d *body) {
	if d == f.held {
		return
	}
	if f.held == nil {
		f.held = &body{}
	}
	f.held.b = append(f.held.b, d.take()...)
	if len(f.held.b) > f.limit && !f.throttle {
		f.tooLarge()
	}
}

// passTrailers offers the trailers to the filters from index i on.
func (f *flow) passTrailers(i int) {
	for ; i < len(f.slots) && f.open(); i++ {
		s := f.slots[i]
		if s.state == stoppedAll {
			return
		}
		result := f.call(s.filter.onTrailers)
		s.ended = true
		switch {
		case f.aborted:
			return
		case result != trailersContinue:
			if s.state == iterating {
				s.state = stoppedOne
			}
			return
		case s.state == stoppedOne:
			f.resumeAt(i)
			return
		}
	}
}

// resumeAt lets the chain go on from the filter at i, which had stopped it.
func (f *flow) resumeAt(i int) {
	if !f.open() {
		return
	}
	s, from := f.slots[i], i+1
	if s.state == stoppedAll {
		from = i // its own body callbacks are still to come
	}
	s.state = iterating
	if !s.continued {
		s.continued = true
		f.passHeaders(i+1, f.sawEnd && f.held == nil && f.trailers == nil)
	}
	hadTrailers := f.trailers != nil
	if f.held != nil {
		f.passData(from, f.held, f.sawEnd && !hadTrailers)
	}
	if hadTrailers {
		f.passTrailers(from)
	}
}

// open says whether filters of this direction may still be called.
func (f *flow) open() bool {
	return !f.stream.gone && !f.aborted && (f != f.stream.request || !f.stream.answered)
}

// waiting says whether a filter holds this direction back.
func (f *flow) waiting() bool {
	for _, s := range f.slots {
		if s.state != iterating {
			return true
		}
	}
	return false
}
