package lab

import (
	"fmt"
	"time"

	"github.com/warmlane/warmlane/control/collect/blocks"
	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/examples/replica/engine"
	wire "github.com/warmlane/warmlane/examples/replica/kvevents"
)

// collector is what control does with KV events: they become an index of
// blocks, and what changes in it goes to every proxy.
type collector struct {
	index   *blocks.Index
	batch   kvevents.Batch
	proxies []*proxy
	failed  error // the first error
}

func newCollector(s *fleet, proxies []*proxy) *collector {
	c := &collector{proxies: proxies}
	c.index = blocks.New(pool, c)
	for slot, r := range s.replicas {
		c.index.SetCapacity(uint16(slot), r.Config().Blocks-1)
	}
	return c
}

// Anomaly implements blocks.Counter. On events that all arrive, in order, there
// is none.
func (c *collector) Anomaly(a kvevents.Anomaly, n int) {
	c.fail(fmt.Errorf("the index of blocks met %d times what it calls %q", n, a))
}

// payload is the batch as it travels.
func payload(at time.Duration, events []engine.Event) []byte {
	return wire.Shape{}.AppendBatch(nil, float64(millis(at))/1000, events)
}

// take takes in the payload of a batch of the engine in a slot. Records are
// state, so all proxies get the same ones.
func (c *collector) take(slot int, payload []byte) {
	if err := kvevents.Decode(payload, &c.batch); err != nil {
		c.fail(err)
		return
	}
	c.index.Fold(blocks.At{Slot: uint16(slot)}, &c.batch)
	c.index.Records(func(id uint64, record []byte) {
		for _, x := range c.proxies {
			x.index.Queue(id, record)
		}
	})
	for _, x := range c.proxies {
		c.fail(x.apply())
	}
}

func (c *collector) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}
