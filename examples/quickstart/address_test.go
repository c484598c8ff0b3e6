package main

import (
	"errors"
	"strings"
	"testing"
)

func lookup(host string) ([]string, error) {
	known := map[string][]string{
		"both":  {"2001:db8::7", "10.0.0.7", "10.0.0.8"},
		"six":   {"2001:db8::7"},
		"empty": {},
		"scope": {"fe80::1%eth0"},
	}
	if addresses, ok := known[host]; ok {
		return addresses, nil
	}
	return nil, errors.New("no such host")
}

func TestResolve(t *testing.T) {
	f := func(text, want, fault string) {
		t.Helper()
		got, err := resolve(text, lookup)
		if got != want || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %q, %v, want %q, %q", text, got, err, want, fault)
		}
	}
	f("10.0.0.7:8000", "10.0.0.7:8000", "")
	f("[::1]:8000", "[::1]:8000", "")
	f("[2001:DB8:0:0::7]:8000", "[2001:db8::7]:8000", "") // as Envoy writes it
	f("[::ffff:10.0.0.7]:1", "10.0.0.7:1", "")
	f("both:1", "10.0.0.7:1", "")
	f("six:1", "[2001:db8::7]:1", "")
	f("empty:1", "", "has no address")
	f("gone:1", "", `"gone:1": no such host`)
	f("x y:1", "", "want HOST:PORT")
}

func TestReachable(t *testing.T) {
	f := func(address, want string) {
		t.Helper()
		if got := reachable(address); got != want {
			t.Errorf("reachable(%q) = %q, want %q", address, got, want)
		}
	}
	f("0.0.0.0:80", "127.0.0.1:80")
	f("[::]:80", "[::1]:80")
	f("10.0.0.7:80", "10.0.0.7:80")
}
