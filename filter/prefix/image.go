package prefix

import (
	"encoding/binary"
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// image is a copy of a bucket as it was when last read.
type image struct {
	valid  bool
	bucket uint32
	cas    uint32
	n      int
	buf    []byte
}

// Buckets begin with four bytes that say what they are and in which version.
const (
	magicBytes  = 4
	groupMagic  = 'W' | 'L'<<8 | 'G'<<16 | 1<<24
	borderMagic = 'W' | 'L'<<8 | 'B'<<16 | 1<<24
)

// borderImage is the image for buckets of borders; those before it are for
// the groups.
const borderImage = len(ladderGroups)

// maxTries bounds the compare-and-set loop. Three losses in a row mean that
// other workers write what is much the same, so giving up is safe.
const maxTries = 3

func magicOf(slot int) uint32 {
	if slot == borderImage {
		return borderMagic
	}
	return groupMagic
}

// get reads a bucket. The result is its entries, valid until the next call on
// the store; none if it is absent or not ours.
func (x *Index) get(bucket, magic uint32) (entries []byte, cas uint32, err error) {
	x.stats.Reads++
	x.key = shared.AppendBucketKey(x.key[:0], bucket)
	value, cas, err := x.store.Get(x.key)
	if errors.Is(err, shared.ErrNotFound) {
		return nil, shared.Absent, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !ours(value, magic) {
		x.stats.Damaged++
		return nil, cas, nil
	}
	return value[magicBytes:], cas, nil
}

func ours(value []byte, magic uint32) bool {
	if len(value) < magicBytes || binary.LittleEndian.Uint32(value) != magic {
		return false
	}
	return magic != borderMagic || (len(value)-magicBytes)%borderEntry == 0
}

// read makes the image of a bucket new.
func (x *Index) read(slot int, bucket uint32) (*image, error) {
	im := &x.images[slot]
	im.valid = false
	entries, cas, err := x.get(bucket, magicOf(slot))
	if err != nil {
		return nil, err
	}
	if len(entries) > len(im.buf)-magicBytes {
		x.stats.Damaged++
		entries = nil
	}
	binary.LittleEndian.PutUint32(im.buf, magicOf(slot))
	im.n = magicBytes + copy(im.buf[magicBytes:], entries)
	im.valid, im.bucket, im.cas = true, bucket, cas
	return im, nil
}

func (im *image) entries() []byte { return im.buf[magicBytes:im.n] }

// update applies change to a bucket and writes it back if change says that
// something changed, again from a new read if another worker was faster. The
// first attempt is made on the image that is there, if it is of this bucket:
// should it be out of date, the compare-and-set tells.
func (x *Index) update(slot int, bucket uint32, change func(*image) bool) error {
	for range maxTries {
		im := &x.images[slot]
		if !im.valid || im.bucket != bucket {
			if _, err := x.read(slot, bucket); err != nil {
				return err
			}
		}
		im.valid = false // change may leave it half done
		if !change(im) {
			return nil
		}
		x.stats.Writes++
		x.key = shared.AppendBucketKey(x.key[:0], bucket)
		err := x.store.Set(x.key, im.buf[:im.n], im.cas)
		if !errors.Is(err, shared.ErrCAS) {
			return err
		}
		x.stats.Conflicts++
	}
	return nil
}
