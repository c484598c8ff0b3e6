package main

import (
	"errors"
	"io"
	"os"
)

// watchedFile is a file that is read again and again. A change counts once two looks in a row agree, so that a file which is just being
// written is not taken for a short one.
type watchedFile struct {
	path  string // empty: there is no file, and nothing ever changes
	limit int64  // bytes

	seen  string // content at the last look
	taken string // content that was handed out last
	open  bool   // something was handed out
}

// look reads the file. changed tells that text is new; the first look's always is.
func (f *watchedFile) look() (text string, changed bool, err error) {
	if f.path == "" {
		return "", false, nil
	}
	text, err = readCapped(f.path, f.limit)
	if err != nil {
		return "", false, err
	}
	settled := !f.open || text == f.seen
	f.seen = text
	if !settled || f.open && text == f.taken {
		return "", false, nil
	}
	f.taken, f.open = text, true
	return text, true, nil
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
