package exchange

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig([]byte(`{
		"role": "route",
		"pools": [{"name": "chat", "cluster": "outbound|80||llm", "models": ["org/base-7b"]}, {"name": "b"}],
		"control": {"cluster": "warmlane_control", "authority": "ctl", "token": "s", "timeout_ms": 2000},
		"routing": {"queue_weight": 0.5, "in_flight_cost_s": 0, "prefill_rate": 1, "candidates": 1, "index_mib": 1,
			"load_half_life_ms": 100, "max_prompt_bytes": 0},
		"piggyback": {"load_reports": false, "explain": true, "log": false},
		"metrics": {"max_models": 3},
		"headers": {"tenant": "x-team", "forward": true},
		"unknown_model": "reject", "no_replica": "reject"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	chat, b := newPoolConfig(), newPoolConfig()
	chat.Name, chat.Cluster, chat.Models = "chat", "outbound|80||llm", []string{"org/base-7b"}
	b.Name, chat.Tokenize, b.Tokenize = "b", "off", "off"
	want.Pools = []PoolConfig{chat, b}
	want.Control = ControlConfig{"warmlane_control", "ctl", "s", 2000}
	want.Routing = RoutingConfig{0.5, 0, 1, 1, 1, 100, 0}
	want.Piggyback = PiggybackConfig{Explain: true}
	want.Metrics.MaxModels = 3
	want.Headers.Tenant, want.Headers.Forward = "x-team", true
	want.UnknownModel, want.NoReplica = "reject", "reject"
	if got := *c; !sameConfig(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func sameConfig(a, b Config) bool {
	if len(a.Pools) != len(b.Pools) {
		return false
	}
	for i, p := range a.Pools {
		q := b.Pools[i]
		if strings.Join(p.Models, ",") != strings.Join(q.Models, ",") {
			return false
		}
		p.Models, q.Models = nil, nil
		if !reflect.DeepEqual(p, q) {
			return false
		}
	}
	return a.Role == b.Role && a.Control == b.Control && a.Routing == b.Routing && a.Piggyback == b.Piggyback &&
		a.Metrics == b.Metrics && a.Headers == b.Headers && a.UnknownModel == b.UnknownModel && a.NoReplica == b.NoReplica
}

func TestParseConfigTokens(t *testing.T) {
	f := func(pool string, want func(p *PoolConfig)) {
		t.Helper()
		c, err := ParseConfig([]byte(`{"pools":[{"name":"a",` + pool + `}]}`))
		if err != nil {
			t.Errorf("%s: %v", pool, err)
			return
		}
		p := newPoolConfig()
		p.Name, p.Tokenize = "a", "off"
		want(&p)
		if !reflect.DeepEqual(c.Pools[0], p) {
			t.Errorf("%s: got %+v, want %+v", pool, c.Pools[0], p)
		}
	}
	f(`"kv_events":false`, func(*PoolConfig) {})
	f(`"tokenize":"off"`, func(*PoolConfig) {})
	f(`"kv_events":true`, func(p *PoolConfig) { p.KVEvents, p.Tokenize = true, "learned" })
	f(`"kv_events":true,"tokenize":"off"`, func(p *PoolConfig) { p.KVEvents = true })
	f(`"tokenize":"ask","kv_events":true,"cluster":"c","tokenize_timeout_ms":1,"tier_weight":0,"tokenize_budget":{"calls_per_s":0,"in_flight":16,"max_bytes":1024}`,
		func(p *PoolConfig) {
			p.KVEvents, p.Tokenize, p.Cluster, p.TokenizeTimeoutMS, p.TierWeight = true, "ask", "c", 1, 0
			p.Budget = TokenizeBudget{0, 16, 1024}
		})
}

func TestParseConfigReport(t *testing.T) {
	f := func(in string, want ReportConfig) {
		t.Helper()
		c, err := ParseConfig([]byte(in))
		if err != nil || !c.Reports() || c.Report != want {
			t.Errorf("%s: %+v, %v, want %+v", in, c.Report, err, want)
		}
	}
	f(`{"role":"report","report":{"cluster":"engine"}}`, ReportConfig{"engine", "/metrics", 250, 1000, 4 << 20})
	f(`{"role":"report","report":{"cluster":"e","path":"/m?x=1","interval_ms":50,"timeout_ms":10,"max_bytes":4096}}`,
		ReportConfig{"e", "/m?x=1", 50, 10, 4096})
	if c, err := ParseConfig(nil); err != nil || c.Reports() {
		t.Errorf("reports by default: %v", err)
	}
}

func TestParseConfigDefault(t *testing.T) {
	for _, in := range []string{"", "{}"} {
		c, err := ParseConfig([]byte(in))
		if err != nil || len(c.PoolNames()) != 1 || c.PoolNames()[0] != "default" || c.Routing.Candidates != 3 {
			t.Errorf("%q: %+v, %v", in, c, err)
		}
	}
}

func TestParseConfigRefuses(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		_, err := ParseConfig([]byte(in))
		if err == nil {
			t.Errorf("%s: accepted", in)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", in, err, w)
			}
		}
	}
	f(`{`, "configuration", "JSON")
	f(`[]`, "configuration", "an object")
	f(`{"rule":"route"}`, "rule: unknown key", "role")
	f(`{"role":"tee"}`, `role: "tee"`, `"route"`)
	f(`{"role":"report"}`, "report.cluster: missing", "cluster")
	f(`{"report":{"cluster":"engine"}}`, "report: not with role", `"report"`)
	f(`{"role":"report","report":{"cluster":"e"},"pools":[{"name":"a"}]}`, "pools: not with role")
	f(`{"role":"report","report":{"cluster":"e"},"control":{"cluster":"c"}}`, "control.cluster: not with role")
	f(`{"role":"report","report":{"cluster":"e","address":"x"}}`, "report.address: unknown key", "cluster, interval_ms, max_bytes, path, timeout_ms")
	f(`{"role":"report","report":{"cluster":"e","interval_ms":10}}`, "report.interval_ms: 10", "50 to 10000")
	f(`{"role":"report","report":{"cluster":"e","timeout_ms":0}}`, "report.timeout_ms: 0", "10 to 60000")
	f(`{"role":"report","report":{"cluster":"e","max_bytes":1}}`, "report.max_bytes: 1", "4096 to 33554432")
	f(`{"role":"report","report":{"cluster":"e","path":"metrics"}}`, "report.path", "begins with '/'")
	f(`{"role":"report","report":{"cluster":"e","path":"/a b"}}`, "report.path")
	f(`{"pools":{}}`, "pools: {}", "an array of pools")
	f(`{"pools":[{"name":"a"},{"name":"a"}]}`, "pools[1].name", "each name once")
	f(`{"pools":[{}]}`, "pools[0].name: missing")
	f(`{"pools":[{"name":"a b"}]}`, "pools[0].name", "letters")
	f(`{"pools":[{"name":"a","models":["x",""]}]}`, "pools[0].models[1]", "1 to 256")
	f(`{"pools":[{"name":"a","weight":1}]}`, "pools[0].weight: unknown key", "cluster, kv_events, models, name")
	f(`{"pools":[{"name":"a","tokenize":"learned"}]}`, "pools[0].tokenize", `"learned" without kv_events`, `"off"`)
	f(`{"pools":[{"name":"a"},{"name":"b","tokenize":"ask","cluster":"c"}]}`, "pools[1].tokenize", `"ask" without kv_events`)
	f(`{"pools":[{"name":"a","tokenize":"ask","kv_events":true}]}`, "pools[0].tokenize", `"ask" without cluster`)
	f(`{"pools":[{"name":"a","tokenize":"guess"}]}`, "pools[0].tokenize", `"ask", "learned" or "off"`)
	f(`{"pools":[{"name":"a","tokenize_timeout_ms":0}]}`, "pools[0].tokenize_timeout_ms", "1 to 10000")
	f(`{"pools":[{"name":"a","tokenize_budget":{"in_flight":17}}]}`, "pools[0].tokenize_budget.in_flight", "1 to 16")
	f(`{"pools":[{"name":"a","tokenize_budget":{"bytes":1}}]}`, "pools[0].tokenize_budget.bytes: unknown key", "calls_per_s, in_flight, max_bytes")
	f(`{"pools":[{"name":"a","tier_weight":1.5}]}`, "pools[0].tier_weight", "0 to 1")
	f(`{"control":{"timeout_ms":10}}`, "control.timeout_ms: 10", "1000 to 300000")
	f(`{"control":{"timeout_ms":1500.5}}`, "control.timeout_ms")
	f(`{"routing":{"candidates":4}}`, "routing.candidates: 4", "1 to 3")
	f(`{"routing":{"prefill_rate":"fast"}}`, "routing.prefill_rate", "tokens/s")
	f(`{"routing":{"in_flight_cost_s":-1}}`, "routing.in_flight_cost_s")
	f(`{"piggyback":{"explain":"yes"}}`, "piggyback.explain", "true or false")
	f(`{"headers":{"tenant":"X-Tenant"}}`, "headers.tenant", "lower-case")
	f(`{"unknown_model":"drop"}`, "unknown_model", "reject")
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"pools":[{"name":"a","models":["m"]}],"control":{"cluster":"c"}}`))
	f.Add([]byte(`{"routing":{"candidates":1e300,"index_mib":-0}}`))
	f.Add([]byte("{\"a\":{\"a\":"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		if len(c.PoolNames()) == 0 || len(c.Pools) > maxPools || c.Routing.Candidates < 1 || c.Routing.Candidates > 3 {
			t.Fatalf("%q gave %+v", data, c)
		}
	})
}
