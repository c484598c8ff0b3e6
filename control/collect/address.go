package collect

import (
	"errors"
	"fmt"
	"net/netip"
)

var errAddress = errors.New(`want IP:PORT, as 10.0.0.7:8000 or [::1]:8000 (a name goes under "dns")`)

// ParseAddress returns address as Envoy prints it. An IPv6 address has many
// spellings and is one replica in all of them; one that holds an IPv4 address
// is that address.
func ParseAddress(address string) (string, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || ap.Port() == 0 {
		return "", fmt.Errorf("address %.100q: %w", address, errAddress)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String(), nil
}
