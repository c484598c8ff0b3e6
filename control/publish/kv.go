package publish

// KV is what is known of the KV index of one replica.
type KV struct {
	Blocks    int    // that it is known to hold
	BlockSize uint32 // tokens; 0 = not known
	LastSeq   int64  // number of the last batch of events; -1 = none yet
	Partial   bool   // it may hold more than is known
	Epoch     uint64 // counts how often the index of this replica was begun anew
}

// KVFunc tells what is known of the KV index of the replica in a slot; ok is
// false if it has none. It is called by many goroutines.
type KVFunc func(slot uint16) (kv KV, ok bool)

// of is f, or knows nothing if there is no f.
func (f KVFunc) of(slot uint16) (kv KV, ok bool) {
	if f == nil {
		return KV{}, false
	}
	return f(slot)
}
