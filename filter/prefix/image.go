package prefix

import (
	"encoding/binary"
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// image is a copy of a bucket as this worker last saw or wrote it.
type image struct {
	valid   bool
	guessed bool // cas is: the last to write it was this worker
	bucket  uint32
	cas     uint32
	used    uint32 // the cache's count of uses at the last one
	at      int64  // when it was all of the bucket
	n       int
	buf     []byte
}

// Buckets begin with four bytes that say what they are and in which version.
const (
	magicBytes  = 4
	groupMagic  = 'W' | 'L'<<8 | 'G'<<16 | 1<<24
	borderMagic = 'W' | 'L'<<8 | 'B'<<16 | 1<<24
)

// maxTries bounds the compare-and-set loop. Three losses in a row mean that
// other workers write what is much the same, so giving up is safe.
const maxTries = 3

func ours(value []byte, magic uint32) bool {
	if len(value) < magicBytes || binary.LittleEndian.Uint32(value) != magic {
		return false
	}
	return magic != borderMagic || (len(value)-magicBytes)%borderEntry == 0
}

// image gives the bucket as it was at most age milliseconds ago.
func (x *Index) image(c *cache, bucket uint32, age int64) (*image, error) {
	if im := c.find(bucket); im != nil && im.shows(x.now, age) {
		return im, nil
	}
	return x.read(c, bucket)
}

// read makes the image of a bucket new. A bucket that is absent or not ours is
// empty.
func (x *Index) read(c *cache, bucket uint32) (*image, error) {
	im := c.claim(bucket)
	x.stats.Reads++
	x.key = shared.AppendBucketKey(x.key[:0], bucket)
	value, cas, err := x.store.Get(x.key)
	switch {
	case errors.Is(err, shared.ErrNotFound):
		value, cas = nil, shared.Absent
	case err != nil:
		return nil, err
	case len(value) > len(im.buf) || !ours(value, c.magic):
		x.stats.Damaged++
		value = nil
	}
	binary.LittleEndian.PutUint32(im.buf, c.magic)
	im.n = max(magicBytes, copy(im.buf, value))
	x.learn(im, cas)
	im.valid, im.guessed, im.cas, im.at = true, false, cas, x.now
	return im, nil
}

// learn compares the number of a bucket with the one guessed, if it was.
func (x *Index) learn(im *image, cas uint32) {
	if im.guessed {
		x.numbers.off = cas != im.cas
	}
	if cas != shared.Absent {
		x.numbers.saw(cas, x.store.Sets())
	}
}

func (im *image) entries() []byte { return im.buf[magicBytes:im.n] }

// update applies change to a bucket and writes it back if change says that
// something changed, again from a new read if another worker was faster. The
// first attempt is made on the image that is there: should it be out of date,
// the compare-and-set tells.
func (x *Index) update(c *cache, bucket uint32, change func(*image) bool) (changed bool, err error) {
	for range maxTries {
		im, err := x.change(c, bucket, change)
		if im == nil || err != nil {
			return false, err
		}
		err = x.write(im)
		if !errors.Is(err, shared.ErrCAS) {
			return true, err
		}
		x.stats.Conflicts++
	}
	return true, nil
}

// change applies change to the image of a bucket and returns it, to be written.
// It returns nil if nothing changed.
func (x *Index) change(c *cache, bucket uint32, change func(*image) bool) (*image, error) {
	im, err := x.image(c, bucket, serveKnown)
	if err != nil || !change(im) {
		return nil, err
	}
	im.valid = false // until it is written
	if !im.guessed || !x.numbers.off {
		return im, nil
	}
	if im, err = x.read(c, bucket); err != nil || !change(im) {
		return nil, err
	}
	im.valid = false
	return im, nil
}

func (x *Index) write(im *image) error {
	x.stats.Writes++
	x.key = shared.AppendBucketKey(x.key[:0], im.bucket)
	err := x.store.Set(x.key, im.buf[:im.n], im.cas)
	if err == nil {
		im.valid, im.guessed, im.cas, im.at = true, true, x.numbers.next(x.store.Sets()), x.now
	}
	return err
}
