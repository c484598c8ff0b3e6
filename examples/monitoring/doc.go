// Package monitoring holds what watches Warmlane: rules for Prometheus, a
// dashboard for Grafana, and the scrape configuration they are made for. Its
// tests hold them against the metrics that the filter and control really have.
package monitoring
