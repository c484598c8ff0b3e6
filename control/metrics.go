package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// counter makes a counter with one label. All of its values are there from the
// start, so that a rate over them has no holes.
func counter[T ~string](registry *prometheus.Registry, name, help, label string, values []T) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warmlane_control_" + name, Help: help}, []string{label})
	registry.MustRegister(v)
	for _, value := range values {
		v.WithLabelValues(string(value))
	}
	return v
}

// scrapeCounter counts scrapes by outcome.
func scrapeCounter(registry *prometheus.Registry) func(collect.Outcome) {
	v := counter(registry, "scrapes_total", "Scrapes of replicas' /metrics by how they went.", "outcome", collect.Outcomes)
	return func(o collect.Outcome) { v.WithLabelValues(string(o)).Inc() }
}

// answerCounter counts questions for event sources by answer.
func answerCounter(registry *prometheus.Registry) func(collect.Answer) {
	v := counter(registry, "kv_sources_total", "Questions for replicas' /kv_event_sources by answer.", "answer", collect.Answers)
	return func(a collect.Answer) { v.WithLabelValues(string(a)).Inc() }
}

// eventCounters counts what KV events tell and what is wrong with them. The
// series are looked up once: events come by the hundred thousand.
type eventCounters struct {
	events    [kvevents.Types]prometheus.Counter
	anomalies *prometheus.CounterVec
}

func newEventCounters(registry *prometheus.Registry) *eventCounters {
	c := &eventCounters{anomalies: counter(registry, "kv_anomalies_total", "What was wrong with KV events.", "kind", kvevents.Anomalies)}
	var types []string
	for t := range kvevents.Types {
		types = append(types, t.String())
	}
	events := counter(registry, "kv_events_total", "KV events by type.", "type", types)
	for t := range c.events {
		c.events[t] = events.WithLabelValues(types[t])
	}
	return c
}

// Anomaly is part of [kvevents.Counters].
func (c *eventCounters) Anomaly(a kvevents.Anomaly, n int) {
	c.anomalies.WithLabelValues(string(a)).Add(float64(n))
}

// Events is part of [kvevents.Counters].
func (c *eventCounters) Events(t kvevents.Type, n int) { c.events[t].Add(float64(n)) }
