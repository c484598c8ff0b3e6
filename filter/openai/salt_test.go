package openai

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// plainJSON spells s as a JSON string with no more escapes than it must have.
func plainJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escapedJSON spells s, which is UTF-8, as a JSON string of nothing but escapes.
func escapedJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, u := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04X`, u)
	}
	b.WriteByte('"')
	return b.String()
}

func saltOf(t *testing.T, spelled string) uint64 {
	t.Helper()
	var s Scanner
	s.Reset(Chat, new(record))
	s.Write([]byte(`{"messages": [], "cache_salt": ` + spelled + `, "model": "m"}`))
	if bad := s.Close(); bad.Fault != NoFault {
		t.Fatalf("%s: %v", spelled, bad)
	}
	return s.Request().Salt
}

func checkSalt(t *testing.T, salt string) {
	t.Helper()
	want := SaltHash(salt)
	if got := saltOf(t, plainJSON(salt)); got != want {
		t.Errorf("%q: scanned %x, hashed %x", salt, got, want)
	}
	if !utf8.ValidString(salt) {
		return
	}
	if got := saltOf(t, escapedJSON(salt)); got != want {
		t.Errorf("%q in escapes: scanned %x, hashed %x", salt, got, want)
	}
}

var salts = []string{
	"", "a", "tenant-7", "\"quoted\"", `back\slash`, "a/b", "line\nbreak\r\t\b\f", "\x00\x01\x1f\x7f",
	"Grüße", "日本語の塩", "😀", "�", "a\xffb\xc3", strings.Repeat("0123456789", 3) + "0", strings.Repeat("0123456789", 3) + "01",
	strings.Repeat("\n", 15) + "x", strings.Repeat("\n", 16), strings.Repeat("é", 200), strings.Repeat("long \"salt\" ", 100),
}

func TestSaltHash(t *testing.T) {
	seen := make(map[uint64]string)
	for _, salt := range salts {
		checkSalt(t, salt)
		h := SaltHash(salt)
		if h == 0 {
			t.Errorf("%q has the hash of no salt", salt)
		}
		if other, taken := seen[h]; taken {
			t.Errorf("%q and %q have one hash", salt, other)
		}
		seen[h] = salt
	}
	for _, absent := range []string{"null", `"x", "cache_salt": null`} {
		if got := saltOf(t, absent); got != 0 {
			t.Errorf("%s: %x, want 0", absent, got)
		}
	}
}

func FuzzSaltHash(f *testing.F) {
	for _, salt := range salts {
		f.Add(salt)
	}
	f.Fuzz(checkSalt)
}
