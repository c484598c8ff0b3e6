package exchange

// keeper bounds the bytes of requests that a worker holds on to: bodies that
// may have to be sent to /tokenize, and token ids. Its buffers are used again.
type keeper struct {
	free  [][]byte
	held  int // bytes of all buffers that are out
	spent []byte
}

const (
	// maxKept is how much a worker holds of all its requests.
	maxKept = 16 << 20
	// maxFree is how many buffers are kept for the next requests, and maxReused
	// how large one may be.
	maxFree   = 8
	maxReused = 256 << 10
	firstKept = 4 << 10
)

// append adds chunk to b, which is nil or came from here. It says no, and takes
// b back, if b would become larger than most or all buffers together too large.
func (k *keeper) append(b, chunk []byte, most int) (grown []byte, ok bool) {
	k.settle()
	need := len(b) + len(chunk)
	if need > most {
		k.release(b)
		return nil, false
	}
	if need > cap(b) {
		if b, ok = k.grow(b, need); !ok {
			return nil, false
		}
	}
	return append(b, chunk...), true
}

// grow moves b to a buffer of at least need bytes.
func (k *keeper) grow(b []byte, need int) (grown []byte, ok bool) {
	if n := len(k.free); n > 0 && b == nil {
		b, k.free = k.free[n-1], k.free[:n-1]
		k.held += cap(b)
		if need <= cap(b) {
			return b, true
		}
	}
	size := max(firstKept, 2*cap(b))
	for size < need {
		size *= 2
	}
	if k.held-cap(b)+size > maxKept {
		k.release(b)
		return nil, false
	}
	k.held += size - cap(b)
	return append(make([]byte, 0, size), b...), true
}

// release takes b back.
func (k *keeper) release(b []byte) {
	if b == nil {
		return
	}
	k.held -= cap(b)
	if len(k.free) < maxFree && cap(b) <= maxReused {
		k.free = append(k.free, b[:0])
	}
}

// spend takes b back once the host has done with it, which is before the next
// call of append or spend.
func (k *keeper) spend(b []byte) {
	k.settle()
	k.spent = b
}

func (k *keeper) settle() {
	if k.spent != nil {
		k.release(k.spent)
		k.spent = nil
	}
}
