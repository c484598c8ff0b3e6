package hostsim

import (
	"strconv"
	"strings"
)

// localReply is an answer made by the proxy: for the guest, for a dead VM, or
// for itself.
type localReply struct {
	code    int
	body    string
	headers Header
	details string
	grpc    uint32
}

// noGRPC is "no gRPC status"; the ABI says -1.
const noGRPC = ^uint32(0)

// header builds the reply's head: content headers only if there is a body,
// and the plain text type only if nobody named another.
func (r localReply) header() *Header {
	h := &Header{{":status", strconv.Itoa(r.code)}}
	for _, f := range r.headers {
		h.add(f[0], f[1])
	}
	if r.body != "" {
		h.set("content-length", strconv.Itoa(len(r.body)))
		if !h.Has("content-type") {
			h.add("content-type", "text/plain")
		}
	}
	return h
}

// localReply answers the stream in place of the upstream. Asked for inside a
// filter's callback, it is sent when that has returned. A response that has
// begun but not left is replaced without the filters seeing it; one that has
// left can only be cut.
func (s *Stream) localReply(r localReply) {
	if s.gone || s.answered || s.prepared != nil {
		return // the first reply wins
	}
	s.result.Details = strings.Join(strings.Fields(r.details), "_")
	switch {
	case s.request.calls > 0:
		s.request.aborted = true
	case s.response.calls > 0:
		s.response.aborted = true
	}
	switch {
	case s.response.headers == nil && s.request.calls > 0:
		s.prepared = &r
	case s.response.headers == nil:
		s.sendReply(r)
	case !s.headersSent:
		s.sendDirect(r)
	default:
		s.reset(s.result.Details)
	}
}

func (s *Stream) sendPrepared() {
	if r := s.prepared; r != nil {
		s.prepared = nil
		s.sendReply(*r)
	}
}

// sendReply passes the reply through the response's filters: the guest sees
// its own replies too.
func (s *Stream) sendReply(r localReply) {
	s.startResponse(r.header(), r.body == "")
	if r.body != "" && !s.gone {
		s.passResponse(&body{b: []byte(r.body)}, true)
	}
}

// sendDirect gives the reply to the client behind the filters' backs.
func (s *Stream) sendDirect(r localReply) {
	s.response.headers = r.header()
	client := clientEnd{s}
	client.onHeaders(r.body == "")
	if r.body != "" {
		client.onData(&body{b: []byte(r.body)}, true)
	}
}
