//go:build wasip1

package abi

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// One buffer for each kind of question, so that answers of different kinds can
// be held side by side. stray takes what the host allocates unasked.
var (
	headerBuffer, pairsBuffer, bodyBuffer, propertyBuffer  buffer
	sharedBuffer, queueBuffer, foreignBuffer, statusBuffer buffer
	stray                                                  buffer
)

// result is where the host writes its answers, and target the buffer its next
// allocation comes from.
var (
	result struct {
		data, size, word, flags uint32
		wide                    uint64
	}
	target = &stray
)

// expect prepares for a question whose answer goes into b. The host leaves the
// addresses alone if the answer is empty, so they are cleared.
func (b *buffer) expect() {
	b.trim()
	result.data, result.size = 0, 0
	target = b
}

// fetch is what the host wrote into b since expect.
func (b *buffer) fetch(status uint32) ([]byte, error) {
	target = &stray
	if status != 0 {
		return nil, check(status)
	}
	if result.size == 0 {
		return b.bytes[:0:0], nil
	}
	if int(result.size) > len(b.bytes) || uintptr(result.data) != uintptr(start(b.bytes)) {
		return nil, types.ErrorInternalFailure
	}
	return b.bytes[:result.size:result.size], nil
}

// start and length spell a slice the way the host reads it.
func start(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func length(b []byte) uint32 { return uint32(len(b)) }

// allocate is the host's malloc. It runs inside host calls, where the host
// allows no call back, and it must not fail on size 0.
//
//lint:ignore U1000 the host calls it
//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) unsafe.Pointer { return start(target.take(size)) }
