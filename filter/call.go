//go:build wasip1

package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/exchange"
)

// question is a call of an exchange that has not been answered: the exchange
// waits, or it is a job of the worker's.
type question struct {
	call   uint32
	job    uint32
	stream *stream // nil if nobody waits
}

// call makes the call of a verdict and says whether the request is to wait for
// it. One that cannot be made is as good as one that failed.
func (s *stream) call(m abi.MapType, c *exchange.Call) types.Action {
	job := c.Job
	id, err := post(c)
	switch {
	case job == 0 && err != nil:
		return s.act(m, s.exchange.Tokenized(0, nil))
	case err != nil:
		s.plugin.worker.Tokenized(job, 0, nil)
	case job == 0:
		s.waiting = true
		s.plugin.asked = append(s.plugin.asked, question{call: id, stream: s})
		return types.ActionPause
	default:
		s.plugin.asked = append(s.plugin.asked, question{call: id, job: job})
	}
	return types.ActionContinue
}

// post sends a call on its way. The header lets the override_host policy choose
// the replica; in a cluster without it any may answer.
func post(c *exchange.Call) (id uint32, err error) {
	var headers abi.Encoder
	headers.Add(":method", "POST")
	headers.Add(":path", c.Path)
	headers.Add(":authority", "replica")
	headers.Add("content-type", "application/json")
	if len(c.Replica) > 0 {
		headers.Add("x-gateway-destination-endpoint", string(c.Replica))
	}
	return abi.HTTPCall(c.Cluster, &headers, c.Body, nil, uint32(c.TimeoutMS))
}

// answered hands an answer to whoever asked; false says that nobody here did.
func (p *plugin) answered(call uint32, headers, size int) bool {
	for i, q := range p.asked {
		if q.call != call {
			continue
		}
		p.asked = append(p.asked[:i], p.asked[i+1:]...)
		code, body := 0, []byte(nil)
		if headers > 0 {
			code = status()
		}
		if code == 200 && size <= exchange.MaxAnswer {
			body = chunk(abi.CallBody, size)
		}
		if q.stream == nil {
			p.worker.Tokenized(q.job, code, body)
		} else {
			q.stream.resume(code, body)
		}
		return true
	}
	return false
}

// resume takes the answer that the request has waited for and lets it go on. If
// the host has no such stream any more, its end has been or will be told.
func (s *stream) resume(code int, body []byte) {
	s.waiting = false
	if abi.SetEffectiveContext(s.id) != nil {
		return
	}
	if s.act(abi.RequestHeaders, s.exchange.Tokenized(code, body)) == types.ActionContinue {
		_ = abi.ContinueStream(abi.RequestStream)
	}
}

// forget drops the question of a stream that is gone.
func (p *plugin) forget(s *stream) {
	for i, q := range p.asked {
		if q.stream == s {
			p.asked = append(p.asked[:i], p.asked[i+1:]...)
			return
		}
	}
}
