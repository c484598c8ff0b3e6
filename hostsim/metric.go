package hostsim

import "maps"

// Metrics is a copy of the proxy's custom metrics under the names the guest
// gave them; Envoy prefixes "wasmcustom." to each. The same name in several
// VMs is one metric.
type Metrics struct {
	Counters   map[string]uint64
	Gauges     map[string]uint64
	Histograms map[string][]uint64 // every recorded value, in order
}

type metricStore struct {
	counters, gauges map[string]uint64
	histograms       map[string][]uint64
}

func newMetricStore() *metricStore {
	return &metricStore{map[string]uint64{}, map[string]uint64{}, map[string][]uint64{}}
}

// Metrics returns the custom metrics as they are now.
func (h *Host) Metrics() Metrics {
	out := Metrics{maps.Clone(h.metrics.counters), maps.Clone(h.metrics.gauges), map[string][]uint64{}}
	for name, values := range h.metrics.histograms {
		out.Histograms[name] = append([]uint64(nil), values...)
	}
	return out
}

// vmMetrics maps one VM's metric ids to names. An id's low two bits are its
// kind, and ids grow by four within a kind.
type vmMetrics struct {
	names map[uint32]string
	next  [maxMetricType + 1]uint32
}

func newVMMetrics() vmMetrics {
	return vmMetrics{names: map[uint32]string{}, next: [...]uint32{metricCounter, metricGauge, metricHistogram}}
}

var metricCalls = []hostFunc{
	{name: "proxy_define_metric", signature: "iiii:i", run: callDefineMetric},
	{name: "proxy_increment_metric", signature: "iI:i", run: callIncrementMetric},
	{name: "proxy_record_metric", signature: "iI:i", run: callRecordMetric},
	{name: "proxy_get_metric", signature: "ii:i", run: callGetMetric},
}

func callDefineMetric(v *vm, a []uint64) uint32 {
	name, ok := v.readString(a[1], a[2])
	switch {
	case !ok:
		return uint32(statusInvalidMemory)
	case a[0] > maxMetricType:
		return uint32(statusBadArgument)
	}
	v.metrics.next[a[0]] += metricTypeMask + 1
	id := v.metrics.next[a[0]]
	v.metrics.names[id] = name
	v.host.metrics.define(uint32(a[0]), name)
	return uint32(written(v.put32(a[3], id)))
}

// define makes the metric visible with no value yet, as it is in Envoy.
func (m *metricStore) define(kind uint32, name string) {
	switch kind {
	case metricCounter:
		m.counters[name] += 0
	case metricGauge:
		m.gauges[name] += 0
	case metricHistogram:
		m.histograms[name] = append(m.histograms[name], nil...)
	}
}

func callIncrementMetric(v *vm, a []uint64) uint32 {
	id, delta := uint32(a[0]), int64(a[1])
	name, ok := v.metrics.names[id]
	switch kind := id & metricTypeMask; {
	case kind > metricGauge:
		return uint32(statusBadArgument)
	case !ok:
		return uint32(statusNotFound)
	case kind == metricCounter && delta <= 0:
		return uint32(statusBadArgument)
	case kind == metricCounter:
		v.host.metrics.counters[name] += uint64(delta)
	default:
		v.host.metrics.gauges[name] += uint64(delta)
	}
	return uint32(statusOK)
}

// callRecordMetric adds to a counter, sets a gauge and samples a histogram.
func callRecordMetric(v *vm, a []uint64) uint32 {
	id := uint32(a[0])
	name, ok := v.metrics.names[id]
	if !ok {
		return uint32(statusNotFound)
	}
	m := v.host.metrics
	switch id & metricTypeMask {
	case metricCounter:
		m.counters[name] += a[1]
	case metricGauge:
		m.gauges[name] = a[1]
	case metricHistogram:
		m.histograms[name] = append(m.histograms[name], a[1])
	}
	return uint32(statusOK)
}

func callGetMetric(v *vm, a []uint64) uint32 {
	id := uint32(a[0])
	name, ok := v.metrics.names[id]
	switch kind := id & metricTypeMask; {
	case kind > metricGauge:
		return uint32(statusBadArgument)
	case !ok:
		return uint32(statusNotFound)
	case kind == metricCounter:
		return uint32(written(v.put64(a[1], v.host.metrics.counters[name])))
	default:
		return uint32(written(v.put64(a[1], v.host.metrics.gauges[name])))
	}
}
