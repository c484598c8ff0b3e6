package route

import "testing"

func TestParseWork(t *testing.T) {
	f := func(value string, prompt, uncached uint32, ok bool) {
		t.Helper()
		p, u, good := ParseWork([]byte(value))
		if p != prompt || u != uncached || good != ok {
			t.Errorf("%q: %d, %d, %v, want %d, %d, %v", value, p, u, good, prompt, uncached, ok)
		}
	}
	f("prompt=812, uncached=172", 812, 172, true)
	f("uncached=172,prompt=812", 812, 172, true)
	f("\tprompt=812;est , uncached=172;a=\"1\"", 812, 172, true)
	f(`note="prompt=1, uncached=0", prompt=812, stream, uncached=0`, 812, 0, true)
	f(`note="a\", prompt=1", prompt=812`, 812, 812, true)
	f("prompt=812", 812, 812, true)
	f("prompt=812, uncached=9000", 812, 812, true)
	f("prompt=1, prompt=2", 2, 2, true)
	f("prompt=812, uncached=some", 812, 812, true)
	f("prompt=99999999999999", maxWork, maxWork, true)

	f("", 0, 0, false)
	f("uncached=172", 0, 0, false)
	f("prompt", 0, 0, false)
	f("prompt=", 0, 0, false)
	f("prompt=-1", 0, 0, false)
	f("prompt=NaN", 0, 0, false)
	f(`prompt="812"`, 0, 0, false)
	f(`"prompt=812`, 0, 0, false)
	f("812", 0, 0, false)
}

func TestWorkComesBack(t *testing.T) {
	var buf []byte
	for _, n := range []uint32{0, 1, 812, maxWork - 1, maxWork} {
		for _, m := range []uint32{0, 1, n / 3, n} {
			m = min(m, n)
			buf = AppendWork(buf[:0], n, m)
			if p, u, ok := ParseWork(buf); p != n || u != m || !ok {
				t.Errorf("%s: %d, %d, %v", buf, p, u, ok)
			}
		}
	}
	if got := string(AppendWork(nil, 812, 172)); got != "prompt=812, uncached=172" {
		t.Errorf("written as %q", got)
	}
}

func FuzzParseWork(f *testing.F) {
	f.Add([]byte("prompt=812, uncached=172"))
	f.Add([]byte(`a="\",", prompt=1e3;b, uncached=;`))
	f.Fuzz(func(t *testing.T, value []byte) {
		prompt, uncached, ok := ParseWork(value)
		if uncached > prompt || prompt > maxWork || !ok && prompt != 0 {
			t.Errorf("%q: %d, %d, %v", value, prompt, uncached, ok)
		}
	})
}

func TestWorkMakesNoGarbage(t *testing.T) {
	var buf [64]byte
	if n := testing.AllocsPerRun(100, func() { ParseWork(AppendWork(buf[:0], 812, 172)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
