package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// maxRoster bounds the replicas file.
const maxRoster = 1 << 20

// replica is one replica, by its resolved address.
type replica struct {
	address  string // IP:PORT
	draining bool   // shall get no new requests
}

// String is the replica's line in a replicas file.
func (r replica) String() string {
	if r.draining {
		return r.address + " draining"
	}
	return r.address
}

// roster knows who the replicas are; no address is in it twice.
type roster struct {
	file   watchedFile // without a path the list does not change
	lookup func(host string) ([]string, error)
	list   []replica
}

// openRoster reads the replicas for the first time.
func openRoster(o options) (*roster, error) {
	r := &roster{file: watchedFile{path: o.replicasFile, limit: maxRoster}, lookup: net.LookupHost}
	if r.file.path == "" {
		list, err := r.resolveAll(o.replicas, "-replicas")
		r.list = list
		return r, err
	}
	_, err := r.reload()
	if err != nil {
		return nil, fmt.Errorf("-replicas-file: %w", err)
	}
	return r, nil
}

// reload reads the file again and tells whether the list has changed. On an error the list stays as it was; the same
// faulty content is reported once.
func (r *roster) reload() (changed bool, err error) {
	text, changed, err := r.file.look()
	if err != nil || !changed {
		return false, err
	}
	list, err := r.resolveAll(lines(text), r.file.path)
	if err != nil {
		return false, err
	}
	changed = !slices.Equal(list, r.list)
	r.list = list
	return changed, nil
}

// text is the list as a replicas file.
func (r *roster) text() string {
	var text strings.Builder
	for _, each := range r.list {
		text.WriteString(each.String() + "\n")
	}
	return text.String()
}

// resolveAll resolves entries. An address given twice is one replica in a file, where lists get concatenated, and a
// mistake on the command line, where -kv-events counts positions.
func (r *roster) resolveAll(entries []string, where string) ([]replica, error) {
	var list []replica
	seen := map[string]bool{}
	for i, entry := range entries {
		if entry == "" {
			continue
		}
		next, err := r.resolveOne(entry)
		if err != nil {
			return nil, fmt.Errorf("%s, entry %d: %w", where, i+1, err)
		}
		if seen[next.address] && r.file.path == "" {
			return nil, fmt.Errorf("%s, entry %d: %s is there already", where, i+1, next.address)
		}
		if !seen[next.address] {
			list = append(list, next)
		}
		seen[next.address] = true
	}
	return list, nil
}

func (r *roster) resolveOne(entry string) (replica, error) {
	words := strings.Fields(entry)
	if len(words) > 2 || len(words) == 2 && words[1] != "draining" {
		return replica{}, fmt.Errorf("%q: behind the address only \"draining\" is allowed", entry)
	}
	address, err := resolve(words[0], r.lookup)
	return replica{address: address, draining: len(words) == 2}, err
}

// lines splits a file, leaving comments out. Empty lines stay, so that positions are line numbers.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	for i, line := range all {
		line, _, _ = strings.Cut(line, "#")
		all[i] = strings.TrimSpace(line)
	}
	return all
}
