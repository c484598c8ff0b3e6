package follow

import (
	"errors"
	"slices"
	"strconv"

	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// Back-off between failed polls, in milliseconds: it doubles from the first
// to the last, and a random half is taken off.
const (
	firstBackoff = 200
	lastBackoff  = 10_000
)

// Follower is one VM's part in keeping up with control.
type Follower struct {
	lease    shared.Lease
	store    shared.Store
	dice     func() uint64
	pools    []string
	view     state.View
	intake   intake
	doubts   []uint16 // to be said with the next poll
	polling  bool
	dueAt    int64
	failures int
	heardAt  int64 // when control last confirmed what is in force; 0 = never
	err      error
}

// New returns the follower of one VM. dice gives uniform random numbers; one
// of them names this VM in the lease. pools are those to ask control for.
func New(store shared.Store, dice func() uint64, pools []string) *Follower {
	nonce := dice()
	for nonce == 0 {
		nonce = dice()
	}
	f := &Follower{
		lease: shared.NewLease(store, []byte(shared.LeaseKey), nonce), store: store, dice: dice, pools: pools,
		intake: intake{store: newFence(store, nonce)},
	}
	f.view.Records = &f.intake
	return f
}

// Busy tells that this VM serves streams, so that it leaves the lease to one
// that does not.
func (f *Follower) Busy() { f.lease.Busy() }

// Leading says whether this VM holds the lease.
func (f *Follower) Leading() bool { return f.lease.Held() }

// Age is how long ago, in milliseconds, control confirmed the state in force;
// -1 if this VM has not heard from it.
func (f *Follower) Age(now int64) int64 {
	if f.heardAt == 0 {
		return -1
	}
	return now - f.heardAt
}

// Generation is control's number of the state this VM has last heard of.
func (f *Follower) Generation() uint64 { return f.view.Snapshot().Generation }

// Err is why the last poll failed; nil after one that did not.
func (f *Follower) Err() error { return f.err }

// Pending says that there is work to be gone on with, and soon: no poll is
// made before it is done.
func (f *Follower) Pending() bool { return f.lease.Held() && f.intake.queued }

// Next is called on every tick and after every answer. It returns the path
// of the call to make now, or ok false if there is none to make. now is in
// milliseconds since the Unix epoch.
func (f *Follower) Next(now int64) (path string, ok bool) {
	led := f.lease.Held()
	if !f.lease.Keep(now) {
		f.heardAt = 0
		return "", false
	}
	if !led {
		f.take(now)
	}
	if f.polling || f.Pending() || now < f.dueAt {
		return "", false
	}
	f.polling = true
	f.takeDoubts()
	return f.view.Query(f.pools, f.doubts...), true
}

// take begins a term: what an earlier leader left is a start, if it was made
// for the same pools and the KV index is complete; otherwise control is asked
// for the whole.
func (f *Follower) take(now int64) {
	f.polling, f.dueAt, f.failures = false, now, 0
	f.view.Restart()
	resumed := f.intake.take()
	_, blob, err := shared.LoadPublished(f.store, []byte(shared.StateKey))
	if err != nil || f.view.Load(blob) != nil {
		return
	}
	if !resumed || !f.samePools() {
		f.view.Restart()
	}
}

// samePools reports whether the state held is of the pools that are wanted.
func (f *Follower) samePools() bool {
	held := f.view.Snapshot().Pools
	return len(f.pools) == 0 || len(held) == len(f.pools) && !slices.ContainsFunc(held, func(p state.Pool) bool {
		return !slices.Contains(f.pools, p.Name)
	})
}

// Failed tells that the call could not be made, failed or timed out.
func (f *Follower) Failed(now int64) { f.fail(now, errCall) }

var errCall = errors.New("control: no answer")

// Answer takes in what control answered. changed means that a new snapshot
// lies in shared data, for the request side to adopt.
func (f *Follower) Answer(now int64, status int, body []byte) (changed bool) {
	f.polling = false
	if !f.lease.Held() {
		return false
	}
	switch status {
	case 200:
		return f.page(now, body)
	case 204:
		f.heard(now)
	default:
		f.fail(now, errors.New("control: status "+strconv.Itoa(status)))
	}
	return false
}

func (f *Follower) page(now int64, body []byte) (changed bool) {
	result, err := f.view.Apply(body)
	if err != nil {
		f.fail(now, err)
		return false
	}
	f.heard(now)
	if err := f.intake.page(result == state.Complete); err != nil {
		f.lose(now, err)
		return false
	}
	return f.Work(now)
}

// Work goes on with what is [Follower.Pending]: a slice of it, of about 2 ms.
// changed is as with Answer.
func (f *Follower) Work(now int64) (changed bool) {
	if !f.Pending() {
		return false
	}
	changed, err := f.intake.step(f.view.Snapshot())
	if err != nil {
		f.lose(now, err)
	}
	return changed
}

// lose gives up what could not be brought into shared data. Nobody knows how
// much of it is there, so the whole is asked for.
func (f *Follower) lose(now int64, err error) {
	f.intake.queued = false
	f.view.Restart()
	if errors.Is(err, errDeposed) {
		f.lease.Drop()
	}
	f.fail(now, err)
}

func (f *Follower) heard(now int64) {
	f.failures, f.dueAt, f.heardAt, f.err = 0, now, now, nil
	f.doubts = f.doubts[:0]
}

func (f *Follower) fail(now int64, err error) {
	wait := int64(firstBackoff) << min(f.failures, 6)
	if wait > lastBackoff {
		wait = lastBackoff
	}
	f.failures++
	f.polling, f.err = false, err
	f.dueAt = now + wait - int64(f.dice()%uint64(wait/2+1))
}

// Close gives up the lease, for the VM that comes next.
func (f *Follower) Close() { f.lease.Release() }
