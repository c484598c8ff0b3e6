//go:build wasip1

package main

import "github.com/warmlane/warmlane/filter/abi"

// OnTick implements abi.Plugin.
func (p *plugin) OnTick() {
	if p.reporter != nil {
		if err := p.reporter.tick(); err != nil {
			p.complain(err.Error())
		}
	}
	if p.worker == nil {
		return
	}
	now := nowMillis()
	if p.follower != nil {
		if p.follower.Pending() {
			p.took(now, p.follower.Work(now))
		}
		p.poll(now)
	}
	if late := now - p.dueAt; late >= 0 || late < -tickMillis { // or the clock was set back
		p.dueAt = now + tickMillis - hurryMillis
		p.keepHouse(now)
	}
}

// keepHouse does what every VM does each tickMillis, however often it ticks.
func (p *plugin) keepHouse(now int64) {
	leading := p.follower != nil && p.follower.Leading()
	p.worker.Tick(now, leading)
	if p.follower != nil {
		p.worker.Doubts(p.follower.Doubt)
	}
	if leading {
		p.worker.Freshness(p.follower.Age(now), p.follower.Generation())
	}
	p.worker.Panics(abi.Panics())
	p.worker.Tally().Drain(record)
}

// tickEvery sets the period of the ticks, in milliseconds.
func (p *plugin) tickEvery(period uint32) error {
	if period == p.period {
		return nil
	}
	p.period = period
	return abi.SetTickPeriod(period)
}

// pace makes the ticks as fast as the follower's work needs them.
func (p *plugin) pace() {
	period := uint32(tickMillis)
	if p.follower.Pending() {
		period = hurryMillis
	}
	if err := p.tickEvery(period); err != nil {
		p.complain("ticks: " + err.Error())
	}
}

// poll makes the call to control that is due, if there is one.
func (p *plugin) poll(now int64) {
	path, ok := p.follower.Next(now)
	p.pace()
	if !ok {
		return
	}
	c := p.config.Control
	var headers abi.Encoder
	headers.Add(":method", "GET")
	headers.Add(":path", path)
	headers.Add(":authority", c.Authority)
	if c.Token != "" {
		headers.Add("authorization", "Bearer "+c.Token)
	}
	call, err := abi.HTTPCall(c.Cluster, &headers, nil, nil, uint32(c.TimeoutMS))
	p.call, p.calling = call, err == nil
	if err != nil {
		p.follower.Failed(now)
		p.complain("control: cluster " + c.Cluster + ": " + err.Error())
	}
}

// OnHTTPCallResponse implements abi.Plugin.
func (p *plugin) OnHTTPCallResponse(call uint32, headers, size, _ int) {
	if p.reporter != nil {
		p.scraped(call, headers, size)
		return
	}
	if p.answered(call, headers, size) || !p.calling || call != p.call {
		return
	}
	p.calling = false
	now := nowMillis()
	if headers == 0 {
		p.follower.Failed(now)
		p.took(now, false)
	} else {
		p.took(now, p.follower.Answer(now, status(), chunk(abi.CallBody, size)))
	}
	p.poll(now)
}

// took tells the workers of a new state, if there is one, and the log of what
// was wrong with control's answer.
func (p *plugin) took(now int64, changed bool) {
	if changed {
		p.worker.Announce(now)
	}
	if err := p.follower.Err(); err != nil {
		p.complain(err.Error())
	} else {
		p.lastErr = ""
	}
}

func status() int {
	b, err := abi.Header(abi.CallHeaders, ":status")
	if err != nil {
		return 0
	}
	n := 0
	for _, c := range b {
		n = n*10 + int(c-'0')
	}
	return n
}

// complain logs an error once until another one, or none, has come.
func (p *plugin) complain(err string) {
	if err != p.lastErr {
		p.lastErr = err
		abi.Log(abi.LogWarn, "warmlane: "+err)
	}
}
