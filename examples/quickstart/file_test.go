package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWatchedFile(t *testing.T) {
	file := watchedFile{path: filepath.Join(t.TempDir(), "f"), limit: 10}
	f := func(content, text string, changed bool) {
		t.Helper()
		if err := os.WriteFile(file.path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, new, err := file.look(); got != text || new != changed || err != nil {
			t.Errorf("%q: %q, %v, %v", content, got, new, err)
		}
	}
	f("", "", true) // the first look is taken as it is
	f("", "", false)
	f("a", "", false) // half written
	f("ab", "", false)
	f("ab", "ab", true)
	f("ab", "", false)
	f("abc", "", false) // and back before it counted
	f("ab", "", false)
	f("ab", "", false)
	if err := os.WriteFile(file.path, []byte("far too long"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := file.look(); changed || err == nil {
		t.Errorf("a large file: %v, %v", changed, err)
	}
	if _, changed, err := (&watchedFile{}).look(); changed || err != nil {
		t.Errorf("no file: %v, %v", changed, err)
	}
}
