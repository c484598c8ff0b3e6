package openai

import (
	"math/rand"
	"testing"
)

// naiveRun is canonicalRun, byte by byte.
func naiveRun(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c < ' ' || c == '"':
			return i
		case c == '\\':
			if i+1 == len(b) || escaped[b[i+1]] == 0 {
				return i
			}
			i++
		}
	}
	return len(b)
}

// Text that is mostly escapes and of what looks like one to special.
func TestCanonicalRun(t *testing.T) {
	const alphabet = `\\\\\\""##]]nntubfr/   !~[`
	r := rand.New(rand.NewSource(1))
	hard := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.Intn(len(alphabet))]
			if r.Intn(60) == 0 {
				b[i] = byte(r.Intn(256))
			}
			if i > 0 && b[i-1] == '\\' && r.Intn(20) > 0 {
				b[i] = `\"nt`[r.Intn(4)]
			}
		}
		return b
	}
	longest := 0
	for range 20000 {
		b := hard(r.Intn(200))
		got, want := canonicalRun(b), naiveRun(b)
		if got != want {
			t.Fatalf("%q: %d bytes, want %d", b, got, want)
		}
		longest = max(longest, got)
	}
	if longest < 100 {
		t.Errorf("no run was longer than %d bytes", longest)
	}
}
