package route

import (
	"math"
	"strconv"
)

// AppendReport writes r as the value of endpoint-load-metrics, in the TEXT form
// and in the names that [ParseReport] and Envoy's own parser know. What is not
// known is left out; for a report in which nothing is known nothing is written.
func AppendReport(dst []byte, r *Report) []byte {
	w := reportWriter{b: append(dst, "TEXT "...), empty: true}
	w.ratio("named_metrics.kv_cache_usage_perc=", r.KV)
	w.count("named_metrics.num_requests_waiting=", r.Waiting)
	w.count("named_metrics.num_requests_running=", r.Running)
	w.count("named_metrics.owed_tokens=", r.Owed)
	w.count("named_metrics.in_flight=", r.InFlight)
	w.ratio("named_metrics.hit_ratio=", r.Hit)
	w.ratio("rps_fractional=", r.RPS)
	w.ratio("named_metrics.tps=", r.TPS)
	if w.empty {
		return dst
	}
	return w.b
}

type reportWriter struct {
	b     []byte
	empty bool
}

func (w *reportWriter) name(name string) {
	if !w.empty {
		w.b = append(w.b, ", "...)
	}
	w.empty = false
	w.b = append(w.b, name...)
}

func (w *reportWriter) count(name string, n int32) {
	if n >= 0 {
		w.name(name)
		w.b = strconv.AppendInt(w.b, int64(n), 10)
	}
}

// ratio writes a value with as many digits as tell it from all others.
func (w *reportWriter) ratio(name string, f float32) {
	if f >= 0 && f <= math.MaxInt32 {
		w.name(name)
		w.b = strconv.AppendFloat(w.b, float64(f), 'g', -1, 32)
	}
}
