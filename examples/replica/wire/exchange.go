package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request under way, with what the journal will say of it.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	entry Entry
	quiet bool // not for the journal

	anthropic bool // errors are told as Anthropic's clients know them
}

// finish writes the journal. It runs also when a fault cut the connection by a panic.
func (x *exchange) finish(start time.Time) {
	if x.entry.Outcome == "" {
		x.entry.Outcome = OutcomeOK
		if x.entry.Status >= 400 {
			x.entry.Outcome = OutcomeRefused
		}
	}
	x.s.http.count(x.r.Method, x.route(), x.entry.Status)
	x.entry.Duration = time.Since(start).Seconds() * x.s.cfg.Runner.Speed()
	if !x.quiet {
		x.s.cfg.Journal.add(x.entry)
	}
}

// route is the path as a metric label: unknown ones are "none".
func (x *exchange) route() string {
	if x.s.routes[x.r.URL.Path] == nil {
		return "none"
	}
	return x.r.URL.Path
}

// read takes in the body. On failure the request has been answered, if it could be.
func (x *exchange) read() bool {
	limit := int64(x.s.cfg.MaxBody)
	if x.r.ContentLength > limit {
		x.json(http.StatusRequestEntityTooLarge, []byte(`{"detail":"Request body too large"}`))
		return false
	}
	size := max(x.r.ContentLength, 512)
	buf := make([]byte, 0, size+1)
	body, err := readAll(http.MaxBytesReader(x.w, x.r.Body, limit), buf)
	x.body = body
	x.entry.body(body)
	var tooBig *http.MaxBytesError
	switch {
	case err == nil:
		return true
	case errors.As(err, &tooBig):
		x.json(http.StatusRequestEntityTooLarge, []byte(`{"detail":"Request body too large"}`))
	default:
		x.entry.Outcome = OutcomeCut
	}
	return false
}

// readAll is io.ReadAll into a buffer that is large enough if the length was announced.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// json sends a reply in one piece.
func (x *exchange) json(status int, body []byte) {
	x.send(status, "application/json", body)
}

// refuse sends an error. What is wrong with a body is told in OpenAI's shape on
// all paths, since vLLM looks at bodies before it looks at the path's API.
func (x *exchange) refuse(e *apiError) {
	if x.anthropic && e.kind != badBody {
		x.json(e.status, e.appendAnthropic(nil, e.kind))
		return
	}
	x.json(e.status, e.append(nil, true))
}

// send writes a reply; an empty content type leaves the header out, as vLLM does
// for plain text.
func (x *exchange) send(status int, contentType string, body []byte) {
	h := x.w.Header()
	h["Content-Type"] = nil
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.entry.Status = status
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that is gone shows in the context
}

// wait blocks until the client leaves or the server closes.
func (x *exchange) wait() {
	select {
	case <-x.r.Context().Done():
	case <-x.s.closing.Done():
	}
}

// reset cuts the connection so that the client sees a reset, and ends the
// exchange by a panic that net/http knows and does not log.
func (x *exchange) reset() {
	Sever(x.conn())
	panic(http.ErrAbortHandler)
}

// conn is the connection of the request, nil if the server does not keep it.
func (x *exchange) conn() net.Conn {
	c, _ := x.r.Context().Value(connKey{}).(net.Conn)
	return c
}

// Sever makes the closing of a TCP connection a reset.
func Sever(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

type connKey struct{}

// KeepConn is for http.Server.ConnContext: faults need the connection.
func KeepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
