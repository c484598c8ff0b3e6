package wire

import (
	"math"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// exposition writes Prometheus text the way Python's client does: floats with a
// point, labels in alphabetical order, a _created gauge for each counter and
// histogram.
type exposition struct {
	b       []byte
	created string   // time of start
	labels  []string // name, value, ... on every series, in order of names
}

// sample is one series of a family: labels beside the common ones, and the value.
type sample struct {
	labels []string // name, value, ...
	value  float64
}

func one(v float64) []sample { return []sample{{nil, v}} }

func (e *exposition) family(name, kind, help string) {
	e.b = append(e.b, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

func (e *exposition) gauge(name, help string, samples ...sample) {
	e.family(name, "gauge", help)
	for _, s := range samples {
		e.line(name, s.labels, pyMetric(s.value))
	}
}

// counter writes name_total and name_created.
func (e *exposition) counter(name, help string, samples ...sample) {
	e.family(name+"_total", "counter", help)
	for _, s := range samples {
		e.line(name+"_total", s.labels, pyMetric(s.value))
	}
	e.family(name+"_created", "gauge", help)
	for _, s := range samples {
		e.line(name+"_created", s.labels, e.created)
	}
}

func (e *exposition) histogram(name, help string, h *engine.Histogram) {
	e.family(name, "histogram", help)
	var sum uint64
	for i, n := range h.Counts {
		le := "+Inf"
		if i < len(h.Bounds) {
			le = pyMetric(h.Bounds[i])
		}
		sum += n
		e.line(name+"_bucket", []string{"le", le}, pyMetric(float64(sum)))
	}
	e.line(name+"_count", nil, pyMetric(float64(sum)))
	e.line(name+"_sum", nil, pyMetric(h.Sum))
	e.family(name+"_created", "gauge", help)
	e.line(name+"_created", nil, e.created)
}

// line writes one series, merging its labels with the common ones.
func (e *exposition) line(name string, own []string, value string) {
	e.b = append(e.b, name...)
	common, sep := e.labels, byte('{')
	for len(common)+len(own) > 0 {
		if len(own) == 0 || len(common) > 0 && common[0] < own[0] {
			e.b = appendLabel(append(e.b, sep), common)
			common = common[2:]
		} else {
			e.b = appendLabel(append(e.b, sep), own)
			own = own[2:]
		}
		sep = ','
	}
	if sep == ',' {
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, " "+value+"\n"...)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func appendLabel(b []byte, pair []string) []byte {
	return append(b, pair[0]+`="`+labelEscapes.Replace(pair[1])+`"`...)
}

// pyMetric prints a number as Python's client does: a point always, an exponent
// from a million on.
func pyMetric(v float64) string {
	if math.Abs(v) >= 1e6 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return pyFloat(v)
}
