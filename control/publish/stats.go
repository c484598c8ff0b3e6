package publish

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmlane/warmlane/filter/state"
)

// Stats are the metrics of what is published. The state's own come from the
// hub when they are asked for, so that they cannot disagree with it.
type Stats struct {
	hub     *Hub
	kv      KVFunc
	waiters prometheus.Gauge
	bytes   prometheus.Counter
}

var (
	descReplicas = prometheus.NewDesc("warmlane_control_replicas",
		"Replicas by what control thinks of them.", []string{"pool", "state"}, nil)
	descUnknown = prometheus.NewDesc("warmlane_control_load_unknown",
		"Replicas that answer scrapes but whose metrics lack a part of the load.", []string{"pool", "signal"}, nil)
	descAge = prometheus.NewDesc("warmlane_control_scrape_age_seconds",
		"Time since the last good scrape of the healthy replica that was scraped longest ago.", nil, nil)
	descGeneration = prometheus.NewDesc("warmlane_control_state_generation",
		"Generation of the latest state; 0 if there is none yet.", nil, nil)
	descBlocks = prometheus.NewDesc("warmlane_control_kv_blocks",
		"Blocks that the KV index knows a replica to hold.", []string{"pool", "slot"}, nil)
	descPartial = prometheus.NewDesc("warmlane_control_kv_partial",
		"1 if a replica may hold blocks that its KV index does not know.", []string{"pool", "slot"}, nil)
	descDropped = prometheus.NewDesc("warmlane_control_kv_records_dropped_total",
		"KV records that were left out because the index was full.", nil, nil)
)

// NewStats returns the metrics of hub; register them with a registry. kv may
// be nil.
func NewStats(hub *Hub, kv KVFunc) *Stats {
	return &Stats{
		hub: hub, kv: kv,
		waiters: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "warmlane_control_state_waiters", Help: "Polls for state that are held right now."}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "warmlane_control_state_bytes_total", Help: "Bytes of state sent to filters."}),
	}
}

// Describe is part of [prometheus.Collector].
func (s *Stats) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReplicas, descUnknown, descAge, descGeneration, descBlocks, descPartial, descDropped} {
		ch <- d
	}
	s.waiters.Describe(ch)
	s.bytes.Describe(ch)
}

// Collect is part of [prometheus.Collector].
func (s *Stats) Collect(ch chan<- prometheus.Metric) {
	s.waiters.Collect(ch)
	s.bytes.Collect(ch)
	generation := uint64(0)
	if latest := s.hub.Latest(); latest != nil {
		generation = latest.Generation
		collectState(ch, latest, time.Now())
		s.collectKV(ch, latest)
	}
	gauge(ch, descGeneration, float64(generation))
	ch <- prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(s.hub.Dropped()))
}

// collectKV tells of those replicas that have an index how many blocks it knows
// and whether these are all.
func (s *Stats) collectKV(ch chan<- prometheus.Metric, latest *state.Snapshot) {
	for i := range latest.Pools {
		p := &latest.Pools[i]
		for j := range p.Replicas {
			slot := p.Replicas[j].Slot
			if kv, ok := s.kv.of(slot); ok {
				gauge(ch, descBlocks, float64(kv.Blocks), p.Name, Slot(slot))
				gauge(ch, descPartial, flag(kv.Partial), p.Name, Slot(slot))
			}
		}
	}
}

func collectState(ch chan<- prometheus.Metric, s *state.Snapshot, now time.Time) {
	oldest := int64(math.MaxInt64)
	for i := range s.Pools {
		collectPool(ch, &s.Pools[i])
		for j := range s.Pools[i].Replicas {
			if r := &s.Pools[i].Replicas[j]; r.Health == state.Healthy && r.Load.At > 0 {
				oldest = min(oldest, r.Load.At)
			}
		}
	}
	if oldest < math.MaxInt64 {
		gauge(ch, descAge, max(now.Sub(time.UnixMilli(oldest)).Seconds(), 0))
	}
}

func collectPool(ch chan<- prometheus.Metric, p *state.Pool) {
	var byHealth [state.Draining + 1]int
	lacks := map[string]int{"waiting": 0, "running": 0, "kv_usage": 0}
	for i := range p.Replicas {
		r := &p.Replicas[i]
		byHealth[r.Health]++
		if r.Load.At > 0 {
			countUnknown(lacks, &r.Load)
		}
	}
	for health, n := range byHealth {
		gauge(ch, descReplicas, float64(n), p.Name, state.Health(health).String())
	}
	for signal, n := range lacks {
		gauge(ch, descUnknown, float64(n), p.Name, signal)
	}
}

func countUnknown(lacks map[string]int, l *state.Load) {
	if l.Waiting < 0 {
		lacks["waiting"]++
	}
	if l.Running < 0 {
		lacks["running"]++
	}
	if l.KV != l.KV {
		lacks["kv_usage"]++
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// flag is a truth as Prometheus has it.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
