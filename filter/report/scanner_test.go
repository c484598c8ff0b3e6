package report

import (
	"os"
	"strings"
	"testing"
)

// realMetrics is what vLLM 0.32 said with 8 requests running and 8 waiting.
func realMetrics(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile("../../control/collect/testdata/metrics-loaded.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func scan(text []byte, cut int) *scanner {
	s := &scanner{}
	for len(text) > cut {
		s.write(text[:cut])
		text = text[cut:]
	}
	s.write(text)
	s.end()
	return s
}

func TestScannerOnRealMetrics(t *testing.T) {
	want := map[series]total{
		running: {8, 1}, waiting: {8, 1}, kvUsage: {0.5176470588235293, 1}, queries: {3787, 1}, hits: {384, 1},
		generated: {1865, 1}, finished: {20, 5},
	}
	text := realMetrics(t)
	for _, cut := range []int{len(text), 64 << 10, 1000, 7, 1} {
		s := scan(text, cut)
		for i := range numSeries {
			if s.totals[i] != want[i] {
				t.Errorf("cut into %d bytes, series %d: %+v, want %+v", cut, i, s.totals[i], want[i])
			}
		}
	}
}

func TestScanner(t *testing.T) {
	f := func(text string, want map[series]total) {
		t.Helper()
		s := scan([]byte(text), 5)
		for i := range numSeries {
			if s.totals[i] != want[i] && !oldName(i) {
				t.Errorf("%.100q, series %d: %+v, want %+v", text, i, s.totals[i], want[i])
			}
		}
		if s.empty() != (len(want) == 0) {
			t.Errorf("%.100q: empty is %v", text, s.empty())
		}
	}
	one := map[series]total{waiting: {3, 1}}
	f("vllm:num_requests_waiting 3", one)
	f("vllm:num_requests_waiting{} 3.0\r\n", one)
	f(" vllm:num_requests_waiting\t3e0 1796050772000\n", one)
	f(`vllm:num_requests_waiting{model_name="a} 9 \"{",engine="0"} 3`, one)
	f("vllm:num_requests_waiting 1\nvllm:num_requests_waiting{engine=\"1\"} 2\n", map[series]total{waiting: {3, 2}})
	f("vllm:num_requests_waiting 0\n", map[series]total{waiting: {0, 1}})
	f("vllm:gpu_cache_usage_perc 0.5\nvllm:gpu_prefix_cache_hits_total 1\nvllm:gpu_prefix_cache_queries_total 2",
		map[series]total{kvUsage: {0.5, 1}, hits: {1, 1}, queries: {2, 1}})
	f("vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.5\n", map[series]total{kvUsage: {0.5, 1}})
	f("vllm:generation_tokens 7\nvllm:request_success 2\nvllm:prefix_cache_queries 4\nvllm:prefix_cache_hits 3",
		map[series]total{generated: {7, 1}, finished: {2, 1}, queries: {4, 1}, hits: {3, 1}})
	f("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 80\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 40\nDCGM_FI_DEV_FB_USED 3\nDCGM_FI_DEV_FB_FREE 1",
		map[series]total{gpuUtil: {120, 2}, gpuUsed: {3, 1}, gpuFree: {1, 1}})
	f("x"+strings.Repeat("y", 3*maxLine)+"\nvllm:num_requests_waiting 3", one)
	f("vllm:num_requests_waiting 3\nvllm:num_requests_waiting{a=\""+strings.Repeat("y", 3*maxLine)+"\"} 9", one)

	f("", nil)
	f("# TYPE vllm:num_requests_waiting gauge\n", nil)
	f("#vllm:num_requests_waiting 3\n", nil)
	f("vllm:num_requests_waiting", nil)
	f("vllm:num_requests_waiting ", nil)
	f("vllm:num_requests_waiting NaN\nvllm:num_requests_running +Inf\nvllm:generation_tokens_total -1", nil)
	f("vllm:num_requests_waiting three", nil)
	f("vllm:num_requests_waiting{engine=\"0\" 3", nil)
	f("vllm:num_requests_waiting{engine=\"0} 3", nil)
	f("vllm:num_requests_waiting "+strings.Repeat("0", maxValue)+"3", nil)
	f("vllm:num_requests_waiting_by_reason 3\nvllm:generation_tokens_created 1.7e9", nil)
	f("<html>503</html>", nil)
}

func oldName(i series) bool { return i == oldKVUsage || i == oldQueries || i == oldHits }

// FuzzScanner cuts texts anywhere: what is read does not depend on it.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("# x\nvllm:num_requests_waiting{a=\"}\\\"\"} 3 17\nDCGM_FI_DEV_GPU_UTIL 5\r\n"), 3)
	f.Add([]byte("vllm:kv_cache_usage_perc 0.5\n\n\nvllm:request_success_total 1e300"), 1)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = 1 + (cut&0xffff)%64
		whole, pieces := scan(text, len(text)+1), scan(text, cut)
		for i := range numSeries {
			if w, p := whole.totals[i], pieces.totals[i]; w != p && longest(text) <= maxLine {
				t.Errorf("series %d: %+v, in pieces of %d %+v", i, w, cut, p)
			}
			if !(whole.totals[i].sum >= 0) {
				t.Errorf("series %d: %+v", i, whole.totals[i])
			}
		}
		if len(pieces.held) > maxLine {
			t.Errorf("%d bytes are kept", len(pieces.held))
		}
	})
}

func longest(text []byte) int {
	most := 0
	for _, line := range strings.Split(string(text), "\n") {
		most = max(most, len(line))
	}
	return most
}

func TestScannerMakesNoGarbage(t *testing.T) {
	text := realMetrics(t)
	var s scanner
	s.held = make([]byte, 0, maxLine)
	if n := testing.AllocsPerRun(10, func() {
		s.reset()
		s.write(text[:1001])
		s.write(text[1001:])
		s.end()
	}); n != 0 {
		t.Errorf("%v allocations for a text", n)
	}
}

func BenchmarkScanner(b *testing.B) {
	text := realMetrics(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var s scanner
	for b.Loop() {
		s.reset()
		s.write(text)
		s.end()
	}
}
