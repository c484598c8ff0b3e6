//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

// line is what the access log says of a request.
type line struct {
	ID, Pool, Model       string
	Tier                  int
	Branch, Fallback      string
	Replica, Answered     string
	Matched, Prompt       int
	Predicted, Candidates int
	Scores                map[string]float64
	Load                  map[string]float64
	Status                int
	TTFT                  *int `json:"ttft_ms"`
	Duration              *int `json:"duration_ms"`
	PromptTokens          *int `json:"prompt_tokens"`
	CompletionTokens      *int `json:"completion_tokens"`
	Cached                *int
	Outcome               string
}

// logged waits until the log has a line of the filter's for each entry.
func (b *books) logged() map[string]*line {
	b.t.Helper()
	lines := map[string]*line{}
	b.eventually(20*time.Second, "the log is written", func() bool {
		clear(lines)
		text, err := os.ReadFile(filepath.Join(b.logs, "access.log"))
		if err != nil {
			b.t.Fatal(err)
		}
		for _, s := range strings.Split(string(text), "\n") {
			l := &line{}
			if err := json.Unmarshal([]byte(s), l); err == nil && l.Outcome != "" && l.ID != "" {
				lines[l.ID] = l
			}
		}
		return len(lines) >= len(b.entries)
	})
	return lines
}

// audit compares everything that tells of the requests.
func (b *books) audit(t *testing.T) {
	lines := b.logged()
	if len(lines) != len(b.entries) {
		t.Errorf("%d lines for %d requests", len(lines), len(b.entries))
	}
	misses := 0
	for id, e := range b.entries {
		l := lines[id]
		if l == nil {
			t.Fatalf("no line for %s", id)
		}
		e.check(t, l)
		if l.Answered != "" && l.Replica != "" && l.Answered != l.Replica {
			misses++
		}
	}
	if misses != 1 {
		t.Errorf("%d requests were answered by another replica than the one named, want 1", misses)
	}
	b.auditMetrics(t, lines)
	b.auditState(t)
}

// check holds a line against what the client saw.
func (e *entry) check(t *testing.T, l *line) {
	t.Helper()
	if l.Pool != "default" || l.Model != e.model || l.Status != e.reply.status || l.Outcome != e.outcome {
		t.Errorf("%s: pool %q, model %q, status %d, outcome %s; want model %q, status %d, outcome %s",
			l.ID, l.Pool, l.Model, l.Status, l.Outcome, e.model, e.reply.status, e.outcome)
	}
	header := e.reply.header.Get("x-warmlane-decision")
	if header == "" {
		if e.reply.status != 0 && e.outcome != "local_reply" {
			t.Errorf("%s: status %d without a decision", l.ID, e.reply.status)
		}
		return
	}
	want := fmt.Sprintf("tier=%d, branch=%s", l.Tier, l.Branch)
	if l.Replica != "" {
		want += fmt.Sprintf(", replica=%q", l.Replica)
	}
	want += fmt.Sprintf(", matched=%d, prompt=%d", l.Matched, l.Prompt)
	if l.Tier == 1 {
		want += ", est"
	}
	if want += fmt.Sprintf(", candidates=%d, queue_ms=0", l.Candidates); header != want {
		t.Errorf("%s: the client was told %s, the log %s", l.ID, header, want)
	}
	if said := last(promptMember, e.reply.body); said != "" && (l.PromptTokens == nil || said != strconv.Itoa(*l.PromptTokens)) {
		t.Errorf("%s: the replica counted %s tokens, the log has %v", l.ID, said, l.PromptTokens)
	}
}

// tallied are the values that series must have, by name and labels as they
// stand on the page, with labels in order.
type tallied map[string]float64

func (c tallied) add(n float64, name string, labels ...string) {
	pairs := []string{}
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	slices.Sort(pairs)
	if n != 0 {
		c[name+"{"+strings.Join(pairs, ",")+"}"] += n
	}
}

// auditMetrics holds the page of metrics against the sum of all lines. Calls to
// learn prompts come when requests have ended, and how many values a histogram
// has is known only after Envoy's next flush.
func (b *books) auditMetrics(t *testing.T, lines map[string]*line) {
	named := b.namedModels(t)
	var want, got tallied
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		want, got = b.wanted(lines, named), b.scraped()
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	for _, s := range slices.Sorted(maps.Keys(union(want, got))) {
		if want[s] != got[s] {
			t.Errorf("%s is %v, want %v", s, got[s], want[s])
		}
	}
}

// wanted is what the lines add up to.
func (b *books) wanted(lines map[string]*line, named map[string]bool) tallied {
	want := tallied{}
	want.add(1, "warmlane_override_misses_total", "pool", "default") // of retried
	for id, l := range lines {
		label := l.Model
		if !named[label] {
			label = "other"
		}
		want.count(l, label)
		want.measure(l, label)
		want.predict(l, label, b.slotOf(l.Replica))
		if fault := b.entries[id].fault; fault != "" {
			want.add(1, "warmlane_scan_errors_total", "kind", fault)
		}
	}
	calls := float64(b.tokenized())
	want.add(calls, "warmlane_tokenize_total", "pool", "default", "outcome", "ok")
	want.add(calls, "warmlane_tokenize_ms", "pool", "default", "outcome", "ok")
	return want
}

// slotOf is the slot of the replica at an address, "" if there is none.
func (b *books) slotOf(address string) string {
	for i, r := range b.replicas {
		if r.Addr == address {
			return b.slots[i]
		}
	}
	return ""
}

func union(a, b tallied) tallied {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}

