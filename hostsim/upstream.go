package hostsim

import (
	"slices"
	"strconv"
	"time"
)

// Upstream is a scripted server behind the proxy: it is given a whole request
// and says how it answers. It may look at the Host but must not drive it. A
// nil Upstream is a cluster without a healthy host.
type Upstream func(r *UpstreamRequest) Reply

// Reply is what an upstream answers, and when, in virtual time.
type Reply struct {
	Address  string // of the server that answers; "" means DefaultPeer
	Status   int    // 0 means 200
	Header   Header // without :status
	Body     []byte
	Chunks   [][]byte // body pieces as they arrive, instead of Body
	Trailers Header

	ChunkSize  int           // pieces Body is cut into; 0 means 64 KiB
	Delay      time.Duration // before the head
	ChunkDelay time.Duration // before each piece of the body, and the end
	Reset      Reset         // where the connection breaks, if it does
}

// Reset is a point at which an upstream's connection breaks.
type Reset int

const (
	// NoReset is a connection that holds.
	NoReset Reset = iota
	// ResetBeforeHead breaks in place of an answer.
	ResetBeforeHead
	// ResetInBody breaks when the head and the given body have been sent.
	ResetInBody
)

// Respond is an upstream that answers every request alike, at once.
func Respond(status int, body string) Upstream {
	return func(*UpstreamRequest) Reply { return Reply{Status: status, Body: []byte(body)} }
}

const defaultChunk = 64 << 10

func (r Reply) header() Header {
	code := r.Status
	if code == 0 {
		code = 200
	}
	return append(Header{{":status", strconv.Itoa(code)}}, r.Header...)
}

func (r Reply) pieces() [][]byte { return pieces(r.Body, r.Chunks, r.ChunkSize) }

// duration is how long the whole reply takes.
func (r Reply) duration() time.Duration {
	return r.Delay + r.ChunkDelay*time.Duration(len(r.pieces())+1)
}

// pieces cuts a body as the wire would.
func pieces(whole []byte, chunks [][]byte, size int) [][]byte {
	if chunks != nil {
		return chunks
	}
	if size <= 0 {
		size = defaultChunk
	}
	return slices.Collect(slices.Chunk(whole, size))
}
