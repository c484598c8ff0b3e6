package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/warmlane/warmlane/"

// allowed lists, for every package of the house, which of ours it may import.
// A package imports only from lower levels: none points upwards or sideways.
var allowed = map[string][]string{
	"filter":                   {"filter/abi", "filter/exchange", "filter/follow", "filter/report", "filter/shared", "filter/state"},
	"filter/exchange":          {"filter/json", "filter/kvindex", "filter/openai", "filter/prefix", "filter/route", "filter/shared", "filter/state"},
	"filter/follow":            {"filter/kvindex", "filter/shared", "filter/state"},
	"filter/json":              {},
	"filter/openai":            {"filter/json"},
	"filter/kvindex":           {"filter/shared", "filter/xxh64"},
	"filter/prefix":            {"filter/shared", "filter/xxh64"},
	"filter/report":            {"filter/openai", "filter/route", "filter/shared", "filter/state"},
	"filter/route":             {"filter/json", "filter/shared", "filter/state"},
	"filter/shared":            {},
	"filter/state":             {},
	"filter/xxh64":             {},
	"filter/abi":               {},
	"hostsim":                  {},
	"hostsim/transcript":       {},
	"hostsim/conformance":      {"hostsim"},
	"control":                  {"control/collect", "control/collect/kvevents", "control/publish", "filter/state", "filter/prefix"},
	"control/collect":          {"control/collect/blocks", "control/collect/kvevents", "filter/kvindex", "filter/openai", "filter/state", "filter/prefix"},
	"control/collect/blocks":   {"control/collect/kvevents", "filter/kvindex", "filter/openai"},
	"control/collect/kvevents": {},
	"control/publish":          {"filter/state"},
}

// core are the packages that know nothing of Proxy-Wasm and get clock, dice
// and store as arguments.
var core = []string{"filter/exchange", "filter/follow", "filter/json", "filter/kvindex", "filter/openai", "filter/prefix", "filter/report", "filter/route", "filter/shared", "filter/state", "filter/xxh64"}

// forbidden gives, for each import the core must not have, the reason.
var forbidden = map[string]string{
	"os":                       "a Wasm guest has no files, and its start-up calls WASI functions that old Envoys lack",
	"net":                      "a guest has no sockets; it asks its host for calls",
	"net/http":                 "a guest has no sockets; it asks its host for calls",
	"log":                      "the core returns values; what is worth a log line is the glue's to say",
	"fmt":                      "it brings os along, and reflection on the request path",
	"math/rand":                "dice are an argument, so that every run can be replayed",
	"math/rand/v2":             "dice are an argument, so that every run can be replayed",
	"encoding/json":            "it brings os along, and reflection on the request path",
	"github.com/tidwall/gjson": "it imports encoding/json and so os: see package json",
	"reflect":                  "reflection makes garbage on every request",
	"unsafe":                   "the only unsafe code is the binding of the ABI",
	"context":                  "a guest has one goroutine; waiting is a fatal deadlock",
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types": "Proxy-Wasm's words end at the glue",
}

func TestImportsGoDownward(t *testing.T) {
	for dir, mayImport := range allowed {
		for _, file := range parse(t, dir) {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				ours, isOurs := strings.CutPrefix(path, module)
				if isOurs && !contains(mayImport, ours) {
					t.Errorf("%s imports %s, which is not below it", dir, ours)
				}
			}
		}
	}
}

func TestCoreIsPure(t *testing.T) {
	for _, dir := range core {
		for name, file := range parse(t, dir) {
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				if reason, bad := forbidden[path]; bad {
					t.Errorf("%s imports %s: %s", name, path, reason)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if what := impure(n); what != "" {
					t.Errorf("%s: %s: a Wasm VM has one goroutine, and time is an argument", name, what)
				}
				return true
			})
		}
	}
}

// impure names a statement that starts or waits for something.
func impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.ChanType:
		return "channel"
	case *ast.SelectStmt:
		return "select"
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" {
			switch n.Sel.Name {
			case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker":
				return "time." + n.Sel.Name
			}
		}
	}
	return ""
}

func TestEveryPackageHasItsLaw(t *testing.T) {
	for _, room := range []string{"filter", "control", "hostsim"} {
		err := filepath.WalkDir("../"+room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" || d.Name() == "internal" {
				return filepath.SkipDir
			}
			dir := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if _, ok := allowed[dir]; !ok && len(parse(t, dir)) > 0 {
				t.Errorf("package %s has no row in the table of imports", dir)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// parse reads the Go files of a package, whatever their build tags, without
// its tests.
func parse(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]*ast.File)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(name, "../")] = file
	}
	return files
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
