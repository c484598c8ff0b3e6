package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

// maxPage bounds an answer of the admin interface.
const maxPage = 64 << 20

// AdminAPI is the admin interface of an Envoy, by its address as host:port. A
// Process has the same methods; this is for an Envoy that somebody else started.
type AdminAPI string

// Get reads a page of the admin interface, such as "/config_dump".
func (a AdminAPI) Get(ctx context.Context, page string) ([]byte, error) {
	return a.request(ctx, http.MethodGet, page)
}

// Post calls a page that changes something, such as "/logging?level=debug".
func (a AdminAPI) Post(ctx context.Context, page string) ([]byte, error) {
	return a.request(ctx, http.MethodPost, page)
}

func (a AdminAPI) request(ctx context.Context, method, page string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+string(a)+page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("admin %s: %w", page, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("admin %s: %s: %s", page, resp.Status, bytes.TrimSpace(body))
	}
	return body, nil
}

// Stats gives the counters and gauges whose names begin with prefix. Histograms
// and texts are left out.
func (a AdminAPI) Stats(ctx context.Context, prefix string) (map[string]int64, error) {
	page, err := a.Get(ctx, "/stats?filter="+url.QueryEscape("^"+regexp.QuoteMeta(prefix)))
	if err != nil {
		return nil, err
	}
	return parseStats(page), nil
}

// parseStats reads lines of "name: integer". A name may itself hold ": ".
func parseStats(page []byte) map[string]int64 {
	stats := make(map[string]int64)
	for line := range bytes.Lines(page) {
		line = bytes.TrimSpace(line)
		at := bytes.LastIndex(line, []byte(": "))
		if at < 0 {
			continue
		}
		if n, err := strconv.ParseInt(string(line[at+2:]), 10, 64); err == nil {
			stats[string(line[:at])] = n
		}
	}
	return stats
}

// Listener gives the address, as host:port, that a listener is bound to: what the
// kernel chose where the configuration says port 0.
func (a AdminAPI) Listener(ctx context.Context, name string) (string, error) {
	page, err := a.Get(ctx, "/listeners?format=json")
	if err != nil {
		return "", err
	}
	addr, err := parseListeners(page, name)
	if err != nil {
		return "", fmt.Errorf("admin /listeners: %w", err)
	}
	return addr, nil
}

func parseListeners(page []byte, name string) (string, error) {
	var list struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    uint16 `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal(page, &list); err != nil {
		return "", err
	}
	for _, l := range list.Statuses {
		if l.Name == name {
			s := l.Address.Socket
			return net.JoinHostPort(s.Address, strconv.Itoa(int(s.Port))), nil
		}
	}
	return "", fmt.Errorf("no listener named %q", name)
}
