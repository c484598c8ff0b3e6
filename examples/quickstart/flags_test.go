package main

import (
	"errors"
	"flag"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestParseFlags(t *testing.T) {
	o, err := parseFlags(strings.Fields(`-listen :9000 -replicas 10.0.0.1:8000,[::1]:8000,vllm-2.local:80
		-kv-events tcp://10.0.0.1:5557|tcp://10.0.0.1:5558,,tcp://[::1]:5559 -control-listen [::1]:0 -envoy /bin/envoy -workers 4 -config c.yaml
		-max-body 1000 -log-dir logs -wasm w -control c -round-robin`), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		listen:        "0.0.0.0:9000",
		replicas:      []string{"10.0.0.1:8000", "[::1]:8000", "vllm-2.local:80"},
		kvEvents:      []kvSource{{"tcp://10.0.0.1:5557", "tcp://10.0.0.1:5558"}, {}, {"tcp://[::1]:5559", ""}},
		controlListen: "[::1]:0",
		envoyPath:     "/bin/envoy", workers: 4, configFile: "c.yaml", maxBody: 1000, logDir: "logs",
		wasmPath: "w", controlPath: "c", roundRobin: true,
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
}

func TestParseFlagsDefaults(t *testing.T) {
	o, err := parseFlags([]string{"-replicas-file", "r.txt"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.listen != "127.0.0.1:8080" || o.controlListen != "127.0.0.1:0" || o.maxBody != 32<<20 || o.workers != 0 {
		t.Errorf("defaults %+v", o)
	}
	if !strings.HasSuffix(o.wasmPath, "/warmlane.wasm") || !strings.HasSuffix(o.controlPath, "/control") {
		t.Errorf("parts beside the binary: %q, %q", o.wasmPath, o.controlPath)
	}
}

// Every refusal names the flag and what is allowed.
func TestParseFlagsRefuses(t *testing.T) {
	f := func(args, flag, allowed string) {
		t.Helper()
		_, err := parseFlags(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), flag) || !strings.Contains(err.Error(), allowed) {
			t.Errorf("%s: error %v, want it to hold %q and %q", args, err, flag, allowed)
		}
	}
	f("", "-replicas and -replicas-file", "needed")
	f("-replicas a:1 -replicas-file f", "-replicas and -replicas-file", "only one")
	f("-replicas a:1 more", `"more"`, "only flags")
	f("-replicas a", "-replicas", "want HOST:PORT")
	f("-replicas a:1,,b:2", "-replicas", "an entry is empty")
	f("-replicas http://a:1", "-replicas", "want HOST:PORT")
	f("-replicas a:0", "-replicas", "want HOST:PORT")
	f("-replicas a:65536", "-replicas", "want HOST:PORT")
	f("-replicas ::1:8000", "-replicas", "such as")
	f("-replicas a:1 -kv-events ,tcp://b:2", "-kv-events", "at most one for each")
	f("-replicas a:1 -kv-events b:2", "-kv-events", "tcp://HOST:PORT")
	f("-replicas a:1 -kv-events ipc:///run/kv", "-kv-events", "tcp://HOST:PORT")
	f("-replicas a:1 -kv-events |tcp://b:2", "-kv-events", "needs an event address")
	f("-replicas-file f -kv-events tcp://b:2", "-kv-events", "-replicas only")
	f("-replicas a:1 -listen 8080", "-listen", "want IP:PORT")
	f("-replicas a:1 -listen example.org:80", "-listen", "want IP:PORT")
	f("-replicas a:1 -control-listen 127.0.0.1:-1", "-control-listen", "want IP:PORT")
	f("-replicas a:1 -workers 0", "-workers", "from 1 to 256")
	f("-replicas a:1 -workers many", "-workers", "from 1 to 256")
	f("-replicas a:1 -max-body 0", "-max-body", "from 1 to 4294967295")
	f("-replicas a:1 -max-body 4294967296", "-max-body", "from 1 to 4294967295")
	f("-replica a:1", "-replica", "not defined")
}

func TestHelp(t *testing.T) {
	var help strings.Builder
	if _, err := parseFlags([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error %v", err)
	}
	for _, name := range []string{"-listen ADDR", "-replicas HOST:PORT,...", "-replicas-file FILE", "-kv-events URL[|REPLAY],...", "-control-listen ADDR",
		"-envoy PATH", "-workers N", "-config FILE", "-max-body BYTES", "-log-dir DIR", "-wasm PATH", "-control PATH", "-round-robin"} {
		if !strings.Contains(help.String(), name) {
			t.Errorf("the help lacks %q", name)
		}
	}
}
