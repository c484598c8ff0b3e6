package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type echo struct{ results []Result }

func (e *echo) Do(*Request, *Answer) (Result, error) {
	r := e.results[0]
	e.results = e.results[1:]
	return r, nil
}

func TestPlaySeesFaults(t *testing.T) {
	no := false
	script := func(w Want) *Script {
		return &Script{Name: "s", Replicas: 2, Steps: []Step{
			{Name: "one"},
			{Name: "two", Request: Request{BodyText: "in"}, Answer: Answer{Body: "out"}, Want: w},
		}}
	}
	good := Result{
		Status: 200, Replica: "a", Branch: "cache_hit", ReplicaBody: []byte("in"), ClientBody: []byte("out"),
		ReplicaHeaders: map[string]string{"x": "1"}, ClientHeaders: map[string]string{"y": "2"},
	}
	f := func(w Want, fault string) {
		t.Helper()
		err := script(w).Play(&echo{[]Result{{Replica: "a"}, good}})
		if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%+v: got %v, want %q", w, err, fault)
		}
	}
	f(Want{Status: 200, Branch: "cache_hit", SameReplica: "one", Routed: &no, BodyUnchanged: true, AnswerUnchanged: true,
		AtReplica: map[string]string{"x": "*"}, AtClient: map[string]string{"y": "2"}, NotAtClient: []string{"x"}}, "")
	f(Want{Status: 404}, "status 200, want 404")
	f(Want{Branch: "no_tree"}, `branch "cache_hit"`)
	f(Want{NotReplica: "one"}, "want another")
	f(Want{Reason: "no_replica"}, "reason")
	f(Want{AtReplica: map[string]string{"x": "2"}}, "at the replica x")
	f(Want{NotAtReplica: []string{"x"}}, "want none")
	f(Want{AtClient: map[string]string{"z": "*"}}, "at the client z")
	yes := true
	f(Want{Routed: &yes}, "destination")
	other := good
	other.ReplicaBody, other.ClientBody, other.Replica = []byte("IN"), []byte("OUT"), "b"
	err := script(Want{BodyUnchanged: true, AnswerUnchanged: true, SameReplica: "one"}).Play(&echo{[]Result{{Replica: "a"}, other}})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three faults, got %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	f := func(text, fault string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(dir)
		if fault == "" && (err != nil || len(s) != 1 || s[0].Name != "a") || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v, %v, want %q", text, s, err, fault)
		}
	}
	f(`{"replicas":1,"steps":[{"name":"x"}]}`, "")
	f(`{"replicas":1,"steps":[{"name":"x","want":{"brnach":"y"}}]}`, "brnach")
	f(`{"replicas":1,"steps":[{"name":"x","want":{"same_replica":"y"}}]}`, "no earlier step")
	f(`{"replicas":0,"steps":[{"name":"x"}]}`, "replicas")
	f(`{`, "a: unexpected EOF")
	if _, err := Load(filepath.Join(dir, "none")); err == nil {
		t.Error("an empty folder has no scripts, which must be an error")
	}
}
