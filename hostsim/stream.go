package hostsim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Errors of driving a host wrongly. They concern the test, not the guest.
var (
	// ErrBusy says that the worker is in the middle of a callback: a script run
	// by [Host.OnCall] may drive the other workers only.
	ErrBusy = errors.New("hostsim: worker is in the middle of a callback")
	// ErrOrder says that an event cannot come at this point of a stream.
	ErrOrder = errors.New("hostsim: event out of order")
	// ErrClosed says that the host has been closed.
	ErrClosed = errors.New("hostsim: host is closed")
)

// Stream is one HTTP exchange on one worker, driven step by step: what the
// client sends (Request...), what the upstream sends (Response...), and the
// ways it can end early. The methods return errors of driving it wrongly;
// what the guest did shows in Paused, Upstream and Result.
//
// An exchange that only needs a request and a scripted upstream is driven by
// [Host.Do].
type Stream struct {
	host   *Host
	worker *worker
	guest  *guest

	request, response *flow
	filterState       map[string]string
	upstream          *UpstreamRequest
	prepared          *localReply
	result            Result

	peer        string // address of the upstream that answers
	code        int    // status of the response, once there is one
	received    int    // bytes of the request's body so far
	headersSent bool   // the client has the response's head
	answered    bool   // the client has the whole response
	gone        bool   // log, done and delete have been called
	routeTimer  *event
	idleTimer   *event
	started     time.Duration
	began       bool
	sharedGets  int
	sharedSets  int
}

// UpstreamRequest is a request as it left the proxy.
type UpstreamRequest struct {
	Cluster  string // callouts only
	Header   Header
	Body     []byte
	Trailers Header
	Complete bool          // everything has been sent
	Worker   int           // whose request it is
	At       time.Duration // virtual time of the head, since the start
}

// Result is an exchange as the client and the log see it.
type Result struct {
	Status   int // 0 if the client never got a head
	Header   Header
	Body     []byte
	Trailers Header
	Complete bool   // the client got everything; false after an abort
	Details  string // response code details: "via_upstream", or why not

	Upstream    *UpstreamRequest // nil if nothing was sent there
	FilterState map[string]string
	ContextID   uint32 // of the guest's stream context; 0 without one
	Duration    time.Duration

	SharedGets, SharedSets int // calls on shared data made for this stream
}

// Stream opens an exchange on a worker. The guest hears of it with the first
// event.
func (h *Host) Stream(worker int) (*Stream, error) {
	w, err := h.workerAt(worker)
	if err != nil {
		return nil, err
	}
	s := &Stream{host: h, worker: w, filterState: map[string]string{}, started: h.clock.now}
	s.request = &flow{stream: s, limit: h.opts.BufferLimit, tooLarge: s.requestTooLarge}
	s.response = &flow{stream: s, limit: h.opts.BufferLimit, tooLarge: s.responseTooLarge}
	return s, nil
}

// begin makes the filter chain, when the request's head is there.
func (s *Stream) begin() {
	s.began = true
	var req, resp []filter
	if s.guest = s.worker.newGuest(s); s.guest != nil {
		req = append(req, requestSide{s.guest})
		resp = append(resp, responseSide{s.guest})
	}
	if s.host.opts.Buffer > 0 {
		req = append(req, &bufferFilter{stream: s})
	}
	if len(s.host.opts.Mutations) > 0 {
		req = append(req, mutationFilter{s})
	}
	s.request.fill(append(req, upstreamEnd{s}))
	s.response.fill(append(resp, clientEnd{s}))
	s.host.streams = append(s.host.streams, s)
}

func (f *flow) fill(filters []filter) {
	for _, x := range filters {
		f.slots = append(f.slots, &slot{filter: x})
	}
}

func (f *flow) addTrailers() *Header {
	f.trailers = &Header{}
	return f.trailers
}

// step guards an event: the worker must be free and the event possible.
func (s *Stream) step(what string, possible bool, run func()) error {
	switch {
	case s.host.closed:
		return fmt.Errorf("%s: %w", what, ErrClosed)
	case s.worker.busy:
		return fmt.Errorf("%s on worker %d: %w", what, s.worker.index, ErrBusy)
	case s.gone:
		return nil // as in the wild: the peer does not know yet
	case !possible:
		return fmt.Errorf("%s: %w", what, ErrOrder)
	}
	s.worker.busy = true
	defer func() { s.worker.busy = false }()
	s.rearmIdle()
	run()
	return nil
}

// RequestHeaders brings the request's head; end says that no body follows.
func (s *Stream) RequestHeaders(h Header, end bool) error {
	return s.step("request headers", !s.began, func() {
		s.request.headers, s.request.sawEnd = h.lowered(), end
		s.host.identify(s.request.headers)
		s.begin()
		s.request.passHeaders(0, end)
	})
}

