package route

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// sameReport compares with NaN equal to NaN.
func sameReport(a, b Report) bool {
	same := func(x, y float32) bool { return x == y || x != x && y != y }
	return a.Waiting == b.Waiting && a.Running == b.Running && a.Owed == b.Owed && a.InFlight == b.InFlight &&
		same(a.KV, b.KV) && same(a.Hit, b.Hit) && same(a.RPS, b.RPS) && same(a.TPS, b.TPS)
}

func report(set func(*Report)) Report {
	r := NoReport()
	set(&r)
	return r
}

func TestParseReport(t *testing.T) {
	f := func(header string, want Report, bad int) {
		t.Helper()
		got := NoReport()
		if n := ParseReport([]byte(header), &got); n != bad || !sameReport(got, want) {
			t.Errorf("%.80q: %+v, %d bad, want %+v, %d", header, got, n, want, bad)
		}
	}
	none := NoReport()
	both := report(func(r *Report) { r.KV, r.Waiting = 0.4, 3 })
	kv := report(func(r *Report) { r.KV = 0.4 })

	f("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0", both, 0)
	f("text named_metrics.kv_cache_usage_perc=0.4,named_metrics.num_requests_waiting=3", both, 0)
	f("named_metrics.kv_cache_usage_perc=0.4,named_metrics.num_requests_waiting=3.0", both, 0)
	f("TEXT cpu_utilization:0.7,named_metrics.kv_cache_usage_perc:0.4", kv, 0)
	f("TEXT  kv_cache_usage_perc = 4e-1 ", kv, 0)
	f("TEXT named_metrics.gpu_cache_usage_perc=0.4", kv, 0)
	f(`JSON {"named_metrics": {"num_requests_waiting": 3.0, "kv_cache_usage_perc": 0.4}}`, both, 0)
	f(`json {"named_metrics":{"kv_cache_usage_perc":0.4},"cpu_utilization":NaN}`, kv, 0)
	f(`{"namedMetrics":{"kv_cache_usage_perc":0.4,"x":[1,"]",{"y":[2]}]},"z":"\"}"}`, kv, 0)
	f(`{"kv_cache_usage_perc":"0.4"}`, kv, 0)
	f("TEXT named_metrics.owed_tokens=812, named_metrics.in_flight=7, named_metrics.num_requests_running=5, "+
		"rps_fractional=4.5, named_metrics.tps=800, named_metrics.hit_ratio=0.75",
		report(func(r *Report) {
			r.Owed, r.InFlight, r.Running, r.RPS, r.TPS, r.Hit = 812, 7, 5, 4.5, 800, 0.75
		}), 0)
	f("TEXT kv_cache_usage_perc=1.5", report(func(r *Report) { r.KV = 1 }), 0)

	// A bad value is dropped alone.
	f("TEXT kv_cache_usage_perc=NaN, num_requests_waiting=3", report(func(r *Report) { r.Waiting = 3 }), 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=-1", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=1e309", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=1e99", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=Inf", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=0x10", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting=1_0", kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, num_requests_waiting="+strings.Repeat("1", 40), kv, 1)
	f("TEXT kv_cache_usage_perc=0.4, kv_cache_usage_perc=0.9", kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4,"num_requests_waiting":null}`, kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4,"num_requests_waiting":`, kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4,"x":[`, kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4,"x`, kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4 "`, kv, 1)
	f(`JSON {"kv_cache_usage_perc":0.4,]`, kv, 1)
	f("", none, 1)
	f("TEXT ", none, 1)
	f("BIN ???", none, 1)
	f("BIN ", none, 1)
	f("{", none, 1)
	f("TEXT "+strings.Repeat("a=1,", 16<<10), none, 1)
}

func TestAppendReport(t *testing.T) {
	f := func(want string, set func(*Report)) {
		t.Helper()
		rep := report(set)
		got := AppendReport(nil, &rep)
		if string(got) != want {
			t.Errorf("written as %q, want %q", got, want)
		}
	}
	f("", func(*Report) {})
	f("TEXT named_metrics.owed_tokens=0, named_metrics.in_flight=1", func(r *Report) { r.Owed, r.InFlight = 0, 1 })
	f("TEXT named_metrics.kv_cache_usage_perc=0.41, named_metrics.num_requests_waiting=3, named_metrics.num_requests_running=12, "+
		"named_metrics.owed_tokens=812, named_metrics.in_flight=15, named_metrics.hit_ratio=0.77, rps_fractional=4.1, named_metrics.tps=812",
		func(r *Report) {
			r.KV, r.Waiting, r.Running, r.Owed, r.InFlight, r.Hit, r.RPS, r.TPS = 0.41, 3, 12, 812, 15, 0.77, 4.1, 812
		})
}

// TestReportsComeBack writes any report and reads it.
func TestReportsComeBack(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	count := func() int32 { return max(dice.Int32()>>dice.IntN(32), int32(dice.IntN(2)-1)) }
	ratio := func(most float32) float32 {
		if dice.IntN(4) == 0 {
			return float32(math.NaN())
		}
		return dice.Float32() * most
	}
	var buf []byte
	for range 10_000 {
		want := report(func(r *Report) {
			r.KV, r.Hit, r.RPS, r.TPS = ratio(1), ratio(1), ratio(1e4), ratio(1e6)
			r.Waiting, r.Running, r.Owed, r.InFlight = -1, count(), count(), count()
			if dice.IntN(8) == 0 {
				r.Running, r.Owed, r.InFlight = -1, -1, -1
			}
		})
		if buf = AppendReport(buf[:0], &want); len(buf) == 0 {
			if !want.Empty() {
				t.Fatalf("nothing is written of %+v", want)
			}
			continue
		}
		got := NoReport()
		if bad := ParseReport(buf, &got); bad != 0 || !sameReport(got, want) {
			t.Fatalf("%s: %d bad, %+v, want %+v", buf, bad, got, want)
		}
	}
}

// orcaMessage builds an OrcaLoadReport by hand.
type orcaMessage []byte

func (m orcaMessage) double(field uint64, v float64) orcaMessage {
	m = binary.AppendUvarint(m, field<<3|wire64)
	return binary.LittleEndian.AppendUint64(m, math.Float64bits(v))
}

func (m orcaMessage) bytes(field uint64, b []byte) orcaMessage {
	m = binary.AppendUvarint(m, field<<3|wireBytes)
	return append(binary.AppendUvarint(m, uint64(len(b))), b...)
}

func (m orcaMessage) named(name string, v float64) orcaMessage {
	return m.bytes(orcaNamedMetrics, orcaMessage(nil).bytes(1, []byte(name)).double(2, v))
}

func TestParseReportBin(t *testing.T) {
	f := func(m orcaMessage, want Report, bad int) {
		t.Helper()
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
			header := enc.EncodeToString(m)
			got := NoReport()
			if n := ParseReportBin([]byte(header), &got); n != bad || !sameReport(got, want) {
				t.Errorf("%x: %+v, %d bad, want %+v, %d", []byte(m), got, n, want, bad)
			}
			got = NoReport()
			if n := ParseReport([]byte("BIN "+header), &got); n != bad || !sameReport(got, want) {
				t.Errorf("BIN %x: %+v, %d bad, want %+v, %d", []byte(m), got, n, want, bad)
			}
		}
	}
	none := NoReport()
	var m orcaMessage
	full := m.double(1, 0.7).double(orcaRPSFractional, 4.5).named("kv_cache_usage_perc", 0.4).named("num_requests_waiting", 3)
	f(full, report(func(r *Report) { r.RPS, r.KV, r.Waiting = 4.5, 0.4, 3 }), 0)
	f(m.named("unheard_of", 3), none, 0)
	f(m.named("owed_tokens", math.NaN()).named("in_flight", 2), report(func(r *Report) { r.InFlight = 2 }), 1)
	f(m.bytes(orcaNamedMetrics, orcaMessage(nil).bytes(1, []byte("num_requests_waiting"))),
		report(func(r *Report) { r.Waiting = 0 }), 0)
	f(full[:len(full)-3], report(func(r *Report) { r.RPS, r.KV = 4.5, 0.4 }), 1)
	f(append(m, 3<<3, 0x80), none, 1)                 // a varint that does not end
	f(append(m, 4<<3|3), none, 1)                     // groups are long gone
	f(append(m, 0), none, 1)                          // field 0
	f(append(m, 5<<3|wire32, 1, 2, 3, 4), none, 0)    // not ours
	f(append(m, 8<<3|wireBytes, 0xff, 0x7f), none, 1) // longer than the message
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0"))
	f.Add([]byte(`JSON {"named_metrics":{"kv_cache_usage_perc":0.4},"x":[1,"]"],"y":"\""}`))
	f.Add([]byte("BIN " + base64.StdEncoding.EncodeToString(orcaMessage(nil).named("owed_tokens", 3).double(6, 1))))
	f.Fuzz(func(t *testing.T, header []byte) {
		for _, parse := range []func([]byte, *Report) int{ParseReport, ParseReportBin} {
			r := NoReport()
			if bad := parse(header, &r); bad < 0 {
				t.Errorf("%d bad", bad)
			}
			if r.Waiting < -1 || r.Running < -1 || r.Owed < -1 || r.InFlight < -1 ||
				r.KV < 0 || r.KV > 1 || r.Hit < 0 || r.Hit > 1 || r.RPS < 0 || r.TPS < 0 {
				t.Errorf("impossible report %+v", r)
			}
		}
	})
}

func TestParseReportMakesNoGarbage(t *testing.T) {
	bin := []byte(base64.StdEncoding.EncodeToString(orcaMessage(nil).named("owed_tokens", 3)))
	f := func(header string) {
		t.Helper()
		b := []byte(header)
		if n := testing.AllocsPerRun(100, func() {
			r := NoReport()
			ParseReport(b, &r)
		}); n != 0 {
			t.Errorf("%q: %v allocations", header, n)
		}
	}
	f("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3.0")
	f(`JSON {"named_metrics": {"num_requests_waiting": 3.0, "kv_cache_usage_perc": 0.4}}`)
	f("BIN " + string(bin))
}
