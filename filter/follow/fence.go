package follow

import (
	"errors"

	"github.com/warmlane/warmlane/filter/shared"
)

// errDeposed says that another VM holds the lease now.
var errDeposed = errors.New("follow: another VM leads")

// fence is shared data as the leader writes it: a value goes in only while the
// lease is this VM's. A VM that was halted in the middle of its work thus
// cannot put something old over what the next leader wrote, given that every
// Set has the CAS number of a Get before it: if the lease is still held at a
// time between the two, the next leader writes after that Get, and either the
// Set fails or the next leader has read what it set.
type fence struct {
	shared.Store
	nonce uint64
	key   []byte // of the lease
}

func newFence(s shared.Store, nonce uint64) *fence {
	return &fence{Store: s, nonce: nonce, key: []byte(shared.LeaseKey)}
}

// Set implements shared.Store.
func (f *fence) Set(key, value []byte, cas uint32) error {
	holder, _, err := f.Get(f.key)
	if err != nil {
		return err
	}
	if !shared.LeaseHeldBy(holder, f.nonce) {
		return errDeposed
	}
	return f.Store.Set(key, value, cas)
}
