package monitoring

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// ruleFile is what of Prometheus' rule files is used here.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert string
	Expr          string
	For           string
	Labels        map[string]string
	Annotations   map[string]string
}

// scrapeFile is what of Prometheus' configuration is used here.
type scrapeFile struct {
	Global struct {
		ScrapeInterval     string `json:"scrape_interval"`
		EvaluationInterval string `json:"evaluation_interval"`
	}
	RuleFiles     []string `json:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string `json:"job_name"`
		MetricsPath   string `json:"metrics_path"`
		Params        map[string][]string
		StaticConfigs []struct{ Targets []string } `json:"static_configs"`
	} `json:"scrape_configs"`
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestNames holds every name that the rules and the dashboard ask for against
// what the filter and control really have, and the other way round: what is
// counted is shown.
func TestNames(t *testing.T) {
	known := filterSeries(t)
	maps.Copy(known, controlSeries(t))
	checkContract(t, known)
	var scrape scrapeFile
	load(t, "prometheus.yaml", &scrape)
	var jobs []string
	for _, s := range scrape.ScrapeConfigs {
		jobs = append(jobs, s.JobName)
	}
	known["up"] = series{"gauge", map[string][]string{"job": jobs, "instance": nil}}
	var rules ruleFile
	for _, file := range scrape.RuleFiles {
		load(t, file, &rules)
	}
	counted := slices.Collect(maps.Keys(known))
	used := append(checkRules(t, &rules, known), checkDashboard(t, known)...)
	for _, m := range counted {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m, "")
		if !slices.ContainsFunc(used, func(u string) bool { return strings.HasPrefix(u, family) }) {
			t.Errorf("neither a rule nor the dashboard uses %s", m)
		}
	}
}

// checkRules returns the metrics that the rules use.
func checkRules(t *testing.T, f *ruleFile, known catalogue) (used []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			name := r.Record + r.Alert
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
			q := read(r.Expr, known)
			if q.err != nil {
				t.Errorf("%s: %v", name, q.err)
				continue
			}
			used = append(used, q.uses...)
			if r.Record != "" {
				checkRecord(t, &r, q, known)
			} else {
				checkAlert(t, &r, q)
			}
		}
	}
	return used
}

// checkRecord sees that a record's name begins with the labels it keeps, and
// makes it known.
func checkRecord(t *testing.T, r *rule, q *query, known catalogue) {
	t.Helper()
	s := series{"gauge", map[string][]string{}}
	for _, l := range q.by {
		s.labels[l] = nil
	}
	level, _, ok := strings.Cut(r.Record, ":")
	if want := slices.Sorted(maps.Keys(s.labels)); !ok || !slices.Equal(slices.Sorted(slices.Values(strings.Split(level, "_"))), want) {
		t.Errorf("%s keeps the labels %q", r.Record, want)
	}
	known[r.Record] = s
}

var labelInText = regexp.MustCompile(`\$labels\.(\w+)`)

// checkAlert sees that an alert says how bad it is, and what and what to do in
// words whose labels exist.
func checkAlert(t *testing.T, r *rule, q *query) {
	t.Helper()
	if !regexp.MustCompile(`^Warmlane[A-Z]\w+$`).MatchString(r.Alert) {
		t.Errorf("%q: the name of an alert begins with Warmlane", r.Alert)
	}
	if d, err := time.ParseDuration(r.For); r.For != "" && (err != nil || d < time.Minute) {
		t.Errorf("%s: for: %q", r.Alert, r.For)
	}
	if r.For == "" && !strings.Contains(r.Expr, "increase") {
		t.Errorf("%s: one bad scrape fires it", r.Alert)
	}
	if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
		t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
	}
	for _, key := range []string{"summary", "runbook"} {
		said := r.Annotations[key]
		if len(said) < 30 {
			t.Errorf("%s: %s: %q", r.Alert, key, said)
		}
		for _, m := range labelInText.FindAllStringSubmatch(said, -1) {
			if !slices.Contains(q.result(), m[1]) {
				t.Errorf("%s: the %s names the label %s, which is not in the result", r.Alert, key, m[1])
			}
		}
	}
}

// TestScrape sees that each part is asked at its own page, and that Envoy makes
// labels of all that the filter writes into names.
func TestScrape(t *testing.T) {
	var scrape scrapeFile
	load(t, "prometheus.yaml", &scrape)
	paths := map[string]string{}
	for _, s := range scrape.ScrapeConfigs {
		paths[s.JobName] = s.MetricsPath
	}
	if want := map[string]string{"warmlane-envoy": "/stats/prometheus", "warmlane-control": "/metrics"}; !maps.Equal(paths, want) {
		t.Errorf("pages %v, want %v", paths, want)
	}
	var envoy struct {
		Stats struct {
			Tags []struct {
				Name  string `json:"tag_name"`
				Regex string
			} `json:"stats_tags"`
		} `json:"stats_config"`
	}
	b, err := os.ReadFile("../quickstart/envoy.yaml")
	if err == nil {
		err = yaml.Unmarshal(b, &envoy)
	}
	if err != nil {
		t.Fatal(err)
	}
	cut := map[string]bool{"instance": true, "job": true, "le": true}
	for _, tag := range envoy.Stats.Tags {
		m := regexp.MustCompile(tag.Regex).FindStringSubmatch("name;" + tag.Name + "=it;more=other")
		cut[tag.Name] = len(m) == 3 && m[1] == ";"+tag.Name+"=it" && m[2] == "it"
	}
	for name, s := range filterSeries(t) {
		for label := range s.labels {
			if !cut[label] {
				t.Errorf("%s: no rule in envoy.yaml cuts out the label %s", name, label)
			}
		}
	}
}
