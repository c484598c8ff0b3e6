package exchange

import "strings"

// Tally collects what happened, for the glue to hand to the host's metrics.
// Counters are summed here and handed over at the next tick, since a call of
// the host for each increment of each request would cost more than the
// routing. A VM that dies takes at most one tick of counts with it.
type Tally struct {
	metrics []*Metric
	dirty   []*Metric
	samples []Sample
}

// Kind says how the host keeps a metric.
type Kind uint8

// The kinds of the Proxy-Wasm ABI.
const (
	Counter Kind = iota
	Gauge
	Histogram
)

// Metric is one series. Its name carries its labels, as `name;key=value`,
// which the shipped stats-tag rules turn into Prometheus labels.
type Metric struct {
	Name string
	Kind Kind
	ID   uint32 // the host's number, once Defined
	// Defined says that the glue has defined the metric with the host.
	Defined bool
	// Pending is what a counter has gained since the last drain, or a
	// gauge's new value.
	Pending uint64
	dirty   bool
}

// Sample is one value for a histogram.
type Sample struct {
	Metric *Metric
	Value  uint64
}

// maxSamples bounds the histogram values kept between two ticks; what comes
// on top is dropped. At 4 values a request this is 8,000 requests/s.
const maxSamples = 8192

// NewTally returns an empty tally with room for its samples, so that nothing
// grows on the request path.
func NewTally() *Tally {
	return &Tally{samples: make([]Sample, 0, maxSamples)}
}

func (t *Tally) metric(kind Kind, name string) *Metric {
	m := &Metric{Name: name, Kind: kind}
	t.metrics = append(t.metrics, m)
	return m
}

func (t *Tally) add(m *Metric, n uint64) {
	if n == 0 {
		return
	}
	m.Pending += n
	t.touch(m)
}

func (t *Tally) set(m *Metric, value uint64) {
	if m.Pending == value && m.Defined {
		return
	}
	m.Pending = value
	t.touch(m)
}

func (t *Tally) touch(m *Metric) {
	if !m.dirty {
		m.dirty = true
		t.dirty = append(t.dirty, m)
	}
}

func (t *Tally) observe(m *Metric, value int64) {
	if value < 0 || len(t.samples) == maxSamples {
		return
	}
	t.samples = append(t.samples, Sample{m, uint64(value)})
}

// Drain hands every changed counter and gauge, and every sample, to record
// and forgets them. A counter's value is its increment.
func (t *Tally) Drain(record func(m *Metric, value uint64)) {
	for _, m := range t.dirty {
		record(m, m.Pending)
		m.dirty = false
		if m.Kind == Counter {
			m.Pending = 0
		}
	}
	for _, s := range t.samples {
		record(s.Metric, s.Value)
	}
	t.dirty, t.samples = t.dirty[:0], t.samples[:0]
}

// seriesName joins a metric's name and its labels, given as key, value, ...
// A ';' would end a value in the stats-tag rules, so it is replaced.
func seriesName(name string, labels ...string) string {
	var b strings.Builder
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		b.WriteByte(';')
		b.WriteString(labels[i])
		b.WriteByte('=')
		b.WriteString(strings.ReplaceAll(labels[i+1], ";", "_"))
	}
	return b.String()
}
