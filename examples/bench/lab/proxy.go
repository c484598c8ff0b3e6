package lab

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/warmlane/warmlane/filter/exchange"
	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/shared"
	"github.com/warmlane/warmlane/filter/state"
)

// proxy is one Envoy: workers that share data.
type proxy struct {
	store   *shared.Mem
	workers []*exchange.Worker
	index   *kvindex.Writer
}

// tickEvery is how often every worker's tick comes.
const tickEvery = 250 * time.Millisecond

// epoch is the start of virtual time in the world of workers, in ms.
const epoch = 1_800_000_000_000

func millis(now time.Duration) int64 { return epoch + now.Milliseconds() }

func newProxy(c *exchange.Config, n int, clock *clock, dice *rand.Rand) *proxy {
	x := &proxy{store: shared.NewMem()}
	x.index = kvindex.NewWriter(x.store.View(), kvindex.Options{})
	for range n {
		x.workers = append(x.workers, exchange.NewWorker(c, exchange.Env{
			Store: x.store.View(),
			Now:   func() int64 { return millis(clock.now) },
			Dice:  dice.Uint64,
		}))
	}
	return x
}

// publish does what the leading worker does with new state.
func (x *proxy) publish(s *state.Snapshot, now time.Duration) error {
	framed := state.AppendSnapshot(make([]byte, shared.SequenceSize), s)
	if _, err := shared.Publish(x.store.View(), []byte(shared.StateKey), framed); err != nil {
		return err
	}
	x.workers[0].Announce(millis(now))
	return nil
}

// begin starts an empty index of blocks.
func (x *proxy) begin() error {
	if err := x.index.Begin(); err != nil {
		return err
	}
	return x.index.Complete()
}

// apply writes what is queued for the index.
func (x *proxy) apply() error {
	for {
		if done, err := x.index.Apply(64); done || err != nil {
			return err
		}
	}
}

// tick does what is due now and then; counts are thrown away.
func (x *proxy) tick(now time.Duration) {
	for i, w := range x.workers {
		w.Tick(millis(now), i == 0)
		w.Doubts(func(uint16) {})
		w.Tally().Drain(func(*exchange.Metric, uint64) {})
	}
}

// address is the engine's as control gives it.
func address(slot int) string { return fmt.Sprintf("10.0.0.%d:8000", slot+1) }

// slotOf finds the engine that a list of addresses names first, -1 if none.
func slotOf(addresses []byte) int {
	const before, after = "10.0.0.", ":8000"
	for i := range addresses {
		if addresses[i] != ':' || i < len(before) {
			continue
		}
		n, err := strconv.Atoi(string(addresses[len(before):i]))
		if err != nil {
			break
		}
		return n - 1
	}
	return -1
}
