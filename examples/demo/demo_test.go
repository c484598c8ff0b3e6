package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/internal/envoy"
	"github.com/warmlane/warmlane/examples/internal/load"
)

func TestParseClusters(t *testing.T) {
	page := `{"cluster_statuses":[{"name":"replicas","host_statuses":[
		{"address":{"socket_address":{"address":"127.0.0.1","port_value":8001}},"stats":[{"name":"cx_total"},{"value":"7","name":"rq_total"}]},
		{"address":{"socket_address":{"address":"127.0.0.1","port_value":8002}},"stats":[{"name":"rq_total","value":"0"}]}]},{"name":"empty"}]}`
	got, err := parseClusters([]byte(page))
	if err != nil || !reflect.DeepEqual(got, map[string]int64{"127.0.0.1:8001": 7, "127.0.0.1:8002": 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseClusters([]byte("nonsense")); err == nil {
		t.Error("nonsense was taken")
	}
}

func TestParseDictionary(t *testing.T) {
	f := func(header string, want map[string]string) {
		t.Helper()
		if got := parseDictionary(header); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
	f(`tier=1, branch=cache_hit, replica="[::1]:8000", matched=640, est`, map[string]string{
		"tier": "1", "branch": "cache_hit", "replica": "[::1]:8000", "matched": "640", "est": "true"})
	f("", map[string]string{})
}

func sample() result {
	report := load.Summarize([]load.Outcome{
		{TTFT: time.Second, Usage: load.Usage{Prompt: 100}},
		{TTFT: 3 * time.Second, Usage: load.Usage{Prompt: 100, Cached: 90}},
	})
	return result{name: "Warmlane", report: report, took: 5 * time.Second,
		shares: []share{{"a", 1}, {"b", 3}}, branches: []envoy.Branch{{Name: "cache_hit", Count: 2}}}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	printTable(&out, []result{sample()})
	for _, want := range []string{"Warmlane", "requests", "45.0 %", "1.000 s", "3.000 s", "25 75 %", "branch cache_hit"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestStory(t *testing.T) {
	var out strings.Builder
	printStory(&out, []chapter{{load.Outcome{Decision: `tier=1, branch=cache_hit, replica="127.0.0.1:8001", matched=640, prompt=812`, Usage: load.Usage{Prompt: 800, Cached: 630}}}})
	for _, want := range []string{"127.0.0.1:8001", "cache_hit", "640 of   812", "630 of  800"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestFigures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.json")
	if err := writeFigures(file, load.Report{}, sample().report); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]float64
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{
		"round_robin": {"requests": 0, "errors": 0, "hit_ratio": 0, "ttft_p50_s": 0, "ttft_p90_s": 0},
		"warmlane":    {"requests": 2, "errors": 0, "hit_ratio": 0.45, "ttft_p50_s": 1, "ttft_p90_s": 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestFleetNamesWhatIsMissing(t *testing.T) {
	_, err := startFleet(t.Context(), filepath.Join(t.TempDir(), "nowhere"), "x", nil)
	if err == nil || !strings.Contains(err.Error(), "nowhere/replica") {
		t.Errorf("error %v", err)
	}
}
