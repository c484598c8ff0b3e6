package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// maxFile bounds the file of a [File] source.
const maxFile = 1 << 20

var errMember = fmt.Errorf(`want an address, and behind it "draining" and at most %d of "kv=ENDPOINT|REPLAY"`, MaxRanks)

// File is a list in a file, one address a line. Behind it may stand "draining"
// if the replica is to take no new requests, and "kv=ENDPOINT" or
// "kv=ENDPOINT|REPLAY" for each socket of KV events, in the order of
// data-parallel ranks. Empty lines and what follows a # are ignored. The file is read again every Every; a change counts once two
// readings in a row agree, so that a file in the midst of being written is not
// taken for a short one.
type File struct {
	Path  string
	Every time.Duration
}

// Run reads the file until ctx ends. A file that cannot be read leaves the
// list as it was; lines that are wrong are reported and left out.
func (f File) Run(ctx context.Context, emit func([]Member), report func(error)) {
	w := fileWatch{path: f.Path, emit: emit, report: report}
	w.look(true)
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(false)
		}
	}
}

// fileWatch remembers what was read.
type fileWatch struct {
	path   string
	emit   func([]Member)
	report func(error)

	last    []byte // content at the last look
	applied []byte // content that was emitted
	err     string // that was reported last, so as not to say it every time
}

func (w *fileWatch) look(first bool) {
	content, err := ReadCapped(w.path, maxFile)
	if err != nil {
		w.fail(err)
		if first {
			w.emit(nil)
		}
		return
	}
	w.err = ""
	settled := first || bytes.Equal(content, w.last)
	w.last = content
	if !settled || (!first && bytes.Equal(content, w.applied)) {
		return
	}
	w.applied = content
	members, err := ParseMembers(string(content))
	if err != nil {
		w.report(fmt.Errorf("%s: %w", w.path, err))
	}
	w.emit(members)
}

func (w *fileWatch) fail(err error) {
	if err.Error() != w.err {
		w.err = err.Error()
		w.report(err)
	}
}

// ReadCapped reads a file of at most max bytes; a larger one is an error.
func ReadCapped(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%s: larger than %d bytes", path, max)
	}
	return b, err
}

// ParseMembers reads the text of a [File]. It returns all lines that are
// right, and an error that names those that are not.
func ParseMembers(text string) ([]Member, error) {
	var members []Member
	var errs []error
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		m, ok, err := parseMember(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", n, err))
		}
		if ok {
			members = append(members, m)
		}
	}
	return normal(members), errors.Join(errs...)
}

func parseMember(line string) (m Member, ok bool, err error) {
	line, _, _ = strings.Cut(line, "#")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return m, false, nil
	}
	if m.Address, err = ParseAddress(fields[0]); err != nil {
		return m, false, err
	}
	for _, word := range fields[1:] {
		if err := m.word(word); err != nil {
			return m, false, fmt.Errorf("%.100q: %w", line, err)
		}
	}
	return m, true, nil
}

// word takes in what stands behind an address.
func (m *Member) word(word string) error {
	feed, isFeed := strings.CutPrefix(word, "kv=")
	switch {
	case isFeed && len(m.Feeds) < MaxRanks:
		s, err := ParseFeed(feed)
		s.Rank = len(m.Feeds)
		m.Feeds = append(m.Feeds, s)
		return err
	case word == "draining":
		m.Draining = true
		return nil
	default:
		return errMember
	}
}
