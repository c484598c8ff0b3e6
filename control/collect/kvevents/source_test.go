package kvevents

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestParseSources(t *testing.T) {
	answer, err := os.ReadFile("testdata/kv_event_sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, captured, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	if captured == nil {
		_, captured, _ = bytes.Cut(answer, []byte("\n\n"))
	}
	f := func(text, host string, want ...Source) {
		t.Helper()
		got, err := ParseSources([]byte(text), host)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", text, got, err, want)
		}
	}
	f(string(captured), "10.1.2.3", Source{"tcp://10.1.2.3:5557", "tcp://10.1.2.3:5558", "kv@127.0.0.1:8101@tiny", 0})
	f(string(captured), "::1", Source{"tcp://[::1]:5557", "tcp://[::1]:5558", "kv@127.0.0.1:8101@tiny", 0})
	f(string(captured), "[fd00::2]", Source{"tcp://[fd00::2]:5557", "tcp://[fd00::2]:5558", "kv@127.0.0.1:8101@tiny", 0})
	f(`{}`, "a")
	f(`null`, "a")
	f(`{"1":{"endpoint":"tcp://*:2","replay_endpoint":null},"0":{"endpoint":"tcp://*:1"},"10":{"endpoint":"tcp://*:3","new":[]}}`, "pod-a",
		Source{Endpoint: "tcp://pod-a:1"}, Source{Endpoint: "tcp://pod-a:2", Rank: 1}, Source{Endpoint: "tcp://pod-a:3", Rank: 10})
	f(`{"0":{"publisher":"null","endpoint":""},"1":{"enable_kv_cache_events":false}}`, "a")
	f(`{"0":{"endpoint":"tcp://0.0.0.0:1","replay_endpoint":"tcp://[::]:2"},"1":{"endpoint":"tcp://:::3"},"2":{"endpoint":"tcp://10.0.0.9:4"}}`, "a",
		Source{Endpoint: "tcp://a:1", Replay: "tcp://a:2"}, Source{Endpoint: "tcp://a:3", Rank: 1}, Source{Endpoint: "tcp://10.0.0.9:4", Rank: 2})
}

func TestParseSourcesRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, err := ParseSources([]byte(text), "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, got, err, want)
		}
	}
	f(`[]`, "sources")
	f(`{"0":`, "sources")
	f(`{"x":{"endpoint":"tcp://*:1"}}`, `source "x": not a rank`)
	f(`{"-1":{"endpoint":"tcp://*:1"}}`, `source "-1": not a rank`)
	f(`{"0":{}}`, `source "0": endpoint: "" is not tcp`)
	f(`{"0":{"endpoint":"ipc://x"}}`, `"ipc://x" is not tcp`)
	f(`{"0":{"endpoint":"tcp://*:0"}}`, `no port`)
	f(`{"0":{"endpoint":"tcp://*:65536"}}`, `no port`)
	f(`{"0":{"endpoint":"tcp://[::1:5557"}}`, `open bracket`)
	f(`{"0":{"endpoint":"tcp://:5557"}}`, `no host`)
	f(`{"0":{"endpoint":"tcp://*:1","replay_endpoint":"x"}}`, `replay_endpoint: "x"`)
	if _, err := ParseSources([]byte(`{"0":{"endpoint":"tcp://*:1"}}`), ""); err == nil {
		t.Error("no host, no error")
	}
}

func FuzzParseSources(f *testing.F) {
	f.Add([]byte(`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558","topic":"kv"}}`), "::1")
	f.Add([]byte(`{"1":{"endpoint":"tcp://[::]:2"},"0":{"endpoint":"tcp://10.0.0.1:1"}}`), "a")
	f.Fuzz(func(t *testing.T, text []byte, host string) {
		got, err := ParseSources(text, host)
		if err != nil {
			return
		}
		for i, s := range got {
			if _, err := New(0, s, &recorder{}, &recorder{}, Options{}); err != nil {
				t.Fatalf("%+v cannot be followed: %v", s, err)
			}
			if i > 0 && got[i-1].Rank > s.Rank {
				t.Fatalf("order of %+v", got)
			}
		}
	})
}
