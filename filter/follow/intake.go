package follow

import (
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// sliceBuckets is how many buckets of the KV index are written in one call at
// most, which takes about 2 ms in a Wasm VM.
const sliceBuckets = 256

// intake brings what control answered into shared data: first the KV records,
// a slice at a time, then the state they belong to. So whoever finds a state
// in shared data may go on from it: the index has at least all that was said
// up to then. Having more of it does no harm, records being states themselves.
//
// An index that a whole has begun is complete only after the state of that
// whole is out. So a complete index is never one of another control instance,
// whose slots may be others, than the state is.
type intake struct {
	store shared.Store
	index *kvindex.Writer
	blob  []byte

	queued bool // the records of a page may not all be in the index
	ready  bool // once they are, the state is to be published
	whole  bool // and the index is then complete
	err    error
}

// take begins a term with what is in shared data. It returns false if there is
// no index to go on with.
func (in *intake) take() (resumed bool) {
	*in = intake{store: in.store, index: kvindex.NewWriter(in.store, kvindex.Options{}), blob: in.blob}
	resumed, err := in.index.Resume()
	return resumed && err == nil
}

// Begin implements state.Records.
func (in *intake) Begin() {
	in.whole = true
	in.err = in.index.Begin()
}

// Record implements state.Records.
func (in *intake) Record(_ string, id uint64, payload []byte) { in.index.Queue(id, payload) }

// page tells that a page was taken, and whether it was the last of its answer.
func (in *intake) page(last bool) error {
	in.queued, in.ready = true, last
	err := in.err
	in.err = nil
	return err
}

// step writes a slice, and publishes s if that was the last one of an answer.
func (in *intake) step(s *state.Snapshot) (published bool, err error) {
	done, err := in.index.Apply(sliceBuckets)
	if err != nil || !done {
		return false, err
	}
	in.queued = false
	if !in.ready {
		return false, nil
	}
	in.ready = false
	in.blob = state.AppendSnapshot(append(in.blob[:0], make([]byte, shared.SequenceSize)...), s)
	if _, err := shared.Publish(in.store, []byte(shared.StateKey), in.blob); err != nil {
		return false, err
	}
	if in.whole {
		in.whole = false
		err = in.index.Complete()
	}
	return true, err
}
