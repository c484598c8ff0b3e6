package hostsim

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

func TestPairs(t *testing.T) {
	f := func(h Header, want string) {
		t.Helper()
		got := encodePairs(h)
		if string(got) != want {
			t.Errorf("encode %v: %q, want %q", h, got, want)
		}
		if back := decodePairs(got); len(back) != len(h) || len(h) > 0 && !reflect.DeepEqual(back, h) {
			t.Errorf("decode %q: %v, want %v", got, back, h)
		}
	}
	f(nil, "\x00\x00\x00\x00")
	f(Header{{"a", "bc"}}, "\x01\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00a\x00bc\x00")
	f(Header{{"a", ""}, {"", "b"}}, "\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00a\x00\x00\x00b\x00")
}

func TestDecodePairsRefuses(t *testing.T) {
	f := func(b string) {
		t.Helper()
		if h := decodePairs([]byte(b)); h != nil {
			t.Errorf("decode %q: %v", b, h)
		}
	}
	good := string(encodePairs(Header{{"a", "bc"}}))
	f("")
	f("\x00")
	f(good[:len(good)-1])
	f(good + "x")
	f(strings.Replace(good, "a\x00", "a ", 1))
	f("\xff\xff\xff\xff")
	f("\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	f(string(encodePairs(make(Header, maxPairsCount+1))))
	f(string(encodePairs(Header{{"a", strings.Repeat("b", maxPairsBytes)}})))
}

func FuzzDecodePairs(f *testing.F) {
	f.Add(encodePairs(nil))
	f.Add(encodePairs(Header{{"a", "bc"}, {"", ""}}))
	f.Add(binary.LittleEndian.AppendUint32(nil, maxPairsCount))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := decodePairs(b); h != nil && !bytes.Equal(encodePairs(h), b) {
			t.Errorf("%q decodes to %v, which encodes to %q", b, h, encodePairs(h))
		}
	})
}
