package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Entry is one request as the replica saw it. Times are in seconds of the
// engine: at speed 10 they are ten times those of the clock.
type Entry struct {
	Time             time.Time         `json:"time"`
	Method           string            `json:"method"`
	Path             string            `json:"path"`
	RequestID        string            `json:"x_request_id"`
	BodySHA256       string            `json:"body_sha256"` // hex; of the bytes that arrived
	BodyBytes        int               `json:"body_bytes"`
	ContentLength    *int64            `json:"content_length"`    // null: the request had none
	TransferEncoding string            `json:"transfer_encoding"` // "" or "chunked"
	Headers          map[string]string `json:"headers"`           // those a router may have set; several values joined by ", "
	Model            string            `json:"model"`
	Stream           bool              `json:"stream"`
	PromptTokens     int               `json:"prompt_tokens"`
	CachedTokens     int               `json:"cached_tokens"`
	CompletionTokens int               `json:"completion_tokens"`
	TTFT             float64           `json:"ttft_s"`
	Duration         float64           `json:"duration_s"`
	Status           int               `json:"status"` // 0: no head was sent
	Outcome          string            `json:"outcome"`
}

// The outcomes of a request.
const (
	OutcomeOK        = "ok"
	OutcomeRefused   = "refused"   // by the replica, with an error
	OutcomeCancelled = "cancelled" // the client left
	OutcomeCut       = "cut"       // the body ended before its end
	OutcomeFault     = "fault"     // by a fault that was switched on
)

// watched are the header names, in lower case, that the journal keeps; those
// that end with "-" are beginnings of names.
var watched = []string{"x-warmlane-", "x-gateway-destination-endpoint", "endpoint-load-metrics-format", "accept-encoding", "x-session-id"}

// Journal keeps the last requests and, if there is one, writes each to a log as
// a line of JSON when it ends. It is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex
	log  io.Writer
	last []Entry // ring once full
	next int
	most int
}

// NewJournal keeps the last most requests (0: 10,000). log may be nil.
func NewJournal(log io.Writer, most int) *Journal {
	if most <= 0 {
		most = 10000
	}
	return &Journal{log: log, most: most}
}

// add keeps an entry. The log is best effort: a full disk does not stop the engine.
func (j *Journal) add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.last) < j.most {
		j.last = append(j.last, e)
	} else {
		j.last[j.next] = e
		j.next = (j.next + 1) % j.most
	}
	if j.log == nil {
		return
	}
	if line, err := json.Marshal(e); err == nil {
		_, _ = j.log.Write(append(line, '\n'))
	}
}

// Last returns the n requests that ended last (0: all that are kept), oldest first.
func (j *Journal) Last(n int) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Entry, 0, len(j.last))
	out = append(append(out, j.last[j.next:]...), j.last[:j.next]...)
	if n > 0 && n < len(out) {
		out = out[len(out)-n:]
	}
	return out
}

// Clear forgets the kept requests; the log stays as it is.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last, j.next = nil, 0
}

// newEntry notes what is known when a request's head has arrived.
func newEntry(r *http.Request, now time.Time) Entry {
	e := Entry{Time: now, Method: r.Method, Path: r.URL.Path, RequestID: r.Header.Get("X-Request-Id"),
		TransferEncoding: strings.Join(r.TransferEncoding, ", "), Headers: map[string]string{}}
	if r.ContentLength >= 0 && r.Header.Get("Content-Length") != "" {
		n := r.ContentLength
		e.ContentLength = &n
	}
	for name, values := range r.Header {
		if isWatched(strings.ToLower(name)) {
			e.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return e
}

func isWatched(name string) bool {
	for _, w := range watched {
		if name == w || w[len(w)-1] == '-' && strings.HasPrefix(name, w) {
			return true
		}
	}
	return false
}

// body notes the bytes that arrived.
func (e *Entry) body(b []byte) {
	sum := sha256.Sum256(b)
	e.BodySHA256, e.BodyBytes = hex.EncodeToString(sum[:]), len(b)
}
