package collect

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// MaxRanks bounds the event sources of one replica: one for each of its
// data-parallel engines.
const MaxRanks = 64

var errEndpoint = errors.New("want tcp://HOST:PORT, as tcp://10.0.0.7:5557 or tcp://[::1]:5557")

// CheckEndpoint says what is wrong with the address of an event socket. It is
// one to connect to: engines name the host they bind, which may be any.
func CheckEndpoint(endpoint string) error {
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	host, port, err := net.SplitHostPort(rest)
	if !ok || err != nil || len(host) > 253 {
		return fmt.Errorf("%.100q: %w", endpoint, errEndpoint)
	}
	switch host {
	case "", "*", "0.0.0.0", "::":
		return fmt.Errorf("%.100q: %w", endpoint, errEndpoint)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.100q: %w", endpoint, errEndpoint)
	}
	return nil
}

// ParseFeed reads where one engine publishes, ENDPOINT or ENDPOINT|REPLAY.
func ParseFeed(text string) (kvevents.Source, error) {
	endpoint, replay, both := strings.Cut(text, "|")
	err := CheckEndpoint(endpoint)
	if both && err == nil {
		err = CheckEndpoint(replay)
	}
	return kvevents.Source{Endpoint: endpoint, Replay: replay}, err
}
