package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what of Grafana's format is checked here.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ Type, UID string }
	}
}

var (
	variable     = regexp.MustCompile(`\$\{?(\w+)`)
	labelInTitle = regexp.MustCompile(`\{\{(\w+)\}\}`)
	labelValues  = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
)

// checkDashboard returns the metrics that the dashboard uses.
func checkDashboard(t *testing.T, known catalogue) (used []string) {
	t.Helper()
	d := readDashboard(t)
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			checkVariable(t, v.Name, v.Definition, known)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			q := read(target.Expr, known)
			if q.err != nil {
				t.Errorf("panel %q: %v", p.Title, q.err)
			}
			used = append(used, q.uses...)
			for _, m := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("panel %q: there is no variable %s", p.Title, m[1])
				}
			}
			for _, m := range labelInTitle.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(q.result(), m[1]) {
					t.Errorf("panel %q: the legend names the label %s, which is not in the result", p.Title, m[1])
				}
			}
		}
	}
	return used
}

func checkVariable(t *testing.T, name, definition string, known catalogue) {
	t.Helper()
	m := labelValues.FindStringSubmatch(definition)
	if m == nil {
		t.Errorf("variable %s: %q", name, definition)
		return
	}
	if q := read(m[1], known); q.err != nil || !slices.Contains(q.result(), m[2]) {
		t.Errorf("variable %s: %q: %v", name, definition, q.err)
	}
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboard{}
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard sees that Grafana can take the dashboard in, and that panels do
// not lie on each other.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) < 20 {
		t.Errorf("uid %q, title %q, schema %d, %d panels", d.UID, d.Title, d.SchemaVersion, len(d.Panels))
	}
	if v := d.Templating.List[0]; v.Name != "datasource" || v.Type != "datasource" {
		t.Errorf("the first variable is %+v", v)
	}
	ids, squares := map[int]string{}, map[string]string{}
	for _, p := range d.Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("panels %q and %q have the id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.X+g.W > 24 || g.H < 1 {
			t.Errorf("panel %q: place %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				at := fmt.Sprint(x, ",", y)
				if other, taken := squares[at]; taken {
					t.Fatalf("panels %q and %q lie on each other", other, p.Title)
				}
				squares[at] = p.Title
			}
		}
		checkPanel(t, &p)
	}
}

func checkPanel(t *testing.T, p *panel) {
	t.Helper()
	if p.Type == "row" {
		return
	}
	if !slices.Contains([]string{"timeseries", "stat"}, p.Type) || len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "" {
		t.Errorf("panel %q: type %q, unit %q, %d queries", p.Title, p.Type, p.FieldConfig.Defaults.Unit, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, target := range p.Targets {
		if refs[target.RefID] || target.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q: query %q, data source %q", p.Title, target.RefID, target.Datasource.UID)
		}
		refs[target.RefID] = true
		checkUnit(t, p, target.Expr)
	}
}

// checkUnit sees that times are shown in the unit they are counted in.
func checkUnit(t *testing.T, p *panel, expr string) {
	t.Helper()
	if !strings.HasPrefix(expr, "histogram_quantile") {
		return
	}
	want := map[bool]string{true: "µs", false: "ms"}[strings.Contains(expr, "_us_bucket")]
	if unit := p.FieldConfig.Defaults.Unit; unit != want {
		t.Errorf("panel %q: unit %q, want %q", p.Title, unit, want)
	}
}
