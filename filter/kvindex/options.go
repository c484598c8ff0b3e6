package kvindex

// Options are the sizes of the index and of what is learned. All workers of a
// proxy must have the same. A zero field has its default.
type Options struct {
	Buckets     int // of the index; 2,048
	BucketBytes int // size of each at most, 256 bytes to 64 KiB; 8 KiB
	Path        int // nodes read for one look-up at most; 512

	Borders     int // buckets of borders; 4,096
	BorderBytes int // size of each at most, 64 bytes to 64 KiB; 1 KiB

	Prompts     int // buckets of prompts whose blocks were asked for; 1,024
	PromptBytes int // size of each at most, 256 bytes to 64 KiB; 16 KiB
}

func (o Options) withDefaults() Options {
	o.Buckets = within(o.Buckets, 2048, 1, 1<<20)
	o.BucketBytes = within(o.BucketBytes, 8<<10, 256, 64<<10)
	o.Path = within(o.Path, 512, 1, 1<<16)
	o.Borders = within(o.Borders, 4096, 1, 1<<20)
	o.BorderBytes = within(o.BorderBytes, 1<<10, 64, 64<<10)
	o.Prompts = within(o.Prompts, 1024, 1, 1<<20)
	o.PromptBytes = within(o.PromptBytes, 16<<10, 256, 64<<10)
	return o
}

func within(n, byDefault, low, high int) int {
	if n == 0 {
		return byDefault
	}
	return min(max(n, low), high)
}

// Stats counts what was done since the start.
type Stats struct {
	Reads, Writes uint64 // calls on the store
	Conflicts     uint64 // writes that another worker's were before
	Damaged       uint64 // values or records that were not ours to read, taken as absent
	Dropped       uint64 // records that found no room in their bucket
}
