//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/hostsim/transcript"
)

// TestTranscripts plays on Envoy what the filter's own tests play natively and
// in hostsim.
func TestTranscripts(t *testing.T) {
	scripts, err := transcript.Load("../../filter/testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			config := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(config, fmt.Appendf(nil, "filter: %s\n", s.Config), 0o600); err != nil {
				t.Fatal(err)
			}
			list := backends(t, s.Replicas)
			h := &played{house: start(t, "-replicas", addresses(list), "-workers", "1", "-config", config), backends: list}
			if err := s.Play(h); err != nil {
				t.Error(err)
			}
			h.settled()
		})
	}
}

// played is a house that plays transcripts.
type played struct {
	*house
	backends []*backend
}

// Do implements transcript.Host.
func (h *played) Do(request *transcript.Request, answer *transcript.Answer) (r transcript.Result, err error) {
	if answer.Refuse {
		down, err := h.first(request)
		if err != nil {
			return r, err
		}
		down.stop()
		defer func() {
			down.listen()
			time.Sleep(500 * time.Millisecond) // until control has seen it again
		}()
	}
	for _, b := range h.backends {
		b.arrivals()
		b.answer = scripted(answer)
	}
	resp, err := h.ask(request)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return r, err
	}
	reply := reply{header: resp.Header}
	r = transcript.Result{Status: resp.StatusCode, ClientHeaders: flat(resp.Header), ClientBody: body, Branch: reply.branch()}
	for _, b := range h.backends {
		for _, a := range b.arrivals() {
			r.Replica, r.ReplicaHeaders, r.ReplicaBody = b.address, flat(a.header), a.body
			r.Named = a.header.Get("x-gateway-destination-endpoint")
		}
	}
	return r, nil
}

// first finds the replica that the request would go to, by sending it there.
func (h *played) first(request *transcript.Request) (*backend, error) {
	if _, err := h.Do(request, &transcript.Answer{}); err != nil {
		return nil, err
	}
	r, err := h.Do(request, &transcript.Answer{})
	for _, b := range h.backends {
		if b.address == r.Replica {
			return b, err
		}
	}
	return nil, fmt.Errorf("no replica was reached: %w", err)
}

func (h *played) ask(request *transcript.Request) (*http.Response, error) {
	method := request.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, h.url+request.Path, cut(request))
	if err != nil {
		return nil, err
	}
	if request.Chunk == 0 {
		req.ContentLength = int64(len(request.Bytes()))
	}
	req.Header.Set("x-test", "1")
	req.Header.Set("x-warmlane-explain", "1")
	for k, v := range request.Headers {
		req.Header.Set(k, v)
	}
	return kept.Do(req)
}

// cut gives the body in the pieces that the script wants.
func cut(request *transcript.Request) io.Reader {
	body := request.Bytes()
	if len(body) == 0 {
		return http.NoBody
	}
	if request.Chunk == 0 {
		return strings.NewReader(string(body))
	}
	r, w := io.Pipe()
	go func() {
		for len(body) > 0 {
			n := min(request.Chunk, len(body))
			if _, err := w.Write(body[:n]); err != nil {
				return
			}
			body = body[n:]
		}
		w.Close()
	}()
	return r
}

func scripted(answer *transcript.Answer) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		for k, v := range answer.Headers {
			w.Header().Set(k, v)
		}
		w.WriteHeader(max(answer.Status, 200))
		io.WriteString(w, answer.Body)
	}
}

func flat(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for k, v := range h {
		m[strings.ToLower(k)] = v[0]
	}
	return m
}
