package publish

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/warmlane/warmlane/filter/state"
)

const (
	// DefaultHold is how long a poll is held when there is nothing new.
	DefaultHold = 25 * time.Second

	maxPoolsAsked = state.MaxPools
	writeTimeout  = 10 * time.Second // for a page, once there is one
)

// Handler serves /v1/state and /v1/pools.
type Handler struct {
	Hub   *Hub
	Hold  time.Duration // of a poll without news
	Token string        // that askers must bear; "" = none
	Stats *Stats
	KV    KVFunc            // what is known of a replica's KV index; nil = nothing
	Doubt func(slot uint16) // is told each doubt of a filter, by many goroutines; nil = nobody is

	Now func() time.Time // for the age of loads
}

// ServeHTTP answers the two paths, to GET and HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed", "only GET is served here")
		return
	}
	if !Allowed(w, r, h.Token) {
		return
	}
	switch r.URL.Path {
	case state.Path:
		h.serveState(w, r)
	case "/v1/pools":
		h.servePools(w)
	default:
		writeError(w, http.StatusNotFound, "not_found", "no such page")
	}
}

// Allowed reports whether an asker bears the token, "" standing for none, and
// answers 401 if not. It takes a time that does not depend on where tokens
// differ.
func Allowed(w http.ResponseWriter, r *http.Request, token string) bool {
	scheme, borne, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || strings.EqualFold(scheme, "bearer") && subtle.ConstantTimeCompare([]byte(borne), []byte(token)) == 1 {
		return true
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	writeError(w, http.StatusUnauthorized, "unauthorized", "a valid bearer token is needed")
	return false
}

func (h *Handler) serveState(w http.ResponseWriter, r *http.Request) {
	q, err := parseRequest(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, "bad_query", err.Error())
		return
	}
	h.doubts(&q)
	h.Stats.waiters.Inc()
	page, how := h.Hub.poll(r.Context(), &q, choose(q.Pools), h.Hold)
	h.Stats.waiters.Dec()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines has none to miss
	switch how {
	case replyPage:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		n, _ := w.Write(page) // an asker that has left asks again
		h.Stats.bytes.Add(float64(n))
	case replyNothing:
		w.WriteHeader(http.StatusNoContent)
	case replyNone:
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "no_state", "no state is known yet")
	}
}

// doubts passes on what the asker doubts, if it means the slots of this hub.
func (h *Handler) doubts(q *state.Request) {
	if h.Doubt == nil || q.Epoch != h.Hub.epoch {
		return
	}
	for _, slot := range q.Doubts {
		h.Doubt(slot)
	}
}

// parseRequest reads what [state.Request.Path] wrote. Parameters that it does
// not know are ignored: a later filter may send more.
func parseRequest(rawQuery string) (q state.Request, err error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return q, fmt.Errorf("query: %w", err)
	}
	var page uint64
	for _, p := range []struct {
		name string
		bits int
		into *uint64
	}{{"epoch", 64, &q.Epoch}, {"gen", 64, &q.Gen}, {"to", 64, &q.To}, {"page", 32, &page}} {
		text := values.Get(p.name)
		if text == "" {
			continue
		}
		if *p.into, err = strconv.ParseUint(text, 10, p.bits); err != nil {
			return q, fmt.Errorf("%s: want a number of %d bits, got %.50q", p.name, p.bits, text)
		}
	}
	q.Page = uint32(page)
	q.Pools = values["pool"]
	if len(q.Pools) > maxPoolsAsked {
		return q, fmt.Errorf("pool: at most %d, got %d", maxPoolsAsked, len(q.Pools))
	}
	q.Doubts, err = parseDoubts(values["doubt"])
	return q, err
}

func parseDoubts(texts []string) ([]uint16, error) {
	if len(texts) > state.MaxDoubts {
		return nil, fmt.Errorf("doubt: at most %d, got %d", state.MaxDoubts, len(texts))
	}
	var slots []uint16
	for _, text := range texts {
		slot, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("doubt: want a number of 16 bits, got %.50q", text)
		}
		slots = append(slots, uint16(slot))
	}
	return slots, nil
}

// writeError answers in the form that clients of OpenAI's API know.
func writeError(w http.ResponseWriter, status int, code, message string) {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{
		"message": message, "type": kind, "param": nil, "code": code,
	}})
	if err != nil {
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // nobody is left to be told
}
