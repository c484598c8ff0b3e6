package report

import (
	"bytes"
	"math"
	"strconv"
)

// maxLine bounds a line of the metrics text. Lines that are of interest have
// two hundred bytes.
const maxLine = 4 << 10

// A scanner adds up the few series of a metrics text (Prometheus' text format
// and OpenMetrics) that are of interest. The text comes in chunks of any cut;
// no more than a line that is cut is kept of it.
type scanner struct {
	totals [numSeries]total
	held   []byte // the beginning of a line
	long   bool   // it is beyond maxLine
}

// total is the sum over the series of one name: of engines, models, reasons.
// n 0 means that there was none, which is not the same as a sum of 0.
type total struct {
	sum float64
	n   int
}

type series uint8

const (
	waiting series = iota
	running
	kvUsage
	oldKVUsage
	queries // of the prefix cache, in tokens, as is hits
	oldQueries
	hits
	oldHits
	generated // tokens
	finished  // requests
	gpuUtil   // percent
	gpuUsed   // MiB
	gpuFree
	numSeries
	noSeries = numSeries
)

// seriesOf knows the names of vLLM, those from before some lost "gpu_", and
// those of NVIDIA's DCGM exporter, which some setups merge into one text. Each
// counter has a twin that ends in _created, and where texts are OpenMetrics'
// some proxies cut off the ending _total.
func seriesOf(name []byte) series {
	switch string(name) {
	case "vllm:num_requests_waiting":
		return waiting
	case "vllm:num_requests_running":
		return running
	case "vllm:kv_cache_usage_perc":
		return kvUsage
	case "vllm:gpu_cache_usage_perc":
		return oldKVUsage
	case "vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries":
		return queries
	case "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries":
		return oldQueries
	case "vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits":
		return hits
	case "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits":
		return oldHits
	case "vllm:generation_tokens_total", "vllm:generation_tokens":
		return generated
	case "vllm:request_success_total", "vllm:request_success":
		return finished
	case "DCGM_FI_DEV_GPU_UTIL":
		return gpuUtil
	case "DCGM_FI_DEV_FB_USED":
		return gpuUsed
	case "DCGM_FI_DEV_FB_FREE":
		return gpuFree
	}
	return noSeries
}

func (s *scanner) reset() {
	s.totals = [numSeries]total{}
	s.held, s.long = s.held[:0], false
}

// write reads the next bytes of the text.
func (s *scanner) write(b []byte) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			s.hold(b)
			return
		}
		if len(s.held) == 0 && !s.long {
			s.line(b[:i])
		} else {
			s.hold(b[:i])
			s.release()
		}
		b = b[i+1:]
	}
}

// end says that the text is over; its last line may lack the line break. An
// engine in transition exports old and new names; then the new ones count.
func (s *scanner) end() {
	s.release()
	for _, p := range [...]struct{ now, old series }{{kvUsage, oldKVUsage}, {queries, oldQueries}, {hits, oldHits}} {
		if s.totals[p.now].n == 0 {
			s.totals[p.now] = s.totals[p.old]
		}
	}
}

// empty says that the text had nothing of interest.
func (s *scanner) empty() bool {
	for i := range s.totals {
		if s.totals[i].n > 0 {
			return false
		}
	}
	return true
}

func (s *scanner) hold(b []byte) {
	if len(s.held)+len(b) > maxLine {
		s.held, s.long = s.held[:0], true
	}
	if !s.long {
		s.held = append(s.held, b...)
	}
}

func (s *scanner) release() {
	if !s.long {
		s.line(s.held)
	}
	s.held, s.long = s.held[:0], false
}

// line reads one line. Values that are NaN, infinite or negative are taken as
// absent, and so is a line that is wrong.
func (s *scanner) line(b []byte) {
	b = bytes.Trim(b, " \t\r")
	if len(b) == 0 || b[0] != 'v' && b[0] != 'D' {
		return
	}
	end := bytes.IndexAny(b, "{ \t")
	if end < 0 {
		return
	}
	i := seriesOf(b[:end])
	if i == noSeries {
		return
	}
	rest, ok := skipLabels(b[end:])
	if !ok {
		return
	}
	if v, ok := parseValue(rest); ok && v >= 0 && v <= math.MaxFloat64 {
		s.totals[i].sum += v
		s.totals[i].n++
	}
}

// skipLabels gives what stands behind the labels, if there are any. A brace in
// a label's value does not end them.
func skipLabels(b []byte) ([]byte, bool) {
	if b[0] != '{' {
		return b, true
	}
	quoted := false
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == '}' && !quoted:
			return b[i+1:], true
		}
	}
	return nil, false
}

// maxValue is the longest spelling of a value that is read; strings up to this
// length live on the stack.
const maxValue = 32

// parseValue reads a value and leaves out a time behind it.
func parseValue(b []byte) (float64, bool) {
	b = bytes.TrimLeft(b, " \t")
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		b = b[:i]
	}
	if len(b) == 0 || len(b) > maxValue {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}
