package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// node is one value of a configuration and where it stands. Its methods read
// the value as what it must be; what is wrong is noted with the path and what
// is allowed, and reading goes on, so that a user sees all mistakes at once.
type node struct {
	path  string
	value any
	errs  *[]error
}

// parseTree reads YAML, or JSON, which is YAML too.
func parseTree(text []byte, errs *[]error) (node, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return node{}, errors.New(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.UseNumber()
	n := node{errs: errs}
	return n, d.Decode(&n.value)
}

func (n node) fail(format string, args ...any) {
	path := n.path
	if path == "" {
		path = "configuration"
	}
	*n.errs = append(*n.errs, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// want notes that n is not what it must be.
func (n node) want(what string) { n.fail("want %s, got %s", what, describe(n.value)) }

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return fmt.Sprintf("%.60q", fmt.Sprint(v))
	}
}

// object gives each member to the function of its key. A key that has none is
// refused.
func (n node) object(fields map[string]func(node)) {
	m, ok := n.value.(map[string]any)
	if !ok {
		n.want("an object with " + keys(fields))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		child := n.child(key, m[key])
		if read := fields[key]; read != nil {
			read(child)
		} else {
			child.fail("unknown key; allowed: %s", keys(fields))
		}
	}
}

func (n node) child(key string, value any) node {
	path := fmt.Sprintf("%.60s", key)
	if n.path != "" {
		path = n.path + "." + path
	}
	return node{path: path, value: value, errs: n.errs}
}

func keys(fields map[string]func(node)) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// list gives each item to f.
func (n node) list(max int, f func(node)) {
	items, ok := n.value.([]any)
	if !ok {
		n.want("a list")
		return
	}
	if len(items) > max {
		n.fail("at most %d items, got %d", max, len(items))
		return
	}
	for i, item := range items {
		f(node{path: fmt.Sprintf("%s[%d]", n.path, i), value: item, errs: n.errs})
	}
}

// text reads a string of 1 to max bytes.
func (n node) text(max int) string {
	s, ok := n.value.(string)
	if !ok || s == "" || len(s) > max {
		n.want(fmt.Sprintf("a text of 1 to %d bytes", max))
		return ""
	}
	return s
}

func (n node) boolean() bool {
	b, ok := n.value.(bool)
	if !ok {
		n.want("true or false")
	}
	return b
}

// integer reads a whole number.
func (n node) integer(low, high int64) int64 {
	num, _ := n.value.(json.Number)
	v, err := num.Int64()
	if err != nil || v < low || v > high {
		n.want(fmt.Sprintf("a whole number from %d to %d", low, high))
		return low
	}
	return v
}

// duration reads a time with its unit: 250ms, 5s, 1m30s.
func (n node) duration(low, high time.Duration) time.Duration {
	s, _ := n.value.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < low || d > high {
		n.want(fmt.Sprintf("a time from %v to %v, as 250ms or 5s", low, high))
		return low
	}
	return d
}
