package kvevents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxSources bounds the data-parallel ranks of an engine.
const maxSources = 1024

// Source is where one data-parallel rank of an engine publishes.
type Source struct {
	Endpoint string // of the events, tcp://HOST:PORT, to connect to
	Replay   string // of the replay, "" none
	Topic    string // the only one wanted, "" all
	Rank     int
}

// ParseSources reads the answer of an engine to GET /kv_event_sources: for each rank
// how it publishes. host is the engine's own; it stands in for the wildcard of an
// endpoint that was bound to every address. Ranks that publish nothing are left out.
// The sources are in the order of their ranks.
func ParseSources(text []byte, host string) ([]Source, error) {
	var ranks map[string]struct {
		Enabled   *bool   `json:"enable_kv_cache_events"`
		Publisher string  `json:"publisher"`
		Endpoint  string  `json:"endpoint"`
		Replay    *string `json:"replay_endpoint"`
		Topic     string  `json:"topic"`
	}
	if err := json.Unmarshal(text, &ranks); err != nil {
		return nil, fmt.Errorf("kvevents: sources: %w", err)
	}
	if len(ranks) > maxSources {
		return nil, fmt.Errorf("kvevents: %d sources, more than %d", len(ranks), maxSources)
	}
	sources := make([]Source, 0, len(ranks))
	for name, r := range ranks {
		if r.Enabled != nil && !*r.Enabled || r.Publisher == "null" {
			continue
		}
		rank, err := strconv.ParseUint(name, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("kvevents: source %q: not a rank", name)
		}
		s := Source{Topic: r.Topic, Rank: int(rank)}
		if s.Endpoint, err = reach(r.Endpoint, host); err != nil {
			return nil, fmt.Errorf("kvevents: source %q: endpoint: %w", name, err)
		}
		if r.Replay != nil && *r.Replay != "" {
			if s.Replay, err = reach(*r.Replay, host); err != nil {
				return nil, fmt.Errorf("kvevents: source %q: replay_endpoint: %w", name, err)
			}
		}
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b Source) int { return cmp.Compare(a.Rank, b.Rank) })
	return sources, nil
}

// reach turns an address that was bound into one to connect to.
func reach(endpoint, host string) (string, error) {
	h, port, err := split(endpoint)
	if err != nil {
		return "", err
	}
	if wildcard(h) {
		h = strings.Trim(host, "[]")
	}
	out := "tcp://" + net.JoinHostPort(h, port)
	if _, err := dialAddress(out); err != nil {
		return "", err
	}
	return out, nil
}

// wildcard tells whether a bound host means every address.
func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "*" || err == nil && ip.IsUnspecified()
}

// dialAddress is the HOST:PORT of an endpoint that can be connected to.
func dialAddress(endpoint string) (string, error) {
	host, port, err := split(endpoint)
	if err != nil {
		return "", err
	}
	if host == "" || wildcard(host) {
		return "", fmt.Errorf("%q has no host to connect to", endpoint)
	}
	return net.JoinHostPort(host, port), nil
}

// split takes tcp://HOST:PORT apart. The colons of an IPv6 address may go without
// brackets, as ZeroMQ allows.
func split(endpoint string) (host, port string, err error) {
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	colon := strings.LastIndexByte(rest, ':')
	if !ok || colon < 0 {
		return "", "", fmt.Errorf("%q is not tcp://HOST:PORT", endpoint)
	}
	host, port = rest[:colon], rest[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("%q has no port from 1 to 65535", endpoint)
	}
	if in, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(in, "]"); !ok {
			return "", "", fmt.Errorf("%q has an open bracket", endpoint)
		}
	}
	return host, port, nil
}
