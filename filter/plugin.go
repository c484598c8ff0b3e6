//go:build wasip1

package main

import (
	"math/rand/v2"

	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/exchange"
	"github.com/warmlane/warmlane/filter/follow"
)

func init() {
	abi.Register(func(uint32) abi.Plugin { return &plugin{} })
}

// Each VM hands over its counts and looks after its lease and its seat every
// tickMillis. While the leader brings an answer of control into shared data a
// slice at a time, it ticks every hurryMillis.
const (
	tickMillis  = 250
	hurryMillis = 5
)

// plugin is one configuration in one VM.
type plugin struct {
	abi.BasePlugin
	config   *exchange.Config
	worker   *exchange.Worker
	follower *follow.Follower
	reporter *reporter // nil in the role that routes
	free     []*stream
	asked    []question
	call     uint32 // the open poll, if calling
	calling  bool
	period   uint32 // of the ticks, in milliseconds
	dueAt    int64  // when all of the tick's work is to be done again
	lastErr  string
}

func nowMillis() int64 { return abi.Now() / 1e6 }

// OnConfigure reads the configuration. It also runs in a VM that the host
// throws away, so nothing here touches shared data or metrics.
func (p *plugin) OnConfigure(size int) bool {
	data, err := abi.AppendBuffer(nil, abi.PluginConfiguration, 0, size)
	if err != nil && size > 0 {
		abi.Log(abi.LogCritical, "warmlane: configuration cannot be read: "+err.Error())
		return false
	}
	p.config, err = exchange.ParseConfig(data)
	if err != nil {
		abi.Log(abi.LogCritical, "warmlane: configuration refused: "+err.Error())
		return false
	}
	if p.config.Reports() {
		p.reporter = newReporter(&p.config.Report)
		return p.ticks(p.reporter.period())
	}
	store := &store{}
	p.worker = exchange.NewWorker(p.config, exchange.Env{Store: store, Now: nowMillis, Dice: rand.Uint64})
	if p.config.Control.Cluster != "" {
		p.follower = follow.New(store, rand.Uint64, p.config.PoolNames())
	}
	return p.ticks(tickMillis)
}

// ticks sets the first period and says whether the plugin can go on.
func (p *plugin) ticks(period uint32) bool {
	if err := p.tickEvery(period); err != nil {
		abi.Log(abi.LogCritical, "warmlane: no ticks: "+err.Error())
		return false
	}
	return true
}

// NewStream implements abi.Plugin.
func (p *plugin) NewStream(id uint32) abi.Stream {
	if p.reporter != nil {
		return p.reporter.stream()
	}
	if p.worker == nil {
		return nil
	}
	if p.follower != nil {
		p.follower.Busy()
	}
	n := len(p.free)
	if n == 0 {
		return &stream{plugin: p, id: id, exchange: p.worker.NewExchange()}
	}
	s := p.free[n-1]
	p.free = p.free[:n-1]
	s.id, s.waiting = id, false
	s.exchange.Reset()
	return s
}

// OnDone gives up what other VMs would otherwise wait for.
func (p *plugin) OnDone() bool {
	if p.reporter != nil {
		p.reporter.core.Close()
	}
	if p.follower != nil {
		p.follower.Close()
	}
	if p.worker != nil {
		p.worker.Tally().Drain(record)
	}
	return true
}
