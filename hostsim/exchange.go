package hostsim

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrStalled says that an exchange did not end within an hour of virtual time
// because nothing was left that could end it.
var ErrStalled = errors.New("hostsim: exchange stalled")

const maxExchange = time.Hour

// Request is what a client sends. Zero fields are a GET of "/" at "test".
type Request struct {
	Method, Path, Authority string
	Header                  Header // further headers
	Body                    []byte
	Chunks                  [][]byte // body pieces as they arrive, instead of Body
	ChunkSize               int      // pieces Body is cut into; 0 means 64 KiB
	Trailers                Header
	Worker                  int // which worker the connection landed on

	// EndWithData marks the end on the last piece of the body, as an HTTP/2
	// client may. Otherwise the end is an empty piece of its own.
	EndWithData bool
}

func (r Request) header() Header {
	h := Header{{":method", "GET"}, {":authority", "test"}, {":path", "/"}, {":scheme", "http"}}
	for i, value := range []string{r.Method, r.Authority, r.Path} {
		if value != "" {
			h[i][1] = value
		}
	}
	return append(h, r.Header...)
}

// Do runs a whole exchange: it sends the request piece by piece, lets the
// upstream answer when it has the whole of it, and moves virtual time as far
// as the exchange needs, with whatever else falls due on the way. The upstream
// is not asked if the proxy answers by itself. Errors are about driving the
// host; how the exchange went is in the Result.
func (h *Host) Do(r Request, up Upstream) (*Result, error) {
	s, err := h.Stream(r.Worker)
	if err != nil {
		return nil, err
	}
	if err := s.send(r); err != nil {
		return nil, err
	}
	err = s.Await(up)
	return s.Result(), err
}

func (s *Stream) send(r Request) error {
	parts := pieces(r.Body, r.Chunks, r.ChunkSize)
	if err := s.RequestHeaders(r.header(), len(parts) == 0 && len(r.Trailers) == 0); err != nil {
		return err
	}
	for i, p := range parts {
		s.waitForRoom()
		last := r.EndWithData && i == len(parts)-1 && len(r.Trailers) == 0
		if err := s.RequestBody(p, last); err != nil {
			return err
		}
	}
	switch {
	case len(r.Trailers) > 0:
		return s.RequestTrailers(r.Trailers)
	case len(parts) > 0 && !r.EndWithData:
		return s.RequestBody(nil, true)
	}
	return nil
}

// waitForRoom lets time pass while flow control keeps the client from sending.
func (s *Stream) waitForRoom() {
	h := s.host
	for !s.gone && s.request.throttle && s.request.held.len() > s.request.limit {
		next, ok := h.clock.next()
		if !ok || !h.clock.step(next) {
			return
		}
	}
}

// Await moves virtual time until the exchange is over, however it ends, and
// lets the upstream answer as soon as it has the whole request.
func (s *Stream) Await(up Upstream) error {
	end, served := s.host.clock.now+maxExchange, false
	for !s.gone {
		if !served && s.upstream != nil && s.upstream.Complete {
			served = true
			s.serve(up)
			continue
		}
		if !s.host.clock.step(end) {
			return fmt.Errorf("%w: nothing more is due within %v", ErrStalled, maxExchange)
		}
	}
	return nil
}

// serve books the upstream's answer as events of the stream's worker.
func (s *Stream) serve(up Upstream) {
	if up == nil {
		s.later(0, func() {
			s.localReply(localReply{code: 503, body: "no healthy upstream", details: "no_healthy_upstream", grpc: noGRPC})
		})
		return
	}
	r := up(s.upstream)
	if r.Reset == ResetBeforeHead {
		s.later(r.Delay, s.upstreamReset)
		return
	}
	parts, at := r.pieces(), r.Delay
	bare := len(parts) == 0 && len(r.Trailers) == 0 && r.Reset == NoReset
	s.later(at, func() {
		s.result.Details = "via_upstream"
		s.peer = cmp.Or(r.Address, DefaultPeer)
		s.startResponse(r.header().lowered(), bare)
	})
	for _, p := range parts {
		at += r.ChunkDelay
		s.later(at, func() { s.passResponse(&body{b: append([]byte(nil), p...)}, false) })
	}
	if !bare {
		s.later(at+r.ChunkDelay, func() { s.endResponse(r) })
	}
}

func (s *Stream) endResponse(r Reply) {
	switch {
	case r.Reset == ResetInBody:
		s.upstreamReset()
	case len(r.Trailers) > 0:
		s.passResponseTrailers(r.Trailers)
	default:
		s.passResponse(&body{}, true)
	}
}

// later runs an event of the upstream's, unless the stream is over by then.
func (s *Stream) later(d time.Duration, run func()) {
	s.host.clock.after(d, s.worker, func() {
		if !s.gone {
			s.rearmIdle()
			run()
		}
	})
}
