package kvindex

import (
	"encoding/binary"
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// Border is a place in a prompt: the end of one of its messages.
type Border struct {
	Text   uint64 // key of that prompt's text
	At, Of uint32 // the place, in canonical bytes, and how many the prompt has
	Tokens uint32 // how many tokens the prompt has, 0 = not known
}

// A bucket of borders, all numbers little-endian:
//
//	byte  bytes
//	0     4  magic and version
//	4        entries, the newest first: border (8), text (8), at (4), of (4), tokens (4)
const (
	bordersHead  = 4
	bordersMagic = 'W' | 'L'<<8 | 'B'<<16 | 2<<24
	borderBytes  = 28
)

// borderImages is how many buckets a worker remembers as it last read them.
// Writing builds on that: the compare-and-set tells if it is out of date.
const borderImages = 8

type image struct {
	valid  bool
	bucket uint32
	cas    uint32
	buf    []byte
}

// Border returns the newest prompt known to pass through the border b.
func (l *Learned) Border(b uint64) (Border, bool) {
	im, err := l.readBorders(l.borderBucket(b))
	if err != nil {
		return Border{}, false
	}
	at := findBorder(im.buf, b)
	if at < 0 {
		return Border{}, false
	}
	return borderAt(im.buf[at:]), true
}

// Note says that a prompt passes through the border b. It is for after Border
// of the same, whose read it uses again, and costs nothing if that has shown
// this very prompt, and young.
func (l *Learned) Note(b uint64, v Border) error {
	bucket := l.borderBucket(b)
	for range maxTries {
		im := &l.images[bucket%borderImages]
		if !im.valid || im.bucket != bucket {
			var err error
			if im, err = l.readBorders(bucket); err != nil {
				return err
			}
		}
		if !l.putBorder(im, b, v) {
			return nil
		}
		l.stats.Writes++
		im.valid = false
		l.key = shared.AppendBordersKey(l.key[:0], bucket)
		err := l.store.Set(l.key, im.buf, im.cas)
		if !errors.Is(err, shared.ErrCAS) {
			return err
		}
		l.stats.Conflicts++
	}
	return shared.ErrCAS
}

func (l *Learned) borderBucket(b uint64) uint32 { return uint32(b % uint64(l.opts.Borders)) }

// readBorders makes the image of a bucket new. One that is absent or not ours
// is empty.
func (l *Learned) readBorders(bucket uint32) (*image, error) {
	im := &l.images[bucket%borderImages]
	im.valid = false
	l.key = shared.AppendBordersKey(l.key[:0], bucket)
	l.stats.Reads++
	value, cas, err := l.store.Get(l.key)
	switch {
	case errors.Is(err, shared.ErrNotFound):
		value, cas = nil, shared.Absent
	case err != nil:
		return nil, err
	case len(value) < bordersHead, (len(value)-bordersHead)%borderBytes != 0, len(value) > l.opts.BorderBytes,
		binary.LittleEndian.Uint32(value) != bordersMagic:
		l.stats.Damaged++
		value = nil
	}
	im.buf = binary.LittleEndian.AppendUint32(im.buf[:0], bordersMagic)
	if value != nil {
		im.buf = append(im.buf, value[bordersHead:]...)
	}
	im.valid, im.bucket, im.cas = true, bucket, cas
	return im, nil
}

// putBorder brings a border to the front and reports whether that changed
// anything. One that says the same and lies in the younger half stays there.
func (l *Learned) putBorder(im *image, b uint64, v Border) bool {
	at := findBorder(im.buf, b)
	if at >= 0 && at < l.opts.BorderBytes/2 && borderAt(im.buf[at:]) == v {
		return false
	}
	if at < 0 {
		at = len(im.buf)
		im.buf = im.buf[:at+borderBytes]
	}
	copy(im.buf[bordersHead+borderBytes:], im.buf[bordersHead:at])
	e := (*[borderBytes]byte)(im.buf[bordersHead:])
	binary.LittleEndian.PutUint64(e[0:], b)
	binary.LittleEndian.PutUint64(e[8:], v.Text)
	binary.LittleEndian.PutUint32(e[16:], v.At)
	binary.LittleEndian.PutUint32(e[20:], v.Of)
	binary.LittleEndian.PutUint32(e[24:], v.Tokens)
	if len(im.buf) > l.opts.BorderBytes {
		im.buf = im.buf[:len(im.buf)-borderBytes]
	}
	return true
}

// findBorder returns where the entry of b lies, -1 if there is none.
func findBorder(bucket []byte, b uint64) int {
	for at := bordersHead; at < len(bucket); at += borderBytes {
		if binary.LittleEndian.Uint64(bucket[at:]) == b {
			return at
		}
	}
	return -1
}

func borderAt(entry []byte) Border {
	e := (*[borderBytes]byte)(entry)
	return Border{
		Text:   binary.LittleEndian.Uint64(e[8:]),
		At:     binary.LittleEndian.Uint32(e[16:]),
		Of:     binary.LittleEndian.Uint32(e[20:]),
		Tokens: binary.LittleEndian.Uint32(e[24:]),
	}
}
