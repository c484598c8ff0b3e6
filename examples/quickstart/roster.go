package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// maxRoster bounds the replicas file.
const maxRoster = 1 << 20

// roster knows who the replicas are, as resolved addresses without duplicates.
type roster struct {
	file   string // empty: the list does not change
	lookup func(host string) ([]string, error)
	raw    string // the file as it was read last
	list   []string
}

// openRoster reads the replicas for the first time.
func openRoster(o options) (*roster, error) {
	r := &roster{file: o.replicasFile, lookup: net.LookupHost}
	if r.file == "" {
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
	if r.file == "" {
		return false, nil
	}
	raw, err := readCapped(r.file, maxRoster)
	if err != nil {
		return false, err
	}
	if raw == r.raw {
		return false, nil
	}
	r.raw = raw
	list, err := r.resolveAll(lines(raw), r.file)
	if err != nil {
		return false, err
	}
	changed = strings.Join(list, ",") != strings.Join(r.list, ",")
	r.list = list
	return changed, nil
}

// resolveAll resolves entries. An address given twice is one replica in a file, where lists get concatenated, and a
// mistake on the command line, where -kv-events counts positions.
func (r *roster) resolveAll(entries []string, where string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	for i, entry := range entries {
		if entry == "" {
			continue
		}
		address, err := resolve(entry, r.lookup)
		if err != nil {
			return nil, fmt.Errorf("%s, entry %d: %w", where, i+1, err)
		}
		if seen[address] && r.file == "" {
			return nil, fmt.Errorf("%s, entry %d: %s is there already", where, i+1, address)
		}
		if !seen[address] {
			list = append(list, address)
		}
		seen[address] = true
	}
	return list, nil
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

// readCapped reads a file that must not be larger than limit bytes.
func readCapped(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > limit {
		return "", errors.New(path + " is too large")
	}
	return string(data), nil
}
