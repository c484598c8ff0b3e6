package prefix

// How many milliseconds an image of a bucket serves instead of a new read. In
// that time another worker's entries are not seen, nor that it withdrew one.
// What is written goes through compare-and-set, so nothing of it is lost.
const (
	// serveAny is for an image whatever it says.
	serveAny = 20
	// serveKnown is for an image in which a replica has all that the bucket can
	// tell of the prompt: at worst a second such replica goes unnoticed, or one
	// that another worker learned never got the prompt is thought to have it.
	serveKnown = 1000
)

// How many images a cache has at most, and how much memory for them. Both
// caches together stay below 512 KiB with buckets of the default sizes. The
// images of one prompt always have room.
const (
	maxImages   = 64
	minImages   = 4
	cacheBudget = 384 << 10
)

// cache keeps the images of the buckets of one kind that this worker used
// last, because a read costs as much as all else the index does. Memory is
// taken when an image is first used and stays.
type cache struct {
	magic   uint32
	size    int
	uses    uint32
	buckets []uint32 // of the images, apart from them because all are looked at
	images  []image
}

const noBucket = ^uint32(0)

func newCache(magic uint32, size int) cache {
	n := max(min(maxImages, cacheBudget/size), minImages)
	c := cache{magic: magic, size: size, buckets: make([]uint32, n), images: make([]image, n)}
	for i := range c.buckets {
		c.buckets[i] = noBucket
	}
	return c
}

// find returns the image of a bucket, valid or not, or nil.
func (c *cache) find(bucket uint32) *image {
	for i, b := range c.buckets {
		if b == bucket {
			c.uses++
			c.images[i].used = c.uses
			return &c.images[i]
		}
	}
	return nil
}

// claim returns the image of a bucket or makes it the one longest unused, and
// in either case not yet valid.
func (c *cache) claim(bucket uint32) *image {
	im := c.find(bucket)
	if im == nil {
		oldest := c.oldest()
		c.buckets[oldest] = bucket
		im = &c.images[oldest]
		c.uses++
		im.bucket, im.used, im.guessed = bucket, c.uses, false
		if im.buf == nil {
			im.buf = make([]byte, c.size)
		}
	}
	im.valid = false
	return im
}

func (c *cache) oldest() int {
	oldest := 0
	for i := range c.images {
		if c.uses-c.images[i].used > c.uses-c.images[oldest].used {
			oldest = i
		}
	}
	return oldest
}

// shows reports whether im is what its bucket was at most age milliseconds
// before now. A clock that was set back makes it too old.
func (im *image) shows(now, age int64) bool {
	return im.valid && uint64(now-im.at) <= uint64(age)
}
