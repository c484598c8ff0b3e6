package shared

import "encoding/binary"

// A Lease says which VM of a proxy does what only one of them should. Value,
// all little-endian:
//
//	0  nonce    u64  who holds it; 0 = nobody
//	8  expires  i64  milliseconds since the Unix epoch
//	16 busy     u8   1 if the holder also serves streams
type Lease struct {
	store Store
	key   []byte
	nonce uint64
	busy  bool
	held  bool
	until int64
	buf   [leaseSize]byte
}

const leaseSize = 17

// LeaseTerm is how long a lease lasts unless renewed, in milliseconds. A VM
// that dies leaves its work undone for this long at most.
const LeaseTerm = 3000

// NewLease returns one VM's hand on the lease under key. nonce tells it from
// all other VMs and is not 0.
func NewLease(s Store, key []byte, nonce uint64) Lease {
	return Lease{store: s, key: key, nonce: nonce}
}

// Busy tells that this VM serves streams, so that it leaves the lease to one
// that does not.
func (l *Lease) Busy() { l.busy = true }

// Held says whether this VM holds the lease, as it last knew.
func (l *Lease) Held() bool { return l.held }

// Drop notes that another VM has the lease.
func (l *Lease) Drop() { l.held = false }

// Keep takes the lease if it is free, renews it when half its term is over,
// and reports whether this VM holds it. The main thread's VM never sees a
// stream, so nothing it does delays a request: a VM that has seen none takes
// the lease from one that has.
func (l *Lease) Keep(now int64) bool {
	if l.held && l.until-now > LeaseTerm/2 {
		return true
	}
	mine := false
	err := Update(l.store, l.key, func(value []byte) ([]byte, bool) {
		mine = l.mayTake(value, now)
		return l.encode(now + LeaseTerm), mine
	})
	l.held = mine && err == nil
	if l.held {
		l.until = now + LeaseTerm
	}
	return l.held
}

func (l *Lease) mayTake(value []byte, now int64) bool {
	if len(value) != leaseSize {
		return true
	}
	holder := binary.LittleEndian.Uint64(value)
	expires := int64(binary.LittleEndian.Uint64(value[8:]))
	free := holder == 0 || expires <= now || expires > now+LeaseTerm
	return free || holder == l.nonce || value[16] == 1 && !l.busy
}

// LeaseHeldBy says whether value is a lease that the VM with this nonce holds.
func LeaseHeldBy(value []byte, nonce uint64) bool {
	return len(value) == leaseSize && binary.LittleEndian.Uint64(value) == nonce
}

func (l *Lease) encode(until int64) []byte {
	binary.LittleEndian.PutUint64(l.buf[:], l.nonce)
	binary.LittleEndian.PutUint64(l.buf[8:], uint64(until))
	l.buf[16] = 0
	if l.busy {
		l.buf[16] = 1
	}
	return l.buf[:]
}

// Release gives the lease up, if this VM holds it, so that the next one need
// not wait for its end.
func (l *Lease) Release() {
	if !l.held {
		return
	}
	l.held = false
	// A lost update only means that the lease ends by itself.
	_ = Update(l.store, l.key, func(value []byte) ([]byte, bool) {
		if !LeaseHeldBy(value, l.nonce) {
			return nil, false
		}
		clear(l.buf[:])
		return l.buf[:], true
	})
}
