package wire_test

import (
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
)

var (
	series    = regexp.MustCompile(`^([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)$`)
	labelName = regexp.MustCompile(`(\w+)="`)
)

// shape maps each series name to its label names, and each family to its kind and help.
func shape(page string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "# ") {
			f := strings.SplitN(line, " ", 4)
			out[f[1]+" "+f[2]] = f[3]
			continue
		}
		if m := series.FindStringSubmatch(line); m != nil {
			var names []string
			for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
				names = append(names, l[1])
			}
			out[m[1]] = strings.Join(names, ",")
		}
	}
	return out
}

// TestMetricNames: every vllm family of the captured page is there with its kind,
// help and labels in order, and no other is.
func TestMetricNames(t *testing.T) {
	r := tiny(t)
	ask(t, "POST", r.URL+"/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`)
	ask(t, "POST", r.URL+"/v1/completions", `{"model":"a","prompt":"hi there","max_tokens":3}`)
	want, err := os.ReadFile("../testdata/metrics-loaded.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := shape(string(ask(t, "GET", r.URL+"/metrics", "").body))
	for name, labels := range shape(string(want)) {
		if !strings.Contains(name, "vllm:") && !strings.Contains(name, "process_start") && !strings.Contains(name, "http_requests") {
			continue
		}
		if g, ok := got[name]; !ok || g != labels {
			t.Errorf("%s: %q, want %q (there: %v)", name, g, labels, ok)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s is not in vLLM's page", name)
	}
}

// TestMetricsParse reads the page with Prometheus's own parser, and some values.
func TestMetricsParse(t *testing.T) {
	r := replicatest.Start(t, node.Options{Speed: 20, Engine: engine.Config{Blocks: 101}})
	body := `{"prompt":"` + long[:300] + `","max_tokens":5}`
	body = strings.ReplaceAll(body, `"with"`, "with")
	for range 2 {
		if got := ask(t, "POST", r.URL+"/v1/completions", body); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	page := string(ask(t, "GET", r.URL+"/metrics", "").body)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		m := families[name].GetMetric()[0]
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	queries, hits := value("vllm:prefix_cache_queries_total"), value("vllm:prefix_cache_hits_total")
	if hits <= 0 || hits != value("vllm:prompt_tokens_cached_total") || queries < 2*hits || value("vllm:generation_tokens_total") != 10 {
		t.Errorf("queries %v, hits %v, generated %v", queries, hits, value("vllm:generation_tokens_total"))
	}
	if h := families["vllm:time_to_first_token_seconds"].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 2 || h.GetSampleSum() <= 0 {
		t.Errorf("TTFT histogram %v", h)
	}
	if !strings.Contains(page, `num_gpu_blocks="101"`) || !strings.Contains(page, `kv_cache_size_tokens="1616"`) {
		t.Error("cache_config_info does not tell the cache's size")
	}
}

func TestOldMetricNames(t *testing.T) {
	o := node.Options{}
	o.Wire.OldNames = true
	o.Wire.Models = []string{`a"b\`}
	got := string(ask(t, "GET", replicatest.Start(t, o).URL+"/metrics", "").body)
	for _, want := range []string{`vllm:gpu_cache_usage_perc{model_name="a\"b\\"} 0.0`, "vllm:gpu_prefix_cache_hits_total{", "vllm:time_per_output_token_seconds_count{"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, "vllm:kv_cache_usage_perc") {
		t.Error("the new name is there too")
	}
}

func TestMetricsFaults(t *testing.T) {
	r := tiny(t)
	get := func() (int, string) {
		got := ask(t, "GET", r.URL+"/metrics", "")
		return got.status, string(got.body)
	}
	generated := regexp.MustCompile(`vllm:generation_tokens_total\{.*\} (\S+)`)
	r.Faults(`{"metrics":"stale"}`)
	_, before := get()
	ask(t, "POST", r.URL+"/v1/completions", `{"prompt":"hi","max_tokens":3}`)
	if _, after := get(); after != before {
		t.Error("a stale page changed")
	}
	r.Faults(`{"metrics":"error"}`)
	if status, _ := get(); status != 500 {
		t.Errorf("error: status %d", status)
	}
	r.Faults(`{"metrics":"empty"}`)
	if status, page := get(); status != 200 || page != "" {
		t.Errorf("empty: %d %q", status, page)
	}
	r.Faults(`{"metrics":"garbage"}`)
	if _, page := get(); len(page) == 0 || generated.MatchString(page) {
		t.Errorf("garbage: %q", page)
	}
	r.Faults(`{"metrics":"huge"}`)
	if _, page := get(); len(page) < 60<<20 {
		t.Errorf("huge: %d bytes", len(page))
	}
	r.Heal()
	if _, page := get(); generated.FindStringSubmatch(page)[1] != "3.0" {
		t.Errorf("healed: %q", generated.FindString(page))
	}
}

// TestAdapterMetric: the newest label set has the largest value, old ones stay.
func TestAdapterMetric(t *testing.T) {
	r := tiny(t)
	for _, name := range []string{"a", "b"} {
		ask(t, "POST", r.URL+"/v1/load_lora_adapter", `{"lora_name":"`+name+`","lora_path":"/x"}`)
		ask(t, "POST", r.URL+"/v1/completions", `{"model":"`+name+`","prompt":"hi","max_tokens":2}`)
	}
	info := regexp.MustCompile(`lora_requests_info\{max_lora="2",running_lora_adapters="(\w*)",waiting_lora_adapters="(\w*)"\} (\S+)`)
	var sets []string
	for _, m := range info.FindAllStringSubmatch(string(ask(t, "GET", r.URL+"/metrics", "").body), -1) {
		if m[1] != m[2] {
			t.Errorf("lists differ: %v", m)
		}
		sets = append(sets, m[3]+" "+m[1])
	}
	sort.Strings(sets)
	var order []string
	for _, s := range sets {
		_, name, _ := strings.Cut(s, " ")
		order = append(order, name)
	}
	if !slices.Equal(order, []string{"a", "b", ""}) {
		t.Errorf("by time: %q, want a, b, none", sets)
	}
}
