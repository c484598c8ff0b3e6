package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/warmlane/warmlane/control/collect"
	"github.com/warmlane/warmlane/control/collect/kvevents"
)

func TestSampleConfiguration(t *testing.T) {
	c, err := loadConfig(filepath.Join("testdata", "control.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	scrape := collect.DefaultScrape
	slow := scrape
	slow.Interval = time.Second
	events := collect.DefaultEvents
	want := defaults()
	want.token = "s3cret"
	want.collect.Pools = []collect.Pool{
		{Name: "default", Models: []string{"org/base-7b"}, Scrape: scrape, Events: &events, Sources: []collect.Source{collect.Static{
			{Address: "10.0.0.7:8000"}, {Address: "[2001:db8::7]:8000"}, {Address: "10.0.0.8:8000", Draining: true, Feeds: []kvevents.Source{
				{Endpoint: "tcp://10.0.0.8:5557", Replay: "tcp://10.0.0.8:5558", Topic: "kv"},
			}},
		}}},
		{Name: "batch", Scrape: slow, Sources: []collect.Source{
			collect.File{Path: filepath.Join("testdata", "replicas.txt"), Every: fileEvery},
		}},
		{Name: "cluster", Scrape: scrape, Sources: []collect.Source{
			collect.DNS{Name: "vllm.default.svc.cluster.local", Port: 8000, Every: 5 * time.Second},
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
}

// What is wrong is refused with its path and what is allowed.
func TestWrongConfigurations(t *testing.T) {
	const pool = "pools:\n- name: p\n  replicas: ['10.0.0.1:80']\n"
	f := func(text string, want ...string) {
		t.Helper()
		_, err := parseConfig([]byte(text), "", nil)
		if err == nil {
			t.Errorf("accepted: %q", text)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: error %q lacks %q", text, err, w)
			}
		}
	}
	f("", "configuration: want an object with listen, pools, publish, scrape, token, token_file, got nothing")
	f("{}", "pools: at least one is needed")
	f("[1]", "got a list")
	f("a: b: c", "mapping values")
	f(pool+"pols: 1", "pols: unknown key; allowed: listen, pools, publish, scrape, token, token_file")
	f(pool+pool, `"pools"`)
	f(pool+"listen: 9090", "listen: want a text of 1 to 253 bytes, got \"9090\"")
	f(pool+"listen: here", "listen: want HOST:PORT")
	f(pool+"token: 'a b'", "token: want printable ASCII")
	f(pool+"token_file: does-not-exist", "token_file: open does-not-exist")
	f(pool+"scrape: {intervall: 1s}", "scrape.intervall: unknown key; allowed: health_every, interval, max_bytes")
	f(pool+"scrape: {interval: 1ms}", `scrape.interval: want a time from 10ms to 1h0m0s, as 250ms or 5s, got "1ms"`)
	f(pool+"scrape: {interval: 250}", `scrape.interval: want a time`)
	f(pool+"scrape: {max_bytes: 1.5}", "scrape.max_bytes: want a whole number from 1024 to 67108864")
	f(pool+"scrape: 1s", "scrape: want an object with health_every")
	f(pool+"publish: {hold: 25h}", "publish.hold: want a time from 1s to 1m0s")
	f("pools: {name: p}", "pools: want a list, got an object")
	f("pools: [{replicas: ['10.0.0.1:80']}]", "pools[0]: name: is needed")
	f("pools: [{name: p}]", "pools[0]: at least one of replicas, replicas_file and dns")
	f(pool+"- name: p\n  replicas: []\n", `pools[1]: name: "p" is taken by pools[0]`)
	f("pools: [{name: p, replicas: ['10.0.0.1:80', 'gpu-3:80']}]", `pools[0].replicas[1]: address "gpu-3:80": want IP:PORT`)
	f("pools: [{name: p, replicas: [{draining: true}]}]", "pools[0].replicas[0]: address: is needed")
	f("pools: [{name: p, replicas: [{address: '[::1]:1', draining: 1}]}]", "pools[0].replicas[0].draining: want true or false")
	const events = "pools: [{name: p, replicas: [], kv_events: "
	f(events+"1}]", "pools[0].kv_events: want true, false, or an object with discover, discover_every, enabled, replay_timeout, got \"1\"")
	f(events+"{active: true}}]", "pools[0].kv_events.active: unknown key; allowed: discover, discover_every, enabled, replay_timeout")
	f(events+"{discover: 1}}]", "pools[0].kv_events.discover: want true or false")
	f(events+"{replay_timeout: 1ms}}]", "pools[0].kv_events.replay_timeout: want a time from 100ms to 1h0m0s")
	const source = "pools: [{name: p, kv_events: true, replicas: [{address: '[::1]:1', kv_events: [{"
	f(source+"}]}]}]", "pools[0].replicas[0].kv_events[0]: endpoint: is needed")
	f(source+"endpoint: 'tcp://*:5557'}]}]}]", "pools[0].replicas[0].kv_events[0].endpoint: ", "tcp://*:5557", "tcp://HOST:PORT")
	f(source+"endpoint: 'tcp://a:1', replay: 'ipc:///x'}]}]}]", "pools[0].replicas[0].kv_events[0].replay: ", "ipc:///x")
	f(source+"endpoint: 'tcp://a:1', topics: x}]}]}]", "pools[0].replicas[0].kv_events[0].topics: unknown key; allowed: endpoint, replay, topic")
	f("pools: [{name: p, replicas: [{address: '[::1]:1', kv_events: [{endpoint: 'tcp://a:1'}]}]}]", "pools[0]: kv_events: is off, but replicas have some")
	f("pools: [{name: p, dns: [{name: x}]}]", "pools[0].dns[0]: name and port are needed")
	f("pools: [{name: p, dns: [{name: x, port: 70000}]}]", "pools[0].dns[0].port: want a whole number from 1 to 65535")
	f("pools: [{name: p, models: [''], replicas: []}]", "pools[0].models[0]: want a text")
	// All mistakes at once.
	f("listen: 1\nscrape: {timeout: x}\n"+pool, "listen: ", "scrape.timeout: ")
}

func TestEmptyReplicaListIsAllowed(t *testing.T) {
	c, err := parseConfig([]byte("pools: [{name: p, replicas: []}]"), "", nil)
	if err == nil && len(c.collect.Pools[0].Sources) == 0 {
		err = errors.New("no source")
	}
	if err != nil {
		t.Error(err)
	}
}

func TestKVEvents(t *testing.T) {
	f := func(text string, want *collect.Events) {
		t.Helper()
		c, err := parseConfig([]byte("pools: [{name: p, replicas: [], kv_events: "+text+"}]"), "", nil)
		if err != nil || !reflect.DeepEqual(c.collect.Pools[0].Events, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, c.collect.Pools, err, want)
		}
	}
	events := collect.DefaultEvents
	f("true", &events)
	f("{}", &events)
	f("false", nil)
	f("{enabled: false, discover: true}", nil)
	f("{discover: false, discover_every: 1m, replay_timeout: 5s}", &collect.Events{DiscoverEvery: time.Minute, ReplayTimeout: 5 * time.Second})
}

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tok"), []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parseConfig([]byte("token_file: tok\npools: [{name: p, replicas: []}]"), dir, nil)
	if err != nil || c.token != "abc" {
		t.Errorf("token %q, %v", c.token, err)
	}
}

// FuzzConfig: no text makes the reader panic, and one that is accepted can be
// run: it has pools, each with a name and sources.
func FuzzConfig(f *testing.F) {
	sample, err := os.ReadFile(filepath.Join("testdata", "control.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add("pools: [{name: p, replicas: [{address: '[::1]:1', draining: true}]}]")
	f.Add("pools: [{name: p, kv_events: {discover: false}, replicas: [{address: '[::1]:1', kv_events: [{endpoint: 'tcp://a:1'}]}]}]")
	f.Add("listen: 1\nscrape: {timeout: x}\npools: {}")
	f.Add("&a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "token_file") {
			return // would read whatever file the fuzzer names
		}
		c, err := parseConfig([]byte(text), "", nil)
		if err != nil {
			return
		}
		if len(c.collect.Pools) == 0 {
			t.Fatal("no pools")
		}
		for _, p := range c.collect.Pools {
			if p.Name == "" || len(p.Sources) == 0 || p.Scrape.Interval <= 0 {
				t.Fatalf("pool %+v", p)
			}
		}
	})
}
