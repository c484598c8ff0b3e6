package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

func TestFlags(t *testing.T) {
	refuse := func(want string, args ...string) {
		t.Helper()
		var stderr bytes.Buffer
		_, err := parseFlags(args, &stderr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", args, err, want)
		}
	}
	refuse("unexpected argument", "serve")
	refuse("needs -kv-events", "-kv-replay", "tcp://127.0.0.1:0")
	refuse("tcp://", "-kv-events", "127.0.0.1:0")
	refuse("-faults", "-faults", `{"statsu":1}`)
	refuse("needs a name", "-model", "")
	refuse("true or false", "-no-lora=maybe")
	refuse("not defined", "-nonsense")

	s, err := parseFlags([]string{"-model", "a", "-model", "b", "-kv-events", "tcp://127.0.0.1:0", "-faults", `{"slow":2}`,
		"-no-lora", "-kv-array-events", "-max-loras", "3"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.node; len(n.Wire.Models) != 2 || n.Events == nil || !n.Events.Shape.ArrayEvents || n.Faults.Slow != 2 ||
		!n.Wire.NoLoRA || n.Engine.MaxAdapters != 3 {
		t.Errorf("settings %+v", n)
	}
}

// TestReadmeNamesEveryFlag keeps the page for people complete.
func TestReadmeNamesEveryFlag(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	s.serverFlags(fs)
	s.engineFlags(fs)
	s.eventFlags(fs)
	fs.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(string(readme), "`-"+f.Name) {
			t.Errorf("README.md does not name -%s", f.Name)
		}
		if f.Usage == "" {
			t.Errorf("-%s has no explanation", f.Name)
		}
	})
	for _, key := range faultKeys(t) {
		if !strings.Contains(string(readme), "`"+key+"`") {
			t.Errorf("README.md does not name the fault %s", key)
		}
	}
}

// faultKeys are the fields POST /debug/faults takes.
func faultKeys(t *testing.T) (keys []string) {
	t.Helper()
	all := struct {
		wire.Faults
		wire.Action
	}{
		wire.Faults{Slow: 1, Times: 1, Status: 1, Reset: true, Hang: true, DieAfter: 1, StallAfter: 1, ErrorAfter: 1, AbortAfter: 1,
			Unhealthy: true, Metrics: "x", Tokenize: "x", Gzip: true},
		wire.Action{Exit: true, Restart: true, RefuseFor: 1, DropBatches: 1},
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for k := range m {
		keys = append(keys, k)
	}
	if len(keys) != 17 {
		t.Fatalf("%d faults, is one missing here? %v", len(keys), keys)
	}
	return keys
}

func TestProcess(t *testing.T) {
	bin := replicatest.Build(t)
	log := filepath.Join(t.TempDir(), "requests.jsonl")
	r := replicatest.StartProcess(t, bin, "-log", log, "-speed", "20", "-name", "r1")
	r.Faults(`{"slow":1}`)
	if got := r.Requests(); len(got) != 0 {
		t.Errorf("requests of a new replica: %+v", got)
	}
	r.Stop()
	if _, err := os.Stat(log); err != nil {
		t.Error(err)
	}

	out, err := exec.Command(bin, "-help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "-kv-events") {
		t.Errorf("-help: %v\n%s", err, out)
	}
	out, err = exec.Command(bin, "-listen", "nowhere:x:y").CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "replica: ") {
		t.Errorf("bad address: %v %s", err, out)
	}
}

// TestExitFault: a replica that is told to dies without a word, like one that was killed.
func TestExitFault(t *testing.T) {
	bin := replicatest.Build(t)
	cmd := exec.Command(bin, "-listen", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGKILL) }()
	line := make([]byte, 200)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "ready "))
	if resp, err := http.Post(url+"/debug/faults", "application/json", strings.NewReader(`{"exit":true}`)); err == nil {
		_ = resp.Body.Close()
		t.Errorf("it answered %s before it died", resp.Status)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 137 {
		t.Errorf("ended with %v, code %d, want 137", err, cmd.ProcessState.ExitCode())
	}
}
