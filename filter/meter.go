//go:build wasip1

package main

import (
	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/exchange"
)

var hostKinds = [...]abi.MetricType{
	exchange.Counter: abi.Counter, exchange.Gauge: abi.Gauge, exchange.Histogram: abi.Histogram,
}

// record hands one value of a tally to the host's metrics. A metric is defined
// when it first has a value, so that a page of metrics shows what happened.
func record(m *exchange.Metric, value uint64) {
	if !m.Defined {
		id, err := abi.DefineMetric(hostKinds[m.Kind], m.Name)
		if err != nil {
			return
		}
		m.ID, m.Defined = id, true
	}
	if m.Kind == exchange.Counter {
		_ = abi.IncrementMetric(m.ID, int64(value))
	} else {
		_ = abi.RecordMetric(m.ID, value)
	}
}
