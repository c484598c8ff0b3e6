package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestFitted makes every contestant's configuration of the real envoy.yaml, so that a change there shows here.
func TestFitted(t *testing.T) {
	document, err := os.ReadFile("../quickstart/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := site{replicas: []string{"127.0.0.1:8001", "127.0.0.1:8002"}, control: "127.0.0.1:9902", wasm: "some/warmlane.wasm"}
	f := func(name string, filters string, holds, lacks []string) {
		t.Helper()
		list, err := chosen([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		config, err := fitted(document, list[len(list)-1], s)
		if err != nil {
			t.Fatal(err)
		}
		if got := filtersOf(t, config); got != filters {
			t.Errorf("%s: filters %s, want %s", name, got, filters)
		}
		for _, word := range append(holds, "port_value: 8002") {
			if !bytes.Contains(config, []byte(word)) {
				t.Errorf("%s: %q is missing", name, word)
			}
		}
		for _, word := range append(lacks, "EDIT", "/etc/") {
			if bytes.Contains(config, []byte(word)) {
				t.Errorf("%s: %q is there", name, word)
			}
		}
	}
	const whole, router = "warmlane buffer warmlane-headers envoy.filters.http.router", "envoy.filters.http.router"
	f(plain, router, []string{"round_robin"}, []string{"retry_policy", "access_log", "9902", "wasm"})
	f("buffer", "buffer "+router, []string{"round_robin"}, []string{"retry_policy", "access_log", "9902", "wasm"})
	f("logged", router, []string{"retry_policy", os.DevNull}, []string{"9902", "warmlane.wasm"})
	f(warmlane, whole, []string{"some/warmlane.wasm", "9902", "override_host", os.DevNull}, nil)
	f("unlogged", whole, []string{"some/warmlane.wasm", `"log":false`}, []string{os.DevNull})
}

func filtersOf(t *testing.T, config []byte) string {
	t.Helper()
	var doc tree
	if err := yaml.Unmarshal(config, &doc.root); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range doc.get(filtersPath).([]any) {
		names = append(names, nameOf(f))
	}
	return strings.Join(names, " ")
}

func TestFittedNamesWhatIsMissing(t *testing.T) {
	_, err := fitted([]byte("admin: {}"), contestants[0], site{})
	if err == nil || !strings.Contains(err.Error(), "plain: there is no static_resources") {
		t.Errorf("got %v, want the place named", err)
	}
}

func TestChosen(t *testing.T) {
	list, err := chosen([]string{warmlane, plain})
	if err != nil || len(list) != 2 || list[0].name != plain || list[1].name != warmlane {
		t.Errorf("got %v, %v", list, err)
	}
	if _, err := chosen([]string{"nobody"}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("got %v, want the name", err)
	}
}

func TestTreeDrop(t *testing.T) {
	doc := &tree{root: object{"a": object{"b": 1, "list": []any{object{"name": "x"}, object{"name": "y"}}}, "c": 2}}
	doc.drop("a/b")
	doc.drop("a/list/x")
	doc.drop("c")
	got, _ := json.Marshal(doc.root)
	if string(got) != `{"a":{"list":[{"name":"y"}]}}` || doc.err != nil {
		t.Errorf("got %s, %v", got, doc.err)
	}
	if doc.drop("a/none"); doc.err == nil {
		t.Error("nothing was there, and no error")
	}
}

func TestPrompts(t *testing.T) {
	for _, size := range []int{2 << 10, 32 << 10, 220 << 10} {
		bodies, err := prompts(size, true)
		if err != nil || len(bodies) != conversations {
			t.Fatalf("%d bytes: %d bodies, %v", size, len(bodies), err)
		}
		different := map[string]bool{}
		for _, body := range bodies {
			checkPrompt(t, body, size)
			different[string(body)] = true
		}
		if len(different) != conversations {
			t.Errorf("%d bytes: %d different bodies, want %d", size, len(different), conversations)
		}
	}
}

func checkPrompt(t *testing.T, body []byte, size int) {
	t.Helper()
	var chat chatBody
	if err := json.Unmarshal(body, &chat); err != nil || !chat.Stream || len(chat.Messages) < 2 {
		t.Errorf("%d messages, %v", len(chat.Messages), err)
	}
	if len(body) > size || len(body) < size*98/100 {
		t.Errorf("a body of %d bytes, want %d", len(body), size)
	}
	for _, mark := range []string{`\n`, `\"`, "é"} {
		if !bytes.Contains(body, []byte(mark)) {
			t.Errorf("no %s in a body of %d bytes", mark, size)
		}
	}
}

func TestParseReport(t *testing.T) {
	const good = `{"spec":{},"result":{"timeTakenSeconds":2,"req2xx":10,"others":0,"latency":{"mean":7,"percentiles":{"50":1500,"99":9000}}}}`
	r, err := parseReport([]byte(good))
	if err != nil || r.throughput() != 5 || r.p50 != 0.0015 || r.p99 != 0.009 {
		t.Errorf("got %+v, %v", r, err)
	}
	f := func(report string) {
		t.Helper()
		if r, err := parseReport([]byte(report)); err == nil {
			t.Errorf("accepted as %+v", r)
		}
	}
	f(strings.Replace(good, `"others":0`, `"others":1`, 1))
	f(strings.Replace(good, `"others":0`, `"req5xx":1`, 1))
	f(strings.Replace(good, `"req2xx":10`, `"req2xx":0`, 1))
	f("Bombarding http://...")
}

func TestJoinWeighsByRequests(t *testing.T) {
	got := join([]result{{requests: 1, took: 1, p50: 4, p99: 8}, {requests: 3, took: 1.5, p50: 8, p99: 16}})
	if want := (result{requests: 4, took: 1.5, p50: 7, p99: 14}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := join(nil); got != (result{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestRatios(t *testing.T) {
	var base, other []sample
	for _, cpu := range []float64{1, 2, 4, 8, 16} {
		base = append(base, sample{cpu: cpu})
		other = append(other, sample{cpu: cpu * cpu})
	}
	if got, want := ratios(base, other, cpuOf), (spread{2, 4, 8}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := spreadOf([]float64{3, 1}), (spread{1.5, 2, 2.5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBudget(t *testing.T) {
	f := func(name string, w row, cpu, p50 float64, want string) {
		t.Helper()
		if got := budgetOf(name, w).judge(line{CPU: cpu, P50: p50}); got != want {
			t.Errorf("%s %s: %q, want %q", name, w.label(), got, want)
		}
	}
	short, long := row{size: 2 << 10, connections: 8}, row{size: 220 << 10, connections: 8}
	f(warmlane, short, 1.4, 1.25, "within")
	f(warmlane, short, 1.41, 1.25, "over")
	f(warmlane, short, 1.4, 1.26, "over")
	f(warmlane, long, 1.5, 1.6, "within")
	f(warmlane, row{size: 221 << 10, connections: 8}, 9, 9, "")
	f(warmlane, row{size: 2 << 10, connections: 32}, 9, 9, "")
	f(warmlane, row{size: 2 << 10, connections: 32, stream: true}, 1.21, 9, "over")
	f("buffer", short, 9, 9, "")
	o := options{gate: true}
	if gate(o, []line{{verdict: "over"}}) == nil || gate(o, []line{{verdict: "within"}}) != nil || gate(options{}, []line{{verdict: "over"}}) != nil {
		t.Error("the gate is wrong")
	}
}

func TestReport(t *testing.T) {
	w := row{size: 2 << 10, connections: 8}
	one := func(cpu float64) []sample {
		return []sample{{result{requests: 10, took: 1, p50: cpu, p99: 2 * cpu}, cpu}}
	}
	list := lines(w, []*running{{contestant: contestants[0]}, {contestant: contestants[2]}}, [][]sample{one(1e-4), one(3e-4)})
	var table strings.Builder
	heading(&table)
	list[1].print(&table)
	if !strings.Contains(table.String(), "3.00 (3.00-3.00)") || !strings.Contains(table.String(), "over") {
		t.Errorf("got\n%s", &table)
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := saveLines(path, list); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	var saved []map[string]any
	if err != nil || json.Unmarshal(data, &saved) != nil || len(saved) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	for key, want := range map[string]any{"name": "warmlane", "prompt_bytes": 2048., "concurrency": 8., "throughput_ratio": 1.} {
		if saved[0][key] != want {
			t.Errorf("%s is %v, want %v", key, saved[0][key], want)
		}
	}
	for _, key := range []string{"p50_ratio", "p99_ratio", "cpu_ratio"} {
		if got, _ := saved[0][key].(float64); got < 2.99 || got > 3.01 {
			t.Errorf("%s is %v", key, saved[0][key])
		}
	}
}

func TestBackend(t *testing.T) {
	server := httptest.NewServer(replicaHandler())
	defer server.Close()
	ask := func(headers ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		return resp, string(body)
	}
	if resp, body := ask(); !json.Valid([]byte(body)) || resp.Header.Get("endpoint-load-metrics") != "" {
		t.Errorf("plain answer: %v %s", resp.Header, body)
	}
	if resp, _ := ask("endpoint-load-metrics-format", "TEXT"); resp.Header.Get("endpoint-load-metrics") == "" {
		t.Error("no load report")
	}
	if _, body := ask("accept", "text/event-stream"); strings.Count(body, "data: ") != chunks || !strings.HasSuffix(body, string(doneBody)) {
		t.Errorf("a stream of %d chunks", strings.Count(body, "data: "))
	}
}

func TestParseFlags(t *testing.T) {
	o, err := parseFlags([]string{"-sizes", "10,20", "-envoys", "logged", "-concurrency", "3", "-rounds", "2", "-gate"}, io.Discard)
	if err != nil || len(o.sizes) != 2 || o.sizes[1] != 20 || o.names[0] != "logged" || o.connections[0] != 3 || o.rounds != 2 || !o.gate {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-sizes", "0"}, {"-sizes", "x"}, {"-rounds", "0"}, {"-seconds", "0.5"}, {"-workers", "0"}, {"more"}} {
		if _, err := parseFlags(bad, io.Discard); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
