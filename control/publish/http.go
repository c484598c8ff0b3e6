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
	if !h.allowed(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeError(w, http.StatusUnauthorized, "unauthorized", "a valid bearer token is needed")
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

// allowed checks the token in a time that does not depend on where it differs.
func (h *Handler) allowed(r *http.Request) bool {
	if h.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") &&
		subtle.ConstantTimeCompare([]byte(token), []byte(h.Token)) == 1
}

func (h *Handler) serveState(w http.ResponseWriter, r *http.Request) {
	q, err := parseRequest(r.URL.RawQuery)
	if err != nil {
		writeError(w, http.StatusBadRequest, "bad_query", err.Error())
		return
	}
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
	return q, nil
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
