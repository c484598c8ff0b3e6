package abi

const (
	// maxResult is the largest result taken from the host. Reading more at once
	// would bring the VM near the host's limit of 1 GiB for its memory.
	maxResult = 256 << 20
	// maxKept is the largest buffer that is kept for reuse: a bigger one is left
	// to the collector at the next question of its kind.
	maxKept = 1 << 20
	// minBuffer is the first size of a buffer.
	minBuffer = 256
)

// buffer is the reusable memory for one kind of result.
type buffer struct {
	bytes []byte
}

// take returns size bytes of memory, nil if that is more than maxResult. For 0
// it still has an address, since the host takes a null pointer for a failure.
func (b *buffer) take(size uint32) []byte {
	if size > maxResult {
		return nil
	}
	if need := max(int(size), 1); need > len(b.bytes) {
		b.bytes = nil // free the old one first: it may be large
		b.bytes = make([]byte, roundUp(need))
	}
	return b.bytes[:size]
}

// trim lets go of a buffer that is too large to keep.
func (b *buffer) trim() {
	if len(b.bytes) > maxKept {
		b.bytes = nil
	}
}

// roundUp gives the next power of two up to maxKept, and from there on just
// what is asked for: such a buffer serves once.
func roundUp(n int) int {
	if n > maxKept {
		return n
	}
	size := minBuffer
	for size < n {
		size *= 2
	}
	return size
}
