package main

import (
	"fmt"
	"strings"
)

// tree is a decoded document in which places are found by a path such as "clusters/replicas/connect_timeout": keys of mappings,
// and for the elements of lists their value of "name". The first error stays and makes everything after it a no-op,
// so a row of changes needs one look at err.
type tree struct {
	root object
	err  error
}

// get returns what is at path, nil if it is not there (and err is set).
func (t *tree) get(path string) any {
	var at any = t.root
	for _, step := range strings.Split(path, "/") {
		at = child(at, step)
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

// take removes the mapping at path from its parent and returns it.
func (t *tree) take(path string) object {
	parent, key := t.parent(path)
	value, isObject := parent[key].(object)
	if !isObject {
		if t.err == nil {
			t.err = fmt.Errorf("there is no mapping %s", path)
		}
		return nil
	}
	delete(parent, key)
	return value
}

// drop removes the elements of the list at path that have one of the names.
func (t *tree) drop(path string, names ...string) {
	list, _ := t.get(path).([]any)
	for _, name := range names {
		kept := list[:0:0]
		for _, element := range list {
			if nameOf(element) != name {
				kept = append(kept, element)
			}
		}
		if len(kept) == len(list) && t.err == nil {
			t.err = fmt.Errorf("there is no %s/%s", path, name)
		}
		list = kept
	}
	t.set(path, list)
}

func (t *tree) parent(path string) (object, string) {
	cut := strings.LastIndexByte(path, '/')
	parent, isObject := t.get(path[:cut]).(object)
	if !isObject && t.err == nil {
		t.err = fmt.Errorf("%s is not a mapping", path[:cut])
	}
	return parent, path[cut+1:]
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
