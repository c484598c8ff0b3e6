package collect

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, text string) Sample {
	t.Helper()
	s, err := ParseExposition([]byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

func TestCapturedMetrics(t *testing.T) {
	f := func(name string, want Sample) {
		t.Helper()
		got, err := ParseExposition(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if got.Bad != 0 || got.Lines < 400 {
			t.Errorf("%s: %d lines, %d bad", name, got.Lines, got.Bad)
		}
		got.Lines, got.newestLoRA = 0, 0
		if len(got.Adapters) > 0 || !equalSample(&got, &want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, want)
		}
	}
	one := func(v float64) Total { return Total{v, 1} }
	f("metrics-loaded.txt", Sample{
		Waiting: one(8), Running: one(8), KV: one(0.5176470588235293),
		Queries: one(3787), Hits: one(384), Finished: Total{20, 5}, Generated: one(1865), Prompt: one(3787),
		Awake: one(1), Start: start, BlockSize: 32, CacheTokens: 8192,
	})
	f("metrics-idle.txt", Sample{
		Waiting: one(0), Running: one(0), KV: one(0),
		Queries: one(330), Hits: one(96), Finished: Total{14, 5}, Generated: one(56), Prompt: one(330),
		Awake: one(1), Start: start, BlockSize: 32, CacheTokens: 8192,
	})
}

// start is when the captured process began.
const start = 1.7960499701e+09

func equalSample(a, b *Sample) bool {
	return a.Waiting == b.Waiting && a.Running == b.Running && a.KV == b.KV &&
		a.Queries == b.Queries && a.Hits == b.Hits && a.Finished == b.Finished &&
		a.Generated == b.Generated && a.Prompt == b.Prompt && a.Awake == b.Awake &&
		a.Start == b.Start && a.BlockSize == b.BlockSize && a.CacheTokens == b.CacheTokens
}

// The usage metric has a new name, an old one, or is missing, and several
// engines may export it. Missing is not 0.
func TestRenamedAndMissingUsage(t *testing.T) {
	f := func(text string, want Total) {
		t.Helper()
		if got := parse(t, text).KV; math.Abs(got.Sum-want.Sum) > 1e-9 || got.N != want.N {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	f("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.83\nvllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.10\n", Total{0.93, 2})
	f("vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.40", Total{0.40, 1})
	f("vllm:gpu_cache_usage_perc 0.40\nvllm:kv_cache_usage_perc 0.41", Total{0.41, 1})
	f("vllm:num_requests_running 3\n", Total{})
	f("", Total{})
	f("vllm:kv_cache_usage_perc NaN\n", Total{})
	f("vllm:kv_cache_usage_perc -1\n", Total{})
	f("vllm:kv_cache_usage_perc +Inf\n", Total{})
	f("vllm:kv_cache_usage_perc_created 5\n", Total{})
	f("vllm:kv_cache_usage_percent 5\n", Total{})
	f("xvllm:kv_cache_usage_perc 5\n", Total{})
}

func TestSyntax(t *testing.T) {
	f := func(line string, sum float64, bad int) {
		t.Helper()
		s := parse(t, "up 1\n"+line)
		if s.Running.Sum != sum || s.Bad != bad {
			t.Errorf("%q: %+v, %d bad; want %v, %d bad", line, s.Running, s.Bad, sum, bad)
		}
	}
	const n = "vllm:num_requests_running"
	f(n+" 3", 3, 0)
	f("  "+n+"\t3 \r", 3, 0)
	f(n+"{} 3", 3, 0)
	f(n+"{}3", 3, 0)
	f(n+`{a="b",} 3 1796050799118`, 3, 0)
	f(n+`{ a = "b" , c="d" } 3e0`, 3, 0)
	f(n+`{a="}\"\\,{=",b="# x"} 3`, 3, 0)
	f("# "+n+" 3", 0, 0)
	f(n, 0, 1)
	f(n+" ", 0, 1)
	f(n+" three", 0, 1)
	f(n+" 3 soon", 0, 1)
	f(n+" 3 4 5", 0, 1)
	f(n+`{a="b} 3`, 0, 1)
	f(n+`{a=b} 3`, 0, 1)
	f(n+`{a="b" c="d"} 3`, 0, 1)
	f(n+`{a} b="c"} 3`, 0, 1)
	f(n+`{a="b"`, 0, 1)
	f(n+`{`, 0, 1)
	f("<b> 3", 0, 1)
	f(`{"detail": 3`, 0, 1)
}

func TestNotMetrics(t *testing.T) {
	f := func(text string, want error) {
		t.Helper()
		if _, err := ParseExposition([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", text, err, want)
		}
	}
	f("<!DOCTYPE html>\n<html><body>Welcome to nginx</body></html>\n", ErrNotMetrics)
	f(`{"detail":"Not Found"}`, ErrNotMetrics)
	f("Internal Server Error", ErrNotMetrics)
	f("\x00\xff\xfe", ErrNotMetrics)
	f(strings.Repeat("<", 1<<20), ErrNotMetrics)
	f("", nil)
	f("# nothing yet\n", nil)
	f("<html>\nup 1\n", nil)
}

func TestAdaptersOfTheNewestSeries(t *testing.T) {
	s, err := ParseExposition(fixture(t, "metrics-lora-info-after.txt"))
	if err != nil || len(s.Adapters) != 0 {
		t.Errorf("idle: %v %v", s.Adapters, err)
	}
	s = parse(t, `vllm:lora_requests_info{max_lora="2",running_lora_adapters="a,b",waiting_lora_adapters="c"} 20
vllm:lora_requests_info{max_lora="2",running_lora_adapters="old",waiting_lora_adapters=""} 10
`)
	if !slices.Equal(s.Adapters, []string{"a", "b", "c"}) {
		t.Errorf("got %v", s.Adapters)
	}
}

// An engine is asleep if it says so; of several all must.
func TestAsleep(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if s := parse(t, text); s.asleep() != want {
			t.Errorf("%q: asleep %t", text, !want)
		}
	}
	const awake, off = `vllm:engine_sleep_state{engine="%",sleep_state="awake"} `, `vllm:engine_sleep_state{engine="%",sleep_state="discard_all"} `
	f("up 1\n", false)
	f(awake+"1\n"+off+"0\n", false)
	f(awake+"0\n"+off+"1\n", true)
	f(off+"1\n"+awake+"0\n", true)
	f(off+"0\n", false)
	f(awake+"0\n"+strings.Replace(awake, "%", "1", 1)+"1\n", false)
	f(awake+"NaN\n", false)
	f("up 1\nvllm:engine_sleep_state 0\n", false)
}

func TestCacheConfig(t *testing.T) {
	f := func(text string, block uint32, tokens uint64) {
		t.Helper()
		if s := parse(t, text); s.BlockSize != block || s.CacheTokens != tokens {
			t.Errorf("%q: %d, %d", text, s.BlockSize, s.CacheTokens)
		}
	}
	f(`vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1`, 16, 1600)
	f(`vllm:cache_config_info{block_size="16",kv_cache_size_tokens="2000",num_gpu_blocks="100"} 1`, 16, 2000)
	f(`vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1`, 16, 3200)
	f(`vllm:cache_config_info{block_size="None",num_gpu_blocks="None"} 1`, 0, 0)
	f(`vllm:cache_config_info{block_size="99999999999999999999"} 1`, 0, 0)
	f("up 1\nvllm:cache_config_info 1", 0, 0)
}

// expected adds up one family as Prometheus' own parser reads it.
func expected(families map[string]*dto.MetricFamily, name string) (t Total) {
	for _, m := range families[name].GetMetric() {
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		if v >= 0 && v <= math.MaxFloat64 {
			t.add(v)
		}
	}
	return t
}

func reference(text []byte) (map[string]*dto.MetricFamily, error) {
	p := expfmt.NewTextParser(model.LegacyValidation)
	return p.TextToMetricFamilies(bytes.NewReader(text))
}

// FuzzExposition: no text makes the parser panic, and one that
// Prometheus' parser accepts as well is read the same.
func FuzzExposition(f *testing.F) {
	f.Add(fixture(f, "metrics-lora-info-after.txt"))
	f.Add([]byte("vllm:num_requests_running{a=\"}\\\"\\\\,{=\"} 3 5\nvllm:num_requests_waiting NaN\n"))
	f.Add([]byte("vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1\n"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseExposition(text)
		if s.KV.Sum < 0 || s.Waiting.Sum < 0 || s.Lines < 0 {
			t.Fatalf("%+v", s)
		}
		families, refErr := reference(text)
		if err != nil || s.Bad > 0 || refErr != nil || bytes.Contains(text, []byte("# TYPE")) {
			return // only one of the two takes "A+1", or sums up a summary
		}
		for name, got := range map[string]Total{
			"vllm:num_requests_running": s.Running, "vllm:num_requests_waiting": s.Waiting,
			"vllm:generation_tokens_total": s.Generated,
		} {
			if want := expected(families, name); got != want {
				t.Fatalf("%s: got %v, want %v", name, got, want)
			}
		}
	})
}

func BenchmarkParseExposition(b *testing.B) {
	text := fixture(b, "metrics-loaded.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseExposition(text); err != nil {
			b.Fatal(err)
		}
	}
}

// For comparison: why the parser is our own.
func BenchmarkReferenceParser(b *testing.B) {
	text := fixture(b, "metrics-loaded.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reference(text); err != nil {
			b.Fatal(err)
		}
	}
}
