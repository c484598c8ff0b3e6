package main

import (
	"fmt"
	"slices"
	"strings"
)

// object is a document's mapping, in the types that JSON has.
type object = map[string]any

// tree is a decoded document in which places are found by a path such as "clusters/replicas/connect_timeout": keys of
// mappings, and for the elements of lists their value of "name". The first error stays, so a row of changes needs one
// look at err.
type tree struct {
	root object
	err  error
}

// get returns what is at path, nil if it is not there (and err is set). The empty path is the whole document.
func (t *tree) get(path string) any {
	var at any = t.root
	for step := range strings.SplitSeq(path, "/") {
		if path != "" {
			at = child(at, step)
		}
	}
	if at == nil && t.err == nil {
		t.err = fmt.Errorf("there is no %s", path)
	}
	return at
}

// set replaces what is at path; its parent must be a mapping and be there.
func (t *tree) set(path string, value any) {
	if parent, key := t.parent(path); parent != nil {
		parent[key] = value
	}
}

// drop removes what must be there: a key of a mapping, or an element of a list.
func (t *tree) drop(path string) {
	if t.get(path) == nil {
		return
	}
	above, key := split(path)
	list, isList := t.get(above).([]any)
	if !isList {
		parent, key := t.parent(path)
		delete(parent, key)
		return
	}
	t.set(above, slices.DeleteFunc(slices.Clone(list), func(e any) bool { return nameOf(e) == key }))
}

func (t *tree) parent(path string) (object, string) {
	above, key := split(path)
	parent, isObject := t.get(above).(object)
	if !isObject && t.err == nil {
		t.err = fmt.Errorf("%q is not a mapping", above)
	}
	return parent, key
}

// split cuts a path before its last step.
func split(path string) (above, last string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

func child(node any, step string) any {
	switch node := node.(type) {
	case object:
		return node[step]
	case []any:
		for _, element := range node {
			if nameOf(element) == step {
				return element
			}
		}
	}
	return nil
}

func nameOf(element any) string {
	o, _ := element.(object)
	name, _ := o["name"].(string)
	return name
}
