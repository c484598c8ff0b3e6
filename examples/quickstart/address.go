package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// splitAddress takes HOST:PORT apart. The host is a name or an IP address, IPv6 in brackets; the port is 1 to 65535.
func splitAddress(text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	if err != nil || host == "" || port < 1 || port > 65535 || !plainHost(host) {
		return "", 0, fmt.Errorf("%q: want HOST:PORT, such as 10.0.0.7:8000 or [::1]:8000", text)
	}
	return host, port, nil
}

// plainHost refuses what is no host, such as the rest of an URL.
func plainHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for _, c := range []byte(host) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// splitListen takes apart an address to listen on: an empty host means all addresses, localhost the IPv4 one, and port 0 a free port.
func splitListen(text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(number)
	}
	switch host {
	case "":
		host = "0.0.0.0"
	case "localhost":
		host = "127.0.0.1"
	}
	if _, bad := netip.ParseAddr(host); err != nil || bad != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q: want IP:PORT, such as 127.0.0.1:8080, [::1]:8080 or :8080", text)
	}
	return host, port, nil
}

func joinAddress(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// resolve turns HOST:PORT into the form that Envoy and control must agree on: an IP address and a port. A name stands
// for its first address, an IPv4 one if it has any.
func resolve(text string, lookup func(host string) ([]string, error)) (string, error) {
	host, port, err := splitAddress(text)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return joinAddress(ip.Unmap().String(), port), nil
	}
	addresses, err := lookup(host)
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	first := ""
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		if ip = ip.Unmap(); ip.Is4() {
			return joinAddress(ip.String(), port), nil
		}
		if first == "" {
			first = ip.String()
		}
	}
	if first == "" {
		return "", fmt.Errorf("%q: the name has no address", text)
	}
	return joinAddress(first, port), nil
}
