//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
	blockSize      = 16 // tokens, of simulated engines
)

// fleet is a quickstart in front of simulated engines that publish KV events.
type fleet struct {
	*house
	replicas []*replicatest.Replica
	prints   map[string]int // system_fingerprint -> replica
	slots    []string       // of the replicas, as control names them
}

// engines starts n simulated engines. change, if not nil, fits their options.
func engines(t *testing.T, n int, change func(*node.Options)) []*replicatest.Replica {
	t.Helper()
	list := make([]*replicatest.Replica, n)
	for i := range list {
		o := node.Options{
			Speed:  20,
			Events: &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: "kv"},
			Wire:   wire.Config{Models: []string{"m"}, Name: fmt.Sprint("replica ", i)},
		}
		if change != nil {
			change(&o)
		}
		list[i] = replicatest.Start(t, o)
	}
	return list
}

// pool is a configuration file of a filter whose one pool has these members
// beside its name. more are other lines of YAML for the filter.
func pool(t *testing.T, members string, more ...string) string {
	t.Helper()
	file := t.TempDir() + "/config.yaml"
	lines := append([]string{"filter:", "pools: [{name: default, cluster: replicas, " + members + "}]"}, more...)
	write(t, file, strings.Join(lines, "\n  "))
	return file
}

// startFleet runs the quickstart in front of engines. One short request to each
// tells their names; it fills no block.
func startFleet(t *testing.T, list []*replicatest.Replica, config string, flags ...string) *fleet {
	t.Helper()
	f := &fleet{replicas: list, prints: map[string]int{}}
	addresses := make([]string, len(list))
	for i, r := range list {
		addresses[i] = r.Addr
		a := f.direct(t, i, completionPath, idPrompt([]int{300}))
		f.prints[a.print] = i
		r.Forget()
	}
	f.house = start(t, append(flags, "-replicas", strings.Join(addresses, ","), "-config", config)...)
	f.slots = make([]string, len(list))
	for _, r := range f.pools().Pools[0].Replicas {
		f.slots[slices.Index(addresses, r.Address)] = r.Slot
	}
	return f
}

// part is one of several tests on the same fleet.
type part struct {
	name string
	test func(*testing.T)
}

func (f *fleet) run(t *testing.T, parts []part) {
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			whole := f.t
			f.t = t
			defer func() { f.t = whole }()
			p.test(t)
		})
	}
}

// answer is what is to be known of a generating request.
type answer struct {
	reply
	print          string
	at             int // the replica that answered, -1 if that is not known
	prompt, cached int // tokens, as the replica counted; cached -1 if it did not say
}

var (
	printMember  = regexp.MustCompile(`"system_fingerprint":"([^"]+)"`)
	promptMember = regexp.MustCompile(`"prompt_tokens":(\d+)`)
	cachedMember = regexp.MustCompile(`"cached_tokens":(\d+)`)
)

// last is the last match of a member's value in an answer or its last event.
func last(member *regexp.Regexp, body []byte) string {
	all := member.FindAllSubmatch(body, -1)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1][1])
}

func (f *fleet) read(t *testing.T, r reply) answer {
	t.Helper()
	if r.err != nil || r.status != 200 {
		t.Fatalf("status %d, %v: %.300s", r.status, r.err, r.body)
	}
	a := answer{reply: r, print: last(printMember, r.body), at: -1, cached: -1}
	if i, ok := f.prints[a.print]; ok {
		a.at = i
	}
	a.prompt, _ = strconv.Atoi(last(promptMember, r.body))
	if n, err := strconv.Atoi(last(cachedMember, r.body)); err == nil {
		a.cached = n
	}
	return a
}

// ask sends a request through Envoy and has it explained.
func (f *fleet) ask(t *testing.T, path string, body []byte, headers ...string) answer {
	t.Helper()
	return f.read(t, post(fresh, f.url+path, body, append(headers, "x-warmlane-explain", "1")...))
}

// direct sends a request to a replica past Envoy: only KV events can tell of it.
func (f *fleet) direct(t *testing.T, replica int, path string, body []byte, headers ...string) answer {
	t.Helper()
	return f.read(t, post(fresh, f.replicas[replica].URL+path, body, headers...))
}

// item is a number out of x-warmlane-decision, -1 if it is not there.
func (a *answer) item(key string) int {
	m := regexp.MustCompile(`\b` + key + `=(\d+)`).FindStringSubmatch(a.header.Get("x-warmlane-decision"))
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// want asserts how a request was decided, who answered (-1: any replica, but the
// one that was named), and that as much was cached as was predicted.
func (f *fleet) want(t *testing.T, a answer, tier int, branch string, at, matched int) {
	t.Helper()
	decision := a.header.Get("x-warmlane-decision")
	if a.item("tier") != tier || a.branch() != branch {
		t.Errorf("decided %s, want tier %d, branch %s", decision, tier, branch)
	}
	if at >= 0 && a.at != at {
		t.Errorf("replica %d answered, want %d: %s", a.at, at, decision)
	}
	if a.at < 0 || !strings.Contains(decision, strconv.Quote(f.replicas[a.at].Addr)) {
		t.Errorf("replica %d answered: %s", a.at, decision)
	}
	if matched >= 0 && (a.item("matched") != matched || a.cached != matched) {
		t.Errorf("%d tokens cached, want %d: %s", a.cached, matched, decision)
	}
}

// wholeBlocks is how much of a prompt an engine can have cached.
func wholeBlocks(tokens int) int { return (tokens - 1) / blockSize * blockSize }

// object is a body.
type object = map[string]any

func body(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// idPrompt is a completion of a prompt in token ids that generates one token.
func idPrompt(ids any) []byte {
	return body(object{"model": "m", "prompt": ids, "max_tokens": 1})
}

// ids are n token ids that no other seed begins with.
func ids(seed, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1000 + (seed*7919+i*31+i*i)%100_000
	}
	list[0], list[1] = 1000+seed%100_000, 1000+seed/100_000
	return list
}

// words is a text of n words of about one token each, unlike that of any other seed.
func words(seed string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " %s%d", seed, i%100)
	}
	return b.String()
}

