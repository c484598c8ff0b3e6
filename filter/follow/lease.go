package follow

import (
	"encoding/binary"

	"github.com/warmlane/warmlane/filter/shared"
)

// The lease says which VM of the proxy keeps the long poll open. Value, all
// little-endian:
//
//	0  nonce    u64  who holds it; 0 = nobody
//	8  expires  i64  milliseconds since the Unix epoch
//	16 busy     u8   1 if the holder also serves streams
const leaseSize = 17

// leaseTerm is how long a lease lasts unless renewed, in milliseconds. A VM
// that dies leaves its proxy without fresh state for this long at most.
const leaseTerm = 3000

type lease struct {
	store shared.Store
	nonce uint64
	busy  bool // this VM has seen a stream
	held  bool
	until int64
	buf   [leaseSize]byte
}

// keep takes the lease if it is free, renews it when half its term is over,
// and reports whether this VM holds it. The main thread's VM never sees a
// stream, so nothing it does delays a request: a VM that has seen none takes
// the lease from one that has.
func (l *lease) keep(now int64) bool {
	if l.held && l.until-now > leaseTerm/2 {
		return true
	}
	mine := false
	err := shared.Update(l.store, []byte(shared.LeaseKey), func(value []byte) ([]byte, bool) {
		mine = l.mayTake(value, now)
		return l.encode(now + leaseTerm), mine
	})
	l.held = mine && err == nil
	if l.held {
		l.until = now + leaseTerm
	}
	return l.held
}

func (l *lease) mayTake(value []byte, now int64) bool {
	if len(value) != leaseSize {
		return true
	}
	holder := binary.LittleEndian.Uint64(value)
	expires := int64(binary.LittleEndian.Uint64(value[8:]))
	free := holder == 0 || expires <= now || expires > now+leaseTerm
	return free || holder == l.nonce || value[16] == 1 && !l.busy
}

func (l *lease) encode(until int64) []byte {
	binary.LittleEndian.PutUint64(l.buf[:], l.nonce)
	binary.LittleEndian.PutUint64(l.buf[8:], uint64(until))
	l.buf[16] = 0
	if l.busy {
		l.buf[16] = 1
	}
	return l.buf[:]
}

// release gives the lease up, if this VM holds it, so that the next one need
// not wait for its end.
func (l *lease) release() {
	if !l.held {
		return
	}
	l.held = false
	// A lost update only means that the lease ends by itself.
	_ = shared.Update(l.store, []byte(shared.LeaseKey), func(value []byte) ([]byte, bool) {
		if len(value) != leaseSize || binary.LittleEndian.Uint64(value) != l.nonce {
			return nil, false
		}
		clear(l.buf[:])
		return l.buf[:], true
	})
}
