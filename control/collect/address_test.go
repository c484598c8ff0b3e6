package collect

import "testing"

func TestParseAddress(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got, err := ParseAddress(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	f("10.0.0.7:8000", "10.0.0.7:8000")
	f("[::1]:8001", "[::1]:8001")
	f("[0:0:0:0:0:0:0:1]:8001", "[::1]:8001")
	f("[2001:DB8::0:7]:80", "[2001:db8::7]:80")
	f("[::ffff:10.0.0.7]:8000", "10.0.0.7:8000")
	wrong := func(in string) {
		t.Helper()
		if got, err := ParseAddress(in); err == nil {
			t.Errorf("%q: accepted as %q", in, got)
		}
	}
	wrong("")
	wrong("10.0.0.7")
	wrong("10.0.0.7:0")
	wrong("10.0.0.7:65536")
	wrong("10.0.0.07:80")
	wrong("::1:8001")
	wrong("gpu-3:8000")
	wrong("http://10.0.0.7:8000")
	wrong(" 10.0.0.7:8000")
}
