//go:build wasip1

package main

import "github.com/warmlane/warmlane/filter/abi"

// OnTick implements abi.Plugin.
func (p *plugin) OnTick() {
	if p.worker == nil {
		return
	}
	now := nowMillis()
	leading := p.follower != nil && p.follower.Leading()
	p.worker.Tick(now, leading)
	if p.follower != nil {
		p.poll(now)
		if leading {
			p.worker.Freshness(p.follower.Age(now), p.follower.Generation())
		}
	}
	p.worker.Panics(abi.Panics())
	p.worker.Tally().Drain(record)
}

// poll makes the call to control that is due, if there is one.
func (p *plugin) poll(now int64) {
	path, ok := p.follower.Next(now)
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
	if !p.calling || call != p.call {
		return
	}
	p.calling = false
	now := nowMillis()
	if headers == 0 {
		p.follower.Failed(now)
	} else if p.follower.Answer(now, status(), chunk(abi.CallBody, size)) {
		p.worker.Announce(now)
	}
	if err := p.follower.Err(); err != nil {
		p.complain(err.Error())
	} else {
		p.lastErr = ""
	}
	p.poll(now)
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
