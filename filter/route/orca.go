package route

import (
	"bytes"
	"math"
	"strconv"
)

// maxReport bounds the header that is looked at. Engines send a hundred bytes.
const maxReport = 8 << 10

// ParseReport reads the header endpoint-load-metrics into rep, which starts
// as [NoReport]. Engines and proxies differ in how they write it, so all of
// these are taken:
//
//	TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0
//	JSON {"named_metrics":{"kv_cache_usage_perc":0.4}}
//	BIN <base64 of an OrcaLoadReport>
//	cpu_utilization:0.7,named_metrics.kv_cache_usage_perc:0.4
//	{"named_metrics": ...}
//
// Names that mean nothing to us are skipped. A value that cannot be true (not
// a number, infinite, negative, a name's second) is dropped alone; bad is how
// many were. A header that cannot be read at all counts as one.
func ParseReport(value []byte, rep *Report) (bad int) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || len(value) > maxReport {
		return 1
	}
	p := reportParser{rep: rep}
	switch {
	case hasWord(value, "BIN"):
		return ParseReportBin(value[3:], rep)
	case hasWord(value, "TEXT"), hasWord(value, "JSON"):
		value = bytes.TrimSpace(value[4:])
	}
	if len(value) > 0 && value[0] == '{' {
		p.json(value)
	} else {
		p.text(value)
	}
	return p.bad
}

// Empty says that the report tells nothing, so the last good one stays.
func (r *Report) Empty() bool {
	return r.Waiting < 0 && r.Running < 0 && r.Owed < 0 && r.InFlight < 0 &&
		r.KV != r.KV && r.Hit != r.Hit && r.RPS != r.RPS && r.TPS != r.TPS
}

// hasWord says whether b begins with the upper-case word, in any case, and a
// space.
func hasWord(b []byte, word string) bool {
	if len(b) <= len(word) || b[len(word)] != ' ' {
		return false
	}
	for i := range len(word) {
		if b[i]&^0x20 != word[i] {
			return false
		}
	}
	return true
}

type reportParser struct {
	rep  *Report
	seen [numMetrics]bool
	bad  int
}

func (p *reportParser) text(b []byte) {
	for len(b) > 0 {
		var pair []byte
		pair, b, _ = bytes.Cut(b, comma)
		pair = bytes.TrimSpace(pair)
		at := bytes.IndexAny(pair, "=:")
		if at < 0 {
			p.bad++
			continue
		}
		name := bytes.TrimPrefix(bytes.TrimSpace(pair[:at]), namedMetrics)
		p.number(name, bytes.TrimSpace(pair[at+1:]))
	}
}

var (
	comma        = []byte(",")
	namedMetrics = []byte("named_metrics.")
)

// number takes one value in its decimal spelling.
func (p *reportParser) number(name, digits []byte) {
	m := metricOf(name)
	if m == numMetrics {
		return
	}
	v, ok := parseNumber(digits)
	p.take(m, v, ok)
}

// take puts a value into the report, unless it cannot be true.
func (p *reportParser) take(m metric, v float64, ok bool) {
	if !ok || p.seen[m] || math.IsNaN(v) || v < 0 || v > math.MaxInt32 {
		p.bad++
		return
	}
	p.seen[m] = true
	switch m {
	case metricKV:
		p.rep.KV = float32(min(v, 1))
	case metricWaiting:
		p.rep.Waiting = int32(v)
	case metricRunning:
		p.rep.Running = int32(v)
	case metricOwed:
		p.rep.Owed = int32(v)
	case metricInFlight:
		p.rep.InFlight = int32(v)
	case metricHit:
		p.rep.Hit = float32(min(v, 1))
	case metricRPS:
		p.rep.RPS = float32(v)
	case metricTPS:
		p.rep.TPS = float32(v)
	}
}

type metric uint8

const (
	metricKV metric = iota
	metricWaiting
	metricRunning
	metricOwed
	metricInFlight
	metricHit
	metricRPS
	metricTPS
	numMetrics
)

// metricOf knows the names of vLLM (new and old), of ORCA and of our own
// report role.
func metricOf(name []byte) metric {
	switch string(name) {
	case "kv_cache_usage_perc", "gpu_cache_usage_perc":
		return metricKV
	case "num_requests_waiting":
		return metricWaiting
	case "num_requests_running":
		return metricRunning
	case "owed_tokens":
		return metricOwed
	case "in_flight":
		return metricInFlight
	case "hit_ratio":
		return metricHit
	case "rps_fractional", "rpsFractional":
		return metricRPS
	case "tps":
		return metricTPS
	}
	return numMetrics
}

// parseNumber reads plain decimal notation; strconv alone would also take
// words, hexadecimal and underscores.
func parseNumber(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > maxNumber {
		return 0, false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}

// maxNumber is the longest spelling of a number that is read; strings up to
// this length live on the stack.
const maxNumber = 32
