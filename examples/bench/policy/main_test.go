package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/examples/bench/lab"
)

const lines = `{"timestamp": 600000, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]}
{"timestamp": 601000, "input_length": 1500, "output_length": 9, "hash_ids": [7, 9, 10]}
`

// The table and the file have a row for each setting, policy and number.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	trace, saved := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "results.json")
	if err := os.WriteFile(trace, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	args := "-settings conv-mid,0-602@1 -policies round-robin,text -workers 1,2 -proxies 1,2 -json " + saved
	if err := run(append(strings.Fields(args), "-trace", trace), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 1+2*2*2*2 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
	data, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	var results []lab.Result
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	last := results[len(results)-1]
	if len(results) != 16 || last.Setting != "0-602@1" || last.Policy != "text" || last.Workers != 2 || last.Proxies != 2 || last.Requests != 2 || last.TTFTMean <= 0 {
		t.Errorf("%d results, last %+v", len(results), last)
	}
}

func TestRunRefuses(t *testing.T) {
	f := func(args, want string) {
		t.Helper()
		if err := run(strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", args, err, want)
		}
	}
	f("-workers 0", "want a number above 0")
	f("-replicas 0", "replicas of at least 1")
	f("extra", "only flags")
	f("-trace nowhere", "nowhere")
	f("-trace x -settings tomorrow", `setting "tomorrow"`)
	f("-trace x -settings 5-1@1", "times that grow")
	f("-policies fast", `policy "fast"`)
}
