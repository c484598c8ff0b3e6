package abi

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// example is one header map as the specification's prose lays it out.
const example = "\x02\x00\x00\x00" + // two pairs
	"\x05\x00\x00\x00\x01\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + // lengths
	":path\x00/\x00" + "a\x00\x00"

func TestParsePairs(t *testing.T) {
	p, err := ParsePairs([]byte(example))
	if err != nil || p.Len() != 2 {
		t.Fatalf("%d pairs, %v", p.Len(), err)
	}
	if got := spell(p); got != ":path=/|a=|" {
		t.Errorf("got %s", got)
	}
}

func TestParsePairsEmpty(t *testing.T) {
	for _, in := range []string{"", "\x00", "\x00\x00\x00\x00"} {
		p, err := ParsePairs([]byte(in))
		if err != nil || p.Len() != 0 || spell(p) != "" {
			t.Errorf("%q: %d pairs, %v", in, p.Len(), err)
		}
	}
}

func TestParsePairsRefuses(t *testing.T) {
	f := func(name, in string, want error) {
		t.Helper()
		if _, err := ParsePairs([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	f("no count", "\x01", ErrPairsMalformed)
	f("short count", "\x01\x00\x00", ErrPairsMalformed)
	f("no lengths", "\x01\x00\x00\x00", ErrPairsMalformed)
	f("short data", example[:len(example)-1], ErrPairsMalformed)
	f("long data", example+"\x00", ErrPairsMalformed)
	f("data of no pair", "\x00\x00\x00\x00\x00", ErrPairsMalformed)
	f("no terminator", strings.Replace(example, "/\x00", "//", 1), ErrPairsMalformed)
	f("huge name", "\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00", ErrPairsMalformed)
	f("many pairs", "\x01\x04\x00\x00"+strings.Repeat("\x00", 9000), ErrPairsTooLarge)
	f("large map", strings.Repeat("\x00", MaxPairsBytes+1), ErrPairsTooLarge)
}

func TestEncoder(t *testing.T) {
	var e Encoder
	e.Add(":path", "/")
	e.AddBytes("a", nil)
	for range 2 { // Bytes may be asked for again
		if got, err := e.Bytes(); err != nil || string(got) != example {
			t.Errorf("got %q, %v", got, err)
		}
	}
	e.Reset()
	if got, err := e.Bytes(); err != nil || len(got) != 0 {
		t.Errorf("after Reset: %q, %v", got, err)
	}
	if got, err := (*Encoder)(nil).Bytes(); err != nil || len(got) != 0 {
		t.Errorf("nil: %q, %v", got, err)
	}
}

func TestEncoderLimits(t *testing.T) {
	f := func(name string, want error, add func(e *Encoder)) {
		t.Helper()
		var e Encoder
		add(&e)
		e.Add("", "")
		if _, err := e.Bytes(); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if e.Reset(); e.failed {
			t.Errorf("%s: still refused after Reset", name)
		}
	}
	fill := func(n int) func(*Encoder) {
		return func(e *Encoder) {
			for range n {
				e.Add("x", "")
			}
		}
	}
	// 24 bytes: the count, two pairs of lengths and four terminators.
	value := func(n int) func(*Encoder) { return func(e *Encoder) { e.AddBytes("", make([]byte, n)) } }
	f("as many as allowed", nil, fill(MaxPairs-1))
	f("one pair more", ErrPairsTooLarge, fill(MaxPairs))
	f("as large as allowed", nil, value(MaxPairsBytes-24))
	f("one byte more", ErrPairsTooLarge, value(MaxPairsBytes-23))
}

func TestPairsDoNotAllocate(t *testing.T) {
	var e Encoder
	total := 0
	n := testing.AllocsPerRun(100, func() {
		e.Reset()
		e.Add(":path", "/v1/chat/completions")
		e.AddBytes("x", []byte("y"))
		b, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePairs(b)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range p.All() {
			total += len(name) + len(value)
		}
	})
	if n != 0 || total == 0 {
		t.Errorf("%v allocations for a map, %d bytes seen", n, total)
	}
}

func TestPairsStop(t *testing.T) {
	p, err := ParsePairs([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	for name := range p.All() {
		if string(name) == ":path" {
			return
		}
		t.Errorf("walked on to %s", name)
	}
}

func TestNextWalksLikeAll(t *testing.T) {
	p, err := ParsePairs([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	walk := p
	for name, value := range p.All() {
		n, v, ok := walk.Next()
		if !ok || string(n) != string(name) || string(v) != string(value) {
			t.Errorf("Next gave %q=%q %v, All %q=%q", n, v, ok, name, value)
		}
	}
	if n, v, ok := walk.Next(); ok || p.Len() != 2 || walk.Len() != 0 {
		t.Errorf("after the end: %q=%q; %d pairs before, %d after", n, v, p.Len(), walk.Len())
	}
	if n := testing.AllocsPerRun(100, func() { walk = p; walk.Next() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A map that was not checked gives what is good of it.
func TestNextStopsAtWhatIsBroken(t *testing.T) {
	f := func(name, in string, want string) {
		t.Helper()
		p := Pairs{broken: true} // of the map before
		if err := p.begin([]byte(in)); err != nil {
			t.Fatal(name, err)
		}
		got := ""
		for name, value, ok := p.Next(); ok; name, value, ok = p.Next() {
			got += string(name) + "=" + string(value) + "|"
		}
		if whole := in == example; got != want || p.Len() != 0 || (p.Err() == nil) != whole {
			t.Errorf("%s: got %q, %d left, %v", name, got, p.Len(), p.Err())
		}
	}
	f("good", example, ":path=/|a=|")
	f("short data", example[:len(example)-1], ":path=/|")
	f("no terminator", strings.Replace(example, "/\x00", "//", 1), "")
	f("huge value", strings.Replace(example, "\x01\x00\x00\x00\x00\x00\x00\x00", "\x01\x00\x00\x00\xff\xff\xff\xff", 1), ":path=/|")
}

// FuzzPairs: no bytes may break the decoder, and what it accepts is exactly what
// the encoder makes of the same headers.
func FuzzPairs(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(""))
	f.Add([]byte("\x00"))
	f.Add([]byte(example[:11]))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := ParsePairs(in)
		if err != nil {
			walkUnchecked(t, in)
			return
		}
		var e Encoder
		walked := 0
		for name, value := range p.All() {
			e.AddBytes(string(name), value)
			walked++
		}
		if walked != p.Len() {
			t.Fatalf("walked %d of %d pairs", walked, p.Len())
		}
		out, err := e.Bytes()
		if err != nil || walked > 0 && !bytes.Equal(in, out) {
			t.Fatalf("%q became %q, %v", in, out, err)
		}
	})
}

func spell(p Pairs) string {
	var b strings.Builder
	for name, value := range p.All() {
		b.WriteString(string(name) + "=" + string(value) + "|")
	}
	return b.String()
}

// walkUnchecked fails if a map that is not in order is walked beyond its end.
func walkUnchecked(t *testing.T, in []byte) {
	var p Pairs
	if p.begin(in) != nil {
		return
	}
	count, total := p.Len(), 0
	for name, value, ok := p.Next(); ok; name, value, ok = p.Next() {
		count--
		total += len(name) + len(value)
	}
	if count < 0 || total > len(in) || count > 0 && p.Err() == nil {
		t.Fatalf("%d headers left, %d bytes of %d, %v", count, total, len(in), p.Err())
	}
}
