package hostsim

import "strconv"

// The native filters that may stand between the guest and the upstream, and
// the ends of both chains.

// bufferFilter is Envoy's buffer filter: it stops a request until its body is
// complete and then names its length.
type bufferFilter struct {
	stream *Stream
	active bool
	length int
}

func (b *bufferFilter) onHeaders(end bool) uint64 {
	if end {
		return headersContinue
	}
	b.active = true
	b.stream.request.limit = b.stream.host.opts.Buffer
	return headersStop
}

func (b *bufferFilter) onData(d *body, end bool) uint64 {
	b.length += d.len()
	if !end && b.active {
		return dataStopAndBuffer
	}
	b.nameLength()
	return dataContinue
}

func (b *bufferFilter) onTrailers() uint64 {
	b.nameLength()
	return trailersContinue
}

func (b *bufferFilter) nameLength() {
	if h := b.stream.request.headers; b.active && !h.Has("content-length") {
		h.add("content-length", strconv.Itoa(b.length))
	}
}

// mutationFilter is Envoy's header_mutation filter for requests.
type mutationFilter struct{ stream *Stream }

func (m mutationFilter) onHeaders(bool) uint64 {
	h := m.stream.request.headers
	for _, step := range m.stream.host.opts.Mutations {
		value := m.stream.filterState[step.FilterState]
		switch {
		case step.Remove != "":
			h.remove(step.Remove)
		case value == "":
		case step.Append != "":
			h.add(step.Append, value)
		case h.Has(step.Overwrite):
			h.set(step.Overwrite, value)
		}
	}
	return headersContinue
}

func (mutationFilter) onData(*body, bool) uint64 { return dataContinue }
func (mutationFilter) onTrailers() uint64        { return trailersContinue }

// upstreamEnd is the router: what reaches it has been sent.
type upstreamEnd struct{ stream *Stream }

func (u upstreamEnd) onHeaders(end bool) uint64 {
	s := u.stream
	s.upstream = &UpstreamRequest{Header: s.request.headers.Clone(), Worker: s.worker.index, At: s.host.Now()}
	u.ended(end)
	return headersContinue
}

func (u upstreamEnd) onData(d *body, end bool) uint64 {
	u.stream.upstream.Body = append(u.stream.upstream.Body, d.take()...)
	u.ended(end)
	return dataContinue
}

// onTrailers drops them if the length is named: HTTP/1 has no place for them
// then.
func (u upstreamEnd) onTrailers() uint64 {
	if s := u.stream; !s.upstream.Header.Has("content-length") {
		s.upstream.Trailers = s.request.trailers.Clone()
	}
	u.ended(true)
	return trailersContinue
}

// ended starts the route's time-out once the whole request has left. An
// upstream that was promised another length never has the whole of it.
func (u upstreamEnd) ended(end bool) {
	s := u.stream
	if !end || s.routeTimer != nil || s.upstream.Complete {
		return
	}
	n, err := strconv.Atoi(s.upstream.Header.Get("content-length"))
	s.upstream.Complete = err != nil || n == len(s.upstream.Body)
	if d := s.host.opts.RouteTimeout; d > 0 {
		s.routeTimer = s.host.clock.after(d, s.worker, s.routeTimeout)
	}
}

// clientEnd is what the client has received.
type clientEnd struct{ stream *Stream }

func (c clientEnd) onHeaders(end bool) uint64 {
	s := c.stream
	s.headersSent = true
	s.result.Header = s.response.headers.Clone()
	s.result.Status, _ = strconv.Atoi(s.result.Header.Get(":status"))
	c.ended(end)
	return headersContinue
}

func (c clientEnd) onData(d *body, end bool) uint64 {
	c.stream.result.Body = append(c.stream.result.Body, d.take()...)
	c.ended(end)
	return dataContinue
}

func (c clientEnd) onTrailers() uint64 {
	c.stream.result.Trailers = c.stream.response.trailers.Clone()
	c.ended(true)
	return trailersContinue
}

func (c clientEnd) ended(end bool) {
	if end {
		c.stream.answered = true
		c.stream.finish()
	}
}
