package shared

import "errors"

// Store is the shared data of one proxy: byte strings under keys, each with a
// compare-and-set number, seen by every worker. Its rules are those of Envoy's
// Proxy-Wasm host (proxy-wasm-cpp-host, src/shared_data.cc); [Conform] states
// them as a check that any implementation must pass.
type Store interface {
	// Get returns the value of key and its CAS number, which is never 0.
	// The value is owned by the store and valid until the next call on it.
	// An absent key gives ErrNotFound.
	Get(key []byte) (value []byte, cas uint32, err error)

	// Set stores a copy of value under key. CAS 0 overwrites whatever is
	// there. Any other number must equal the key's present one, or the call
	// changes nothing and gives ErrCAS; on an absent key every number is
	// accepted. So Absent, which never occurs, creates a key only if nobody
	// else did. One counter numbers the successful calls of all workers for
	// all keys, in steps of 1, over 0.
	Set(key, value []byte, cas uint32) error

	// Sets is how many calls of Set on this view have succeeded; it wraps. As
	// Set does not tell the number it gave, this is what a worker that was
	// undisturbed can work it out by.
	Sets() uint32
}

// Absent as the CAS number of Set creates the key or fails with ErrCAS.
const Absent = ^uint32(0)

var (
	// ErrNotFound says that the key was never set.
	ErrNotFound = errors.New("shared data: key not found")
	// ErrCAS says that another worker changed the key in between.
	ErrCAS = errors.New("shared data: compare-and-set mismatch")
)
