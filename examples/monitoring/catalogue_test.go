package monitoring

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/warmlane/warmlane/examples/internal/proc"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/filter/exchange"
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/route"
)

// series is what is known of a metric.
type series struct {
	kind   string              // counter, gauge or histogram
	labels map[string][]string // with their values; none = any value
}

// catalogue is what there is to ask for, by name.
type catalogue map[string]series

// add notes a metric, a histogram by its three parts.
func (c catalogue) add(name string, s series) {
	s.labels["instance"], s.labels["job"] = nil, nil
	if s.kind != "histogram" {
		c[name] = s
		return
	}
	c[name+"_sum"], c[name+"_count"] = series{"counter", s.labels}, series{"counter", s.labels}
	bucket := maps.Clone(s.labels)
	bucket["le"] = nil
	c[name+"_bucket"] = series{"counter", bucket}
}

// filterSeries reads the filter's metrics out of its source. Every name there
// is an argument in a call of seriesName, which joins it with its labels, of a
// function that does so for its callers, or of metric itself.
func filterSeries(t *testing.T) catalogue {
	t.Helper()
	files := source(t, "../../filter/exchange")
	labels := map[string][]string{"metric": nil}
	calls(files, func(within string, call *ast.CallExpr, _ []ast.Node) {
		if _, variable := call.Args[0].(*ast.Ident); callee(call) == "seriesName" && variable {
			labels[within] = texts(call.Args[1:])
		}
	})
	c := catalogue{}
	calls(files, func(_ string, call *ast.CallExpr, around []ast.Node) {
		for i, arg := range call.Args {
			name := text(arg)
			if !strings.HasPrefix(name, "warmlane_") {
				continue
			}
			keys, known := labels[callee(call)]
			if callee(call) == "seriesName" {
				keys, known = texts(call.Args[i+1:]), true
			}
			kind := kindOf(append(around, call))
			if !known || kind == "" {
				t.Errorf("%s: its labels or its kind are not told where it is made", name)
			}
			s := series{kind, map[string][]string{}}
			for _, key := range keys {
				s.labels[key] = values(name, key)
			}
			c.add(name, s)
		}
	})
	if len(c) < 20 {
		t.Fatalf("the filter has %d metrics?", len(c))
	}
	return c
}

// source parses a package without its tests.
func source(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// calls visits all calls with arguments, with the function they are in and the
// nodes around them.
func calls(files []*ast.File, visit func(within string, call *ast.CallExpr, around []ast.Node)) {
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			var around []ast.Node
			ast.Inspect(fn, func(n ast.Node) bool {
				if n == nil {
					around = around[:len(around)-1]
					return true
				}
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					visit(fn.Name.Name, call, slices.Clone(around))
				}
				around = append(around, n)
				return true
			})
		}
	}
}

func callee(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// kindOf finds the kind in the innermost call that names one.
func kindOf(nodes []ast.Node) string {
	for _, n := range slices.Backward(nodes) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		for _, arg := range call.Args {
			if id, ok := arg.(*ast.Ident); ok && slices.Contains([]string{"Counter", "Gauge", "Histogram"}, id.Name) {
				return strings.ToLower(id.Name)
			}
		}
	}
	return ""
}

// text is a literal's value, "" for another expression.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

func texts(list []ast.Expr) []string {
	var out []string
	for _, e := range list {
		if s := text(e); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// values are the ones that a label of the filter's can have; none = any.
func values(name, label string) []string {
	var list []string
	switch {
	case label == "branch":
		for b := route.Branch(0); b < route.NumBranches; b++ {
			list = append(list, b.String())
		}
	case label == "filter":
		for f := route.Filter(0); f < route.NumFilters; f++ {
			list = append(list, f.String())
		}
	case label == "outcome" && strings.HasPrefix(name, "warmlane_tokenize_"):
		list = []string{"ok", "timeout", "error"}
	case label == "outcome":
		for o := exchange.OK; o <= exchange.LocalReply; o++ {
			list = append(list, o.String())
		}
	case label == "kind" && name == "warmlane_scan_errors_total":
		for f := openai.NoFault; f <= openai.PromptShape; f++ {
			list = append(list, f.String())
		}
	case label == "kind" && name == "warmlane_tokens_total":
		list = []string{"prompt", "completion", "cached"}
	case label == "tier":
		list = []string{"1", "2"}
	case label == "status":
		list = []string{"0", "200", "400", "404", "413", "500", "503"}
	}
	return list
}

// controlSeries asks a running control that follows one engine with KV events.
// Labels have the values they have there, but for names of pools and slots.
func controlSeries(t *testing.T) catalogue {
	t.Helper()
	engine := replicatest.Start(t, node.Options{Events: &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"}})
	url := startControl(t, "listen: 127.0.0.1:0\npools: [{name: default, replicas: [\""+engine.Addr+"\"], kv_events: true}]\n")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c := catalogue{}
		for name, family := range page(t, url+"/metrics") {
			if strings.HasPrefix(name, "warmlane_") {
				c.add(name, told(family))
			}
		}
		if _, ok := c["warmlane_control_kv_blocks"]; ok && c["warmlane_control_scrape_age_seconds"].kind != "" {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("control knows nothing of its replica: %v", c)
		}
	}
}

func startControl(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	bin, file := filepath.Join(dir, "control"), filepath.Join(dir, "control.yaml")
	if out, err := exec.Command("go", "build", "-o", bin, "../../control").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(t.Output(), bin, "-config", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(10 * time.Second) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	url, err := p.Ready(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// page reads a page of metrics.
func page(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text := expfmt.NewTextParser(model.UTF8Validation)
	families, err := text.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func told(family *dto.MetricFamily) series {
	s := series{strings.ToLower(family.GetType().String()), map[string][]string{}}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			name := l.GetName()
			s.labels[name] = append(s.labels[name], l.GetValue())
			if name == "pool" || name == "slot" {
				s.labels[name] = nil
			}
		}
	}
	return s
}