// RequestBody brings a piece of the request's body, empty or not.
func (s *Stream) RequestBody(b []byte, end bool) error {
	return s.step("request body", s.began && !s.request.sawEnd, func() {
		s.request.sawEnd = end
		s.received += len(b)
		s.request.passData(0, &body{b: append([]byte(nil), b...)}, end)
	})
}

// RequestTrailers brings the request's trailers, which end it.
func (s *Stream) RequestTrailers(h Header) error {
	return s.step("request trailers", s.began && !s.request.sawEnd, func() {
		s.request.sawEnd, s.request.trailers = true, h.lowered()
		s.request.passTrailers(0)
	})
}

// AnsweredBy sets the address of the upstream that answers, for the property
// upstream.address; DefaultPeer if it is not called.
func (s *Stream) AnsweredBy(address string) { s.peer = address }

// DefaultPeer is the address of an upstream that names none.
const DefaultPeer = "127.0.0.1:8000"

// ResponseHeaders brings the response's head from the upstream, which must
// have seen the request's.
func (s *Stream) ResponseHeaders(h Header, end bool) error {
	return s.step("response headers", s.upstream != nil && s.response.headers == nil, func() {
		s.result.Details = "via_upstream"
		setDefault(&s.peer, DefaultPeer)
		s.startResponse(h.lowered(), end)
	})
}

// ResponseBody brings a piece of the response's body.
func (s *Stream) ResponseBody(b []byte, end bool) error {
	return s.step("response body", s.response.headers != nil && !s.response.sawEnd, func() {
		s.passResponse(&body{b: append([]byte(nil), b...)}, end)
	})
}

// ResponseTrailers brings the response's trailers, which end it.
func (s *Stream) ResponseTrailers(h Header) error {
	return s.step("response trailers", s.response.headers != nil && !s.response.sawEnd, func() {
		s.passResponseTrailers(h)
	})
}

// Abort is the client going away.
func (s *Stream) Abort() error {
	return s.step("abort", true, func() { s.reset("downstream_remote_disconnect") })
}

// UpstreamReset is the upstream's connection breaking: before the response's
// head the client gets 503, after it the stream is cut.
func (s *Stream) UpstreamReset() error {
	return s.step("upstream reset", s.upstream != nil, s.upstreamReset)
}

// Close ends the stream if it has not ended, like Abort.
func (s *Stream) Close() error {
	if s.gone || !s.began {
		return nil
	}
	return s.Abort()
}

// Paused says whether the guest (or the buffer behind it) holds the request.
func (s *Stream) Paused() bool { return !s.gone && s.request.waiting() }

// ResponsePaused says whether the guest holds the response.
func (s *Stream) ResponsePaused() bool { return !s.gone && s.response.waiting() }

// Done says whether the exchange is over, in whatever way.
func (s *Stream) Done() bool { return s.gone }

// Upstream is the request as the upstream has it so far, or nil.
func (s *Stream) Upstream() *UpstreamRequest { return s.upstream }

// Result is the exchange so far as the client and the log see it.
func (s *Stream) Result() *Result {
	r := s.result
	r.Upstream, r.FilterState, r.Complete = s.upstream, maps.Clone(s.filterState), s.answered
	r.SharedGets, r.SharedSets = s.sharedGets, s.sharedSets
	if s.guest != nil && s.guest.ctx != nil {
		r.ContextID = s.guest.ctx.id
	}
	if !s.gone {
		r.Duration = s.host.clock.now - s.started
	}
	return &r
}

// identify adds what Envoy's connection manager adds to every request.
func (h *Host) identify(head *Header) {
	if !head.Has("x-forwarded-proto") {
		head.add("x-forwarded-proto", "http")
	}
	if !head.Has("x-request-id") {
		h.requests++
		head.add("x-request-id", fmt.Sprintf("00000000-0000-4000-8000-%012d", h.requests))
	}
}

func (s *Stream) startResponse(h *Header, end bool) {
	s.response.headers, s.response.sawEnd = h, end
	s.code, _ = strconv.Atoi(h.Get(":status"))
	s.response.passHeaders(0, end)
}

func (s *Stream) passResponse(d *body, end bool) {
	s.response.sawEnd = end
	s.response.passData(0, d, end)
}

func (s *Stream) passResponseTrailers(h Header) {
	s.response.sawEnd, s.response.trailers = true, h.lowered()
	s.response.passTrailers(0)
}

// reset ends the stream without (the rest of) an answer.
func (s *Stream) reset(details string) {
	if s.gone {
		return
	}
	if !s.answered {
		s.result.Details = details
	}
	s.finish()
}

// finish tells the guest that the stream is over: the log first, as Envoy does.
func (s *Stream) finish() {
	if s.gone {
		return
	}
	s.gone = true
	s.result.Duration = s.host.clock.now - s.started
	s.routeTimer.stop()
	s.idleTimer.stop()
	s.host.streams = slices.DeleteFunc(s.host.streams, func(x *Stream) bool { return x == s })
	if s.guest != nil {
		s.guest.log()
		s.guest.destroy()
	}
}
