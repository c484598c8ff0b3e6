package kvindex

import (
	"encoding/binary"
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// A bucket of prompts whose blocks were asked for, all numbers little-endian:
//
//	byte  bytes
//	0     4  magic and version
//	4        entries, the newest first
//
// and an entry:
//
//	0     8   key of the text
//	8     4   block size
//	12    4   tokens of the prompt
//	16    2   n, keys
//	18    8n  keys of the blocks
const (
	promptsHead  = 4
	promptsMagic = 'W' | 'L'<<8 | 'Q'<<16 | 1<<24
	promptHead   = 18
)

// Keys appends to dst the keys of the blocks of the prompt with text key t, and
// gives the number of tokens in a block and in the prompt, if it was remembered.
func (l *Learned) Keys(t uint64, dst []uint64) (keys []uint64, size, tokens uint32, ok bool) {
	value, _, err := l.readPrompts(t)
	if err != nil {
		return dst, 0, 0, false
	}
	at, end := findPrompt(value, t)
	if end == 0 {
		return dst, 0, 0, false
	}
	e := value[at:end]
	for k := e[promptHead:]; len(k) > 0; k = k[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(k))
	}
	return dst, binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:]), true
}

// Remember says what the blocks of a prompt are. Of a prompt whose keys do not
// fit a bucket the first that do are kept.
func (l *Learned) Remember(t uint64, size, tokens uint32, keys []uint64) error {
	keys = keys[:min(len(keys), (l.opts.PromptBytes-promptsHead-promptHead)/8)]
	for range maxTries {
		old, cas, err := l.readPrompts(t)
		if err != nil {
			return err
		}
		l.value = binary.LittleEndian.AppendUint32(l.value[:0], promptsMagic)
		l.value = appendPrompt(l.value, t, size, tokens, keys)
		l.keepPrompts(old, t)
		l.stats.Writes++
		err = l.store.Set(l.key, l.value, cas)
		if !errors.Is(err, shared.ErrCAS) {
			return err
		}
		l.stats.Conflicts++
	}
	return shared.ErrCAS
}

// readPrompts gives the bucket of t as it lies in the store: empty if it is
// absent or not ours.
func (l *Learned) readPrompts(t uint64) (value []byte, cas uint32, err error) {
	l.key = shared.AppendPromptsKey(l.key[:0], uint32(t%uint64(l.opts.Prompts)))
	l.stats.Reads++
	value, cas, err = l.store.Get(l.key)
	switch {
	case errors.Is(err, shared.ErrNotFound):
		return nil, shared.Absent, nil
	case err != nil:
		return nil, 0, err
	case len(value) < promptsHead, binary.LittleEndian.Uint32(value) != promptsMagic:
		l.stats.Damaged++
		value = nil
	}
	return value, cas, nil
}

func appendPrompt(dst []byte, t uint64, size, tokens uint32, keys []uint64) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, t)
	dst = binary.LittleEndian.AppendUint32(dst, size)
	dst = binary.LittleEndian.AppendUint32(dst, tokens)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(keys)))
	for _, k := range keys {
		dst = binary.LittleEndian.AppendUint64(dst, k)
	}
	return dst
}

// keepPrompts appends to l.value the entries of an old bucket but that of t, as
// far as there is room.
func (l *Learned) keepPrompts(old []byte, t uint64) {
	for at := promptsHead; at < len(old); {
		found, end := promptAt(old, at)
		if end == 0 || found != t && len(l.value)+end-at > l.opts.PromptBytes {
			return
		}
		if found != t {
			l.value = append(l.value, old[at:end]...)
		}
		at = end
	}
}

// findPrompt returns where the entry of t lies; end is 0 if there is none.
func findPrompt(value []byte, t uint64) (at, end int) {
	for at = promptsHead; at < len(value); {
		found, end := promptAt(value, at)
		if end == 0 || found == t {
			return at, end
		}
		at = end
	}
	return 0, 0
}

// promptAt returns the text key of the entry at a place and where it ends; end
// is 0 if there is no whole entry.
func promptAt(value []byte, at int) (t uint64, end int) {
	if len(value)-at < promptHead {
		return 0, 0
	}
	head := (*[promptHead]byte)(value[at:])
	end = at + promptHead + 8*int(binary.LittleEndian.Uint16(head[16:]))
	if end > len(value) {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(head[:]), end
}
