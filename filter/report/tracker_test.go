package report

import (
	"fmt"
	"math"
	"testing"

	"github.com/warmlane/warmlane/filter/state"
)

func same(a, b float32) bool { return a == b || a != a && b != b }

func sameSample(a, b sample) bool {
	return a.At == b.At && a.Waiting == b.Waiting && a.Running == b.Running && same(a.KV, b.KV) && same(a.Hit, b.Hit) &&
		same(a.RPS, b.RPS) && same(a.TPS, b.TPS) && same(a.gpu, b.gpu) && same(a.gpuMemory, b.gpuMemory)
}

// counts is the counters of a metrics text.
func counts(queries, hits, finished, generated int) *scanner {
	return scan(fmt.Appendf(nil, "vllm:prefix_cache_queries_total %d\nvllm:prefix_cache_hits_total %d\n"+
		"vllm:request_success_total %d\nvllm:generation_tokens_total %d\n", queries, hits, finished, generated), 1<<20)
}

func TestTracker(t *testing.T) {
	tr := newTracker()
	f := func(at int64, s *scanner, hit, rps, tps float32) {
		t.Helper()
		v := tr.observe(s, at)
		if !same(v.Hit, hit) || !same(v.RPS, rps) || !same(v.TPS, tps) || v.At != at {
			t.Errorf("at %d: hit %v, rps %v, tps %v, want %v, %v, %v", at, v.Hit, v.RPS, v.TPS, hit, rps, tps)
		}
	}
	f(1000, counts(100, 50, 10, 1000), nan, nan, nan)
	f(1250, counts(200, 130, 11, 1100), 0.8, nan, nan) // too short a span for rates
	f(3000, counts(300, 200, 14, 2600), 0.75, 2, 800)
	f(3250, counts(300, 200, 14, 2600), 0.75, 1.8, 711.1) // nobody asked: the ratio stays
	f(60_000, counts(300, 200, 14, 2600), 0.75, 0, 0)
	f(60_250, counts(0, 0, 0, 0), nan, nan, nan) // another process
	f(61_500, counts(10, 5, 5, 50), 0.5, 4, 40)
	f(61_750, scan([]byte("vllm:num_requests_waiting 1"), 9), 0.5, nan, nan)
	f(500, counts(20, 15, 6, 60), nan, nan, nan) // the clock was set back
	for at := int64(1000); at < 60_000; at += 250 {
		tr.observe(counts(int(at), int(at/2), int(at/100), int(at)), at)
	}
	f(60_000, counts(60_000, 30_000, 600, 60_000), 0.5, 10, 1000)
}

func TestGauges(t *testing.T) {
	f := func(text string, want sample) {
		t.Helper()
		tr := newTracker()
		want.At = 5
		if got := tr.observe(scan([]byte(text), 1<<20), 5); !sameSample(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	unknown := func(set func(*sample)) sample {
		v := sample{Load: state.NoLoad(), gpu: nan, gpuMemory: nan}
		set(&v)
		return v
	}
	f("", unknown(func(*sample) {}))
	f("vllm:num_requests_waiting 0", unknown(func(v *sample) { v.Waiting = 0 }))
	f("vllm:num_requests_running 9e99", unknown(func(v *sample) { v.Running = math.MaxInt32 }))
	f("vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4", unknown(func(v *sample) { v.Running = 7 }))
	f("vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.6", unknown(func(v *sample) { v.KV = 0.4 }))
	f("DCGM_FI_DEV_GPU_UTIL 87\nDCGM_FI_DEV_FB_USED 30\nDCGM_FI_DEV_FB_FREE 10", unknown(func(v *sample) { v.gpu, v.gpuMemory = 0.87, 0.75 }))
	f("DCGM_FI_DEV_FB_USED 30", unknown(func(*sample) {}))
	f("DCGM_FI_DEV_FB_USED 0\nDCGM_FI_DEV_FB_FREE 0", unknown(func(*sample) {}))
}

func TestSampleComesBack(t *testing.T) {
	v := sample{Load: state.Load{At: 1 << 41, Waiting: -1, Running: 7, KV: 0.5, Hit: nan, RPS: 3.5, TPS: 812}, gpu: 1, gpuMemory: nan}
	var b [sampleSize]byte
	v.encode(&b)
	var got sample
	if !got.decode(b[:]) || !sameSample(got, v) {
		t.Errorf("%+v, want %+v", got, v)
	}
	for _, junk := range [][]byte{nil, b[:sampleSize-1], make([]byte, sampleSize)} {
		if got.decode(junk) {
			t.Errorf("%x was taken for a sample", junk)
		}
	}
}
