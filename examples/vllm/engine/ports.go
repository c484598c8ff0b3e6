package engine

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below those that systems give to outgoing connections: one of these may otherwise sit on the port of a
// server that is being restarted, and even connect to itself.
const (
	firstPort = 15000
	lastPort  = 32000
)

// ports finds n TCP ports that are free on all addresses, by binding all of them at once and letting go. vLLM can't be told to
// take any free port and say which, so another program may be faster; then the start fails.
func ports(n int) ([]int, error) {
	var free []int
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		defer l.Close()
		if free = append(free, port); len(free) == n {
			return free, nil
		}
	}
	return nil, errors.New("no free port was found")
}
