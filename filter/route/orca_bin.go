package route

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
)

// ParseReportBin reads the header endpoint-load-metrics-bin, the base64 of an
// OrcaLoadReport (xds/data/orca/v3/orca_load_report.proto), into rep, which
// starts as [NoReport]. It counts bad values as [ParseReport] does.
func ParseReportBin(value []byte, rep *Report) (bad int) {
	value = bytes.TrimRight(bytes.TrimSpace(value), "=")
	if len(value) == 0 || len(value) > maxReport {
		return 1
	}
	var buf [maxReport]byte
	n, err := base64.RawStdEncoding.Decode(buf[:], value)
	if err != nil {
		return 1
	}
	p := reportParser{rep: rep}
	if !p.proto(buf[:n]) {
		p.bad++
	}
	return p.bad
}

// Field numbers of OrcaLoadReport that we read.
const (
	orcaRPSFractional = 6
	orcaNamedMetrics  = 8
)

// proto reads a message; false if its framing is broken.
func (p *reportParser) proto(b []byte) bool {
	for len(b) > 0 {
		var f protoField
		var ok bool
		if f, b, ok = nextField(b); !ok {
			return false
		}
		switch {
		case f.number == orcaRPSFractional && f.wire == wire64:
			p.take(metricRPS, f.double(), true)
		case f.number == orcaNamedMetrics && f.wire == wireBytes:
			if !p.protoEntry(f.bytes) {
				return false
			}
		}
	}
	return true
}

// protoEntry reads one entry of a map<string, double>. An absent value is 0.
func (p *reportParser) protoEntry(b []byte) bool {
	var name []byte
	var value float64
	for len(b) > 0 {
		var f protoField
		var ok bool
		if f, b, ok = nextField(b); !ok {
			return false
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			name = f.bytes
		case f.number == 2 && f.wire == wire64:
			value = f.double()
		}
	}
	if m := metricOf(name); m != numMetrics {
		p.take(m, value, true)
	}
	return true
}

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

type protoField struct {
	number uint64
	wire   byte
	bytes  []byte // of wireBytes, wire64 and wire32
}

func (f protoField) double() float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(f.bytes))
}

// nextField cuts the first field off b.
func nextField(b []byte) (f protoField, rest []byte, ok bool) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 {
		return f, nil, false
	}
	b = b[n:]
	f.number, f.wire = tag>>3, byte(tag&7)
	size := uint64(0)
	switch f.wire {
	case wireVarint:
		_, n = binary.Uvarint(b)
		return f, b[max(n, 0):], n > 0
	case wire64:
		size = 8
	case wire32:
		size = 4
	case wireBytes:
		if size, n = binary.Uvarint(b); n <= 0 {
			return f, nil, false
		}
		b = b[n:]
	default:
		return f, nil, false
	}
	if size > uint64(len(b)) {
		return f, nil, false
	}
	f.bytes = b[:size]
	return f, b[size:], true
}
