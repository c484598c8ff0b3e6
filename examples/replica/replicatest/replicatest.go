// Package replicatest gives Go tests replicas of a vLLM server, inside the test's
// process or beside it:
//
//	r := replicatest.Start(t, node.Options{Speed: 10})
//	resp, err := http.Post(r.URL+"/v1/chat/completions", "application/json", body)
//	...
//	for _, e := range r.Requests() { ... }       // what arrived, with the hash of each body
//	r.Faults(`{"die_after_events": 3}`)          // from now on streams break
//	r.Blocks()                                   // what is really cached
//
// A replica of either kind ends with the test. The methods speak HTTP to the
// replica's /debug pages and fail the test when that is not possible.
package replicatest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

// Replica is a running replica.
type Replica struct {
	Addr   string // host and port
	URL    string // http:// and Addr
	Events string // endpoint of the KV events, "" without
	Replay string // endpoint of their replay, "" without

	t    testing.TB
	stop func()
	kill func()
}

// Start runs a replica in this process.
func Start(t testing.TB, o node.Options) *Replica {
	t.Helper()
	n, err := node.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &Replica{Addr: n.Addr(), URL: "http://" + n.Addr(), t: t, kill: n.Kill}
	r.Events, r.Replay = n.Events()
	r.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("replica %s: %v", r.Addr, err)
		}
	}
	t.Cleanup(n.Kill)
	return r
}

// Build compiles the command and returns its path. The file goes when the test ends.
func Build(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	bin := filepath.Join(t.TempDir(), "replica")
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir = filepath.Dir(filepath.Dir(here))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// StartProcess runs the command bin with args, which may be any of its flags, in
// a process of its own. It waits until requests are served.
func StartProcess(t testing.TB, bin string, args ...string) *Replica {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := process{cmd: cmd}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s %q ended before it was ready: %v", bin, args, err)
	}
	r := &Replica{t: t, stop: p.terminate, kill: p.kill}
	r.ready(line)
	return r
}

// ready reads the line that the command prints.
func (r *Replica) ready(line string) {
	r.t.Helper()
	for _, word := range strings.Fields(line) {
		switch name, value, _ := strings.Cut(word, "="); {
		case strings.HasPrefix(word, "http://"):
			r.URL, r.Addr = word, strings.TrimPrefix(word, "http://")
		case name == "kv_events":
			r.Events = value
		case name == "kv_replay":
			r.Replay = value
		}
	}
	if r.URL == "" {
		r.t.Fatalf("no address in %q", line)
	}
}

// process is a child that is waited for once.
type process struct {
	cmd  *exec.Cmd
	once sync.Once
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	p.wait()
}

func (p *process) terminate() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait()
}

func (p *process) wait() { p.once.Do(func() { _ = p.cmd.Wait() }) }

// Stop ends the replica after the requests under way.
func (r *Replica) Stop() { r.stop() }

// Kill ends the replica at once; connections are cut.
func (r *Replica) Kill() { r.kill() }

// Requests returns the requests that have ended, oldest first.
func (r *Replica) Requests() (list []wire.Entry) {
	r.t.Helper()
	r.get("/debug/requests", &list)
	return list
}

// Forget clears that list.
func (r *Replica) Forget() {
	r.t.Helper()
	r.do(http.MethodDelete, "/debug/requests", "", nil)
}

// Faults switches faults on or does an action: a JSON object with fields of
// wire.Faults and wire.Action. Faults not named stay as they are.
func (r *Replica) Faults(object string) {
	r.t.Helper()
	r.do(http.MethodPost, "/debug/faults", object, nil)
}

// Heal switches all faults off.
func (r *Replica) Heal() {
	r.t.Helper()
	r.do(http.MethodDelete, "/debug/faults", "", nil)
}

// Cache is what /debug/blocks tells.
type Cache struct {
	BlockSize int     `json:"block_size"`
	NextSeq   uint64  `json:"next_seq"` // of the event batches
	Unsent    int     `json:"unsent"`   // events not yet published; at 0 Blocks and events agree
	Total     int     `json:"total"`    // blocks of the cache
	Usage     float64 `json:"usage"`    // share of them in use
	Blocks    []Block `json:"blocks"`
}

// Block is one cached block.
type Block struct {
	Hash   uint64   `json:"hash"`
	Parent *uint64  `json:"parent"` // nil: the first of a prompt
	Copies int      `json:"copies"`
	Refs   int      `json:"refs"`
	Extra  []string `json:"extra"` // hashed beside the tokens: adapter, salt
	Tokens []uint32 `json:"tokens"`
}

// Blocks returns what is cached now.
func (r *Replica) Blocks() (c Cache) {
	r.t.Helper()
	r.get("/debug/blocks", &c)
	return c
}

func (r *Replica) get(path string, into any) {
	r.t.Helper()
	r.do(http.MethodGet, path, "", into)
}

// client keeps no connections, so that a replica that was restarted is not
// spoken to over a dead one.
var client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (r *Replica) do(method, path, body string, into any) {
	r.t.Helper()
	if err := call(method, r.URL+path, body, into); err != nil {
		r.t.Fatalf("replica %s: %v", r.Addr, err)
	}
}

func call(method, url, body string, into any) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
