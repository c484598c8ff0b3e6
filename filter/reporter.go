//go:build wasip1

package main

import (
	"errors"
	"math/rand/v2"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/exchange"
	"github.com/warmlane/warmlane/filter/report"
)

// reporter is the role of the module beside a replica: it says with every
// answer how loaded the engine is.
type reporter struct {
	config  *exchange.ReportConfig
	core    *report.Reporter
	free    []*reported
	call    uint32 // the open one for the metrics, if calling
	calling bool

	panics   exchange.Metric
	panicked uint64
}

func newReporter(c *exchange.ReportConfig) *reporter {
	core := report.New(
		report.Config{Engine: c.Cluster, IntervalMS: c.IntervalMS, MaxBytes: int(c.MaxBytes)},
		report.Env{Store: &store{}, Dice: rand.Uint64, Counts: exchange.Counts},
	)
	return &reporter{config: c, core: core, panics: exchange.Metric{Name: "warmlane_panics_total"}}
}

// period is that of the ticks: each may read the metrics.
func (r *reporter) period() uint32 { return uint32(min(r.config.IntervalMS, tickMillis)) }

// tick reads the engine's metrics if that is due.
func (r *reporter) tick() error {
	if n := abi.Panics(); n > r.panicked {
		record(&r.panics, n-r.panicked)
		r.panicked = n
	}
	if !r.core.Tick(nowMillis()) {
		return nil
	}
	var headers abi.Encoder
	headers.Add(":method", "GET")
	headers.Add(":path", r.config.Path)
	headers.Add(":authority", "engine")
	call, err := abi.HTTPCall(r.config.Cluster, &headers, nil, nil, uint32(r.config.TimeoutMS))
	r.call, r.calling = call, err == nil
	if err != nil {
		r.core.Failed()
		err = errors.New("engine: cluster " + r.config.Cluster + ": " + err.Error())
	}
	return err
}

// scraped takes the engine's answer.
func (p *plugin) scraped(call uint32, headers, size int) {
	r := p.reporter
	if !r.calling || call != r.call {
		return
	}
	r.calling = false
	if headers == 0 {
		r.core.Failed()
		p.complain("engine: cluster " + r.config.Cluster + ": no answer")
	} else if err := r.core.Answer(nowMillis(), status(), size, part); err != nil {
		p.complain(err.Error())
	} else {
		p.lastErr = ""
	}
}

// part gives a part of the body of a call's answer.
func part(offset, size int) []byte {
	b, err := abi.Buffer(abi.CallBody, offset, size)
	if err != nil {
		return nil
	}
	return b
}

func (r *reporter) stream() abi.Stream {
	r.core.Busy()
	n := len(r.free)
	if n == 0 {
		return &reported{reporter: r, exchange: r.core.NewExchange()}
	}
	s := r.free[n-1]
	r.free = r.free[:n-1]
	s.exchange.Reset()
	return s
}

// reported translates one exchange for the report. It holds and changes no
// body.
type reported struct {
	reporter *reporter
	exchange *report.Exchange
	headers  abi.Pairs
}

// OnRequestHeaders implements abi.Stream.
func (s *reported) OnRequestHeaders(_ int, end bool) types.Action {
	if abi.ReadHeaders(abi.RequestHeaders, &s.headers) == nil && s.exchange.RequestHeaders(&s.headers, nowMillis(), end) {
		_ = abi.RemoveHeader(abi.RequestHeaders, report.WorkHeader)
	}
	return types.ActionContinue
}

// OnRequestBody implements abi.Stream.
func (s *reported) OnRequestBody(size int, end bool) types.Action {
	if s.exchange.CountsRequest() {
		s.exchange.RequestBody(size, nowMillis(), end)
	}
	return types.ActionContinue
}

// OnRequestTrailers implements abi.Stream: with trailers they are the end.
func (s *reported) OnRequestTrailers(int) types.Action { return s.OnRequestBody(0, true) }

// OnResponseHeaders implements abi.Stream.
func (s *reported) OnResponseHeaders(_ int, end bool) types.Action {
	if abi.ReadHeaders(abi.ResponseHeaders, &s.headers) != nil {
		return types.ActionContinue
	}
	stamp, bin := s.exchange.ResponseHeaders(&s.headers, nowMillis(), end)
	_ = abi.ReplaceHeader(abi.ResponseHeaders, report.ReportHeader, stamp)
	if bin {
		_ = abi.RemoveHeader(abi.ResponseHeaders, report.BinaryHeader)
	}
	return types.ActionContinue
}

// OnResponseBody implements abi.Stream.
func (s *reported) OnResponseBody(size int, end bool) types.Action {
	if s.exchange.ReadsResponse() {
		s.exchange.ResponseBody(chunk(abi.ResponseBody, size), nowMillis())
	}
	if end {
		s.exchange.ResponseEnd()
	}
	return types.ActionContinue
}

// OnResponseTrailers implements abi.Stream.
func (s *reported) OnResponseTrailers(int) types.Action {
	s.exchange.ResponseEnd()
	return types.ActionContinue
}

// OnLog settles the exchange, whichever way it ended.
func (s *reported) OnLog() { s.exchange.Settle(nowMillis()) }

// OnDone implements abi.Stream.
func (s *reported) OnDone() bool { return true }

// OnDelete implements abi.Stream. Settling twice does nothing.
func (s *reported) OnDelete() {
	s.exchange.Settle(nowMillis())
	s.reporter.free = append(s.reporter.free, s)
}
