package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Outcome is how a scrape of /metrics went: the label of a counter.
type Outcome string

// OK is the only outcome that counts as a sign of life.
const (
	OK        Outcome = "ok"
	Timeout   Outcome = "timeout"
	Refused   Outcome = "refused"   // no connection
	Broken    Outcome = "broken"    // connection lost, or no HTTP
	Status    Outcome = "status"    // another status than 200
	TooLarge  Outcome = "too_large" // body above the cap
	Malformed Outcome = "malformed" // not a metrics text
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{OK, Timeout, Refused, Broken, Status, TooLarge, Malformed}

// errTooLarge and statusError are what get adds to net/http's errors.
var errTooLarge = errors.New("body too large")

type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// client asks engines. One serves all of them.
type client struct {
	http *http.Client
	max  int64     // bytes of a body
	bufs sync.Pool // of *bytes.Buffer
}

// newClient returns a client that keeps one connection to each engine, asks
// for no compression, which would cost the engine time, and follows no
// redirects: an engine has no business sending us elsewhere.
func newClient(maxBytes int64) *client {
	return &client{
		max: maxBytes,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
				MaxIdleConnsPerHost:    1,
				MaxConnsPerHost:        2,
				IdleConnTimeout:        time.Minute,
				DisableCompression:     true,
				MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		bufs: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// get fetches a page and gives its body to use, which must not keep it. Time
// and size are bounded, for the head and the body together.
func (c *client) get(ctx context.Context, timeout time.Duration, url string, use func(body []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	buf := c.bufs.Get().(*bytes.Buffer)
	defer c.bufs.Put(buf)
	buf.Reset()
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, c.max+1))
	if err != nil {
		return err
	}
	if n > c.max {
		return errTooLarge
	}
	return use(buf.Bytes())
}

// metrics scrapes one engine.
func (c *client) metrics(ctx context.Context, timeout time.Duration, base string) (s Sample, err error) {
	err = c.get(ctx, timeout, base+"/metrics", func(body []byte) (err error) {
		s, err = ParseExposition(body)
		return err
	})
	return s, err
}

// outcome sorts an error of metrics.
func outcome(err error) Outcome {
	var status statusError
	var op *net.OpError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.As(err, &status):
		return Status
	case errors.Is(err, errTooLarge):
		return TooLarge
	case errors.Is(err, ErrNotMetrics):
		return Malformed
	case errors.As(err, &op) && op.Op == "dial":
		return Refused
	default:
		return Broken
	}
}