// count adds what counters take from a line.
func (c tallied) count(l *line, label string) {
	of := []string{"pool", l.Pool, "model", label}
	c.add(1, "warmlane_requests_total", append(of, "status", strconv.Itoa(l.Status))...)
	c.add(1, "warmlane_outcomes_total", append(of, "outcome", l.Outcome)...)
	if l.Branch != "" {
		c.add(1, "warmlane_decisions_total", append(of, "tier", strconv.Itoa(l.Tier), "branch", l.Branch)...)
		c.add(float64(l.Matched), "warmlane_matched_tokens_total", of...)
	}
	if l.Fallback != "" {
		c.add(1, "warmlane_decisions_total", append(of, "tier", "2", "branch", l.Fallback)...)
	}
	if strings.HasPrefix(l.Model, "ghost-") {
		c.add(3, "warmlane_candidates_dropped_total", "pool", l.Pool, "filter", "model")
	}
	told := false
	for kind, n := range map[string]*int{"prompt": l.PromptTokens, "completion": l.CompletionTokens, "cached": l.Cached} {
		if n != nil {
			told = true
			c.add(float64(*n), "warmlane_tokens_total", append(of, "kind", kind)...)
		}
	}
	if l.Status == 200 && l.Outcome == "ok" && !told {
		c.add(1, "warmlane_usage_missing_total", of...)
	}
}

// measure adds how many values histograms take from a line.
func (c tallied) measure(l *line, label string) {
	of := []string{"pool", l.Pool, "model", label}
	if l.Branch != "" {
		c.add(1, "warmlane_candidates", "pool", l.Pool)
	}
	for scorer := range l.Scores {
		c.add(1, "warmlane_score_permille", "pool", l.Pool, "scorer", scorer)
	}
	if l.Load != nil {
		c.add(1, "warmlane_load_age_ms", "pool", l.Pool)
	}
	if l.Duration != nil {
		c.add(1, "warmlane_duration_ms", of...)
	}
	if l.TTFT != nil {
		c.add(1, "warmlane_ttft_ms", of...)
		if l.Outcome == "ok" {
			c.add(1, "warmlane_time_per_output_token_us", of...)
		}
	}
}

// predict adds by how much the prediction was wrong, if the replica it was
// about has said what it had.
func (c tallied) predict(l *line, label, slot string) {
	if l.Cached == nil || l.Replica == "" || l.Replica != l.Answered {
		return
	}
	wrong := float64(max(l.Predicted, *l.Cached) - min(l.Predicted, *l.Cached))
	c.add(wrong, "warmlane_predicted_error_tokens_total", "pool", l.Pool, "model", label)
	c.add(wrong, "warmlane_replica_error_tokens_total", "pool", l.Pool, "slot", slot)
}

// namedModels are those with a label of their own: the one of the
// configuration and, as two are allowed, one of the two others that replicas have.
func (b *books) namedModels(t *testing.T) map[string]bool {
	named := map[string]bool{}
	for s := range b.scraped() {
		if m := regexp.MustCompile(`model="([^"]*)"`).FindStringSubmatch(s); m != nil {
			named[m[1]] = true
		}
	}
	if !named["other"] || !named["m"] || len(named) != 3 || !named["n"] && !named["o"] {
		t.Errorf("models %v have labels; two may, and other", slices.Sorted(maps.Keys(named)))
	}
	delete(named, "other")
	return named
}

// scraped are the filter's counters and the numbers of its histograms' values,
// as the page has them that Prometheus is told to read. Which replicas were
// soft-dropped is a matter of time and left out.
func (b *books) scraped() tallied {
	c := tallied{}
	for name, family := range b.page() {
		for _, m := range family.GetMetric() {
			labels := []string{}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			switch soft := slices.Contains(labels, "avoid") || slices.Contains(labels, "unknown"); {
			case family.GetType() == dto.MetricType_HISTOGRAM:
				c.add(float64(m.GetHistogram().GetSampleCount()), name, labels...)
			case family.GetType() == dto.MetricType_COUNTER && !soft:
				c.add(m.GetCounter().GetValue(), name, labels...)
			}
		}
	}
	return c
}

// page reads the filter's metrics as examples/monitoring/prometheus.yaml says.
func (b *books) page() map[string]*dto.MetricFamily {
	b.t.Helper()
	var scrape struct {
		Configs []struct {
			Job    string `json:"job_name"`
			Path   string `json:"metrics_path"`
			Params url.Values
		} `json:"scrape_configs"`
	}
	text, err := os.ReadFile("../monitoring/prometheus.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &scrape)
	}
	if err != nil || len(scrape.Configs) == 0 || scrape.Configs[0].Job != "warmlane-envoy" {
		b.t.Fatalf("prometheus.yaml: %v %+v", err, scrape)
	}
	resp, err := http.Get(b.admin + scrape.Configs[0].Path + "?" + scrape.Configs[0].Params.Encode())
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return families
}

// auditState sees that what the filter says of its state is what control says.
func (b *books) auditState(t *testing.T) {
	b.current()
	families := b.page()
	age := families["warmlane_state_age_ms"].GetMetric()
	if len(age) != 1 || age[0].GetGauge().GetValue() > 5000 {
		t.Errorf("age of the state: %v", age)
	}
	slots := []string{}
	for _, m := range families["warmlane_in_flight"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "slot" {
				slots = append(slots, l.GetValue())
			}
		}
		if m.GetGauge().GetValue() != 0 {
			t.Errorf("in flight: %v", m)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(slots)), slices.Sorted(slices.Values(b.slots))) {
		t.Errorf("in flight: slots %v, control has %v", slots, b.slots)
	}
	for name := range families {
		if !strings.HasPrefix(name, "warmlane_") {
			t.Errorf("%s is on the page", name)
		}
	}
	if got := b.controlSeries("warmlane_control_replicas", `pool="default"`, `state="healthy"`); got != 3 {
		t.Errorf("control has %v healthy replicas", got)
	}
}
