package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseSettings(t *testing.T) {
	s, err := parseSettings("filter:\n  routing: {candidates: 2}\ncontrol:\n  scrape: {interval: 1s}\n")
	want := settings{
		filter:  object{"routing": object{"candidates": 2.0}},
		control: object{"scrape": object{"interval": "1s"}},
	}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parseSettings("filter:\n# nothing\n"); err != nil || s.filter != nil {
		t.Errorf("an empty part: %+v, %v", s, err)
	}
}

func TestParseSettingsRefuses(t *testing.T) {
	f := func(text, fault string) {
		t.Helper()
		if _, err := parseSettings(text); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v, want %q", text, err, fault)
		}
	}
	f("filters: {}", "filters: unknown key; allowed are control and filter")
	f("filter: [1]", "filter: want a mapping")
	f("filter: {}\nfilter: {}", "already set")
	f("- 1", "cannot unmarshal")
	f("a: {", "yaml")
}

func TestMerge(t *testing.T) {
	f := func(base, over, want string) {
		t.Helper()
		parse := func(text string) (o object) {
			if err := json.Unmarshal([]byte(text), &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
		b := parse(base)
		got, _ := json.Marshal(merge(b, parse(over)))
		if string(got) != want {
			t.Errorf("merge(%s, %s) = %s, want %s", base, over, got, want)
		}
		if !reflect.DeepEqual(b, parse(base)) {
			t.Errorf("merge changed its base to %v", b)
		}
	}
	f(`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`)
	f(`{"a":{"x":1,"y":2}}`, `{"a":{"y":3}}`, `{"a":{"x":1,"y":3}}`)
	f(`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`)
	f(`{"a":1,"b":2}`, `{"a":null}`, `{"b":2}`)
	f(`{"a":1}`, `{"a":{"x":null,"y":1}}`, `{"a":{"y":1}}`)
}

func TestReloadSettings(t *testing.T) {
	file := watchedFile{path: filepath.Join(t.TempDir(), "c.yaml"), limit: maxSettings}
	f := func(text string, changed bool, fault string) {
		t.Helper()
		if err := os.WriteFile(file.path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, got, err := reloadSettings(&file)
		if got != changed || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	f("filter: {}", true, "")
	f("filter: {}", false, "")
	f("filter: {", false, "")
	f("filter: {", false, file.path)
	f("filter: {", false, "") // said once
	f("filter: {a: 1}", false, "")
	f("filter: {a: 1}", true, "")
	f(strings.Repeat("#", maxSettings+1), false, "too large")
	if _, changed, err := reloadSettings(&watchedFile{}); changed || err != nil {
		t.Errorf("without a file: %v, %v", changed, err)
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add("filter:\n  routing: {candidates: 2}\ncontrol:\n  scrape: {interval: 1s}\n")
	f.Add("filter: [1]")
	f.Add("a: &x {b: *x}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSettings(text)
		if err != nil {
			return
		}
		if _, err := filterConfig(`{"role":"route"}`, s); err != nil {
			t.Errorf("%q was read but cannot be written: %v", text, err)
		}
	})
}