// chat is a body with alternating turns, the user's first, that asks for one token.
func chat(turns ...string) object {
	messages := make([]object, len(turns))
	for i, text := range turns {
		messages[i] = object{"role": [2]string{"user", "assistant"}[i%2], "content": text}
	}
	return object{"model": "m", "messages": messages, "max_tokens": 1}
}

// with is the body with one more member.
func with(o object, key string, value any) object {
	o = maps.Clone(o)
	o[key] = value
	return o
}

// poolsPage is what is used of control's page of its pools.
type poolsPage struct {
	Pools []struct{ Replicas []replicaState }
}

type replicaState struct {
	Slot, Address, State string
	Adapters             []struct{ Name string }
	Load                 struct{ Waiting *int }
	KV                   struct{ Epoch *uint64 }
}

func (f *fleet) pools() (p poolsPage) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.get(f.control+"/v1/pools")), &p); err != nil {
		f.t.Fatal(err)
	}
	return p
}

// controlSeries is the sum of a metric of control's.
func (f *fleet) controlSeries(name string, labels ...string) float64 {
	f.t.Helper()
	return sum(f.get(f.control+"/metrics"), name, labels...)
}

// believed is what control thinks is cached: copies of blocks by hash; ok is
// false while it follows nothing there.
func (f *fleet) believed(replica int) (blocks map[uint64]int, ok bool) {
	f.t.Helper()
	resp, err := http.Get(f.control + "/v1/blocks?pool=default&slot=" + f.slots[replica])
	if err != nil {
		return nil, false // control is being started
	}
	defer resp.Body.Close()
	var page struct {
		Blocks []struct {
			Hash   uint64
			Copies int
		}
	}
	if resp.StatusCode != 200 || json.NewDecoder(resp.Body).Decode(&page) != nil {
		return nil, false
	}
	blocks = make(map[uint64]int, len(page.Blocks))
	for _, b := range page.Blocks {
		blocks[b.Hash] = b.Copies
	}
	return blocks, true
}

// cached is what a replica has cached.
func (f *fleet) cached(replica int) map[uint64]int {
	blocks := map[uint64]int{}
	for _, b := range f.replicas[replica].Blocks().Blocks {
		blocks[b.Hash] = b.Copies
	}
	return blocks
}

// indexed waits until the filter's index says of every replica what its engine does.
func (f *fleet) indexed(t *testing.T) {
	t.Helper()
	for i := range f.replicas {
		var want, got map[uint64]int
		end := time.Now().Add(10 * time.Second)
		for ; ; time.Sleep(10 * time.Millisecond) {
			var ok bool
			want = f.cached(i)
			if got, ok = f.believed(i); ok && maps.Equal(want, got) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("replica %d: the engine has %d blocks, control believes %d: %s", i, len(want), len(got), difference(want, got))
			}
		}
	}
	time.Sleep(100 * time.Millisecond) // what control gathers before it publishes
	f.current()
}

// current waits until the filter has the state that control has now.
func (f *fleet) current() {
	f.t.Helper()
	generation := f.controlSeries("warmlane_control_state_generation")
	f.eventually(10*time.Second, fmt.Sprint("generation ", generation), func() bool {
		return f.series("warmlane_state_generation") >= generation
	})
}

// difference lists some blocks that two maps do not agree on.
func difference(want, got map[uint64]int) string {
	var lines []string
	for h, n := range want {
		if got[h] != n {
			lines = append(lines, fmt.Sprintf("%x: %d copies, believed %d", h, n, got[h]))
		}
	}
	for h, n := range got {
		if want[h] == 0 {
			lines = append(lines, fmt.Sprintf("%x: not there, believed %d", h, n))
		}
	}
	return strings.Join(lines[:min(len(lines), 10)], "; ")
}

// tokenized counts the calls of /tokenize that the replicas got.
func (f *fleet) tokenized() (n int) {
	for _, r := range f.replicas {
		for _, e := range r.Requests() {
			if e.Path == "/tokenize" {
				n++
			}
		}
	}
	return n
}

// forget empties the replicas' journals.
func (f *fleet) forget() {
	for _, r := range f.replicas {
		r.Forget()
	}
}

// leave sends a request and goes away when ctx ends.
func leave(ctx context.Context, url string, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("content-type", "application/json")
	if resp, err := fresh.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// faults switches the same faults on everywhere.
func (f *fleet) faults(object string) {
	for _, r := range f.replicas {
		r.Faults(object)
	}
}
