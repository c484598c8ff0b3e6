package exchange

import (
	"errors"
	"strconv"

	"github.com/warmlane/warmlane/filter/json"
)

// Config is the plugin's configuration, a JSON object. The zero value is not
// usable; [ParseConfig] fills in the defaults.
type Config struct {
	Role      string // "route" requests to replicas, or "report" on the replica beside this proxy
	Report    ReportConfig
	Pools     []PoolConfig
	Control   ControlConfig
	Routing   RoutingConfig
	Piggyback PiggybackConfig
	Metrics   MetricsConfig
	Headers   HeaderConfig

	UnknownModel string // "pass" to a replica, which refuses it, or "reject" with 404
	NoReplica    string // "pass" to Envoy's own balancer, or "reject" with 503
}

// PoolConfig is one pool of replicas. The first one takes every request whose
// model no pool names.
type PoolConfig struct {
	Name    string
	Models  []string // models beside those the replicas say they serve
	Cluster string   // Envoy's name of the pool's cluster, for calls to a replica

	KVEvents          bool    // control follows the KV events of its replicas
	Tokenize          string  // "ask", "learned" or "off": where the tokens of a text come from
	TokenizeTimeoutMS int64   // how long a request waits for its tokens
	TierWeight        float64 // of a block that is not on the GPU but in a lower tier
	Budget            TokenizeBudget
}

// TokenizeBudget bounds the calls to /tokenize that learn prompts whose
// requests have left, in each worker.
type TokenizeBudget struct {
	CallsPerS float64
	InFlight  int
	MaxBytes  int64 // the longest body kept for a call of either kind
}

// Where the tokens of a prompt that is text come from.
const (
	tokenizeAsk     = "ask"     // a replica, while the request is held
	tokenizeLearned = "learned" // what was learned of earlier prompts
	tokenizeOff     = "off"     // nowhere: only prompts given as token ids are looked up
)

// ControlConfig says where the control service is. An empty Cluster means
// that there is none; requests are then left to Envoy's balancer.
type ControlConfig struct {
	Cluster   string
	Authority string
	Token     string // sent as a bearer token if not empty
	TimeoutMS int64  // of one long poll
}

// ReportConfig says where the engine is that role "report" reports on.
type ReportConfig struct {
	Cluster    string // Envoy's name of it; required
	Path       string // of its metrics
	IntervalMS int64  // between two readings of them
	TimeoutMS  int64  // of one reading
	MaxBytes   int64  // of a metrics text
}

// RoutingConfig holds the numbers of the cost (package route) and the size
// of the text index.
type RoutingConfig struct {
	QueueWeight    float64 // a: cost of a request to those behind it
	InFlightCost   float64 // b: seconds for each request in flight
	PrefillRate    float64 // tokens/s until first tokens have taught better
	Candidates     int     // replicas named in the header, best first
	IndexMiB       int     // bound of the text index in shared data
	LoadHalfLifeMS int64   // age at which a reported load counts half
	MaxPromptBytes int64   // longer prompts are routed by load alone
}

// PiggybackConfig says what travels in headers beside the request.
type PiggybackConfig struct {
	LoadReports bool // ask replicas for endpoint-load-metrics
	Explain     bool // let clients ask for x-warmlane-decision
	Log         bool // write the access-log line
}

// MetricsConfig bounds what the filter may name in its metrics.
type MetricsConfig struct {
	MaxModels int // models with a label of their own; the rest is "other"
}

// HeaderConfig names the headers clients may use. Forward leaves them on the
// request to the replica.
type HeaderConfig struct {
	Tenant, Priority, Session, Explain, Cache string
	Forward                                   bool
}

func defaults() Config {
	return Config{
		Role:    roleRoute,
		Report:  ReportConfig{Path: "/metrics", IntervalMS: 250, TimeoutMS: 1000, MaxBytes: 4 << 20},
		Control: ControlConfig{Authority: "control", TimeoutMS: 30_000},
		Routing: RoutingConfig{
			QueueWeight: 1, InFlightCost: 0.02, PrefillRate: 8000, Candidates: 3,
			IndexMiB: 16, LoadHalfLifeMS: 1000, MaxPromptBytes: 64 << 20,
		},
		Piggyback: PiggybackConfig{LoadReports: true, Log: true},
		Metrics:   MetricsConfig{MaxModels: 100},
		Headers: HeaderConfig{
			Tenant: "x-warmlane-tenant", Priority: "x-warmlane-priority", Session: "x-warmlane-session",
			Explain: "x-warmlane-explain", Cache: "x-warmlane-cache",
		},
		UnknownModel: "pass",
		NoReplica:    "pass",
	}
}

// ParseConfig reads the plugin configuration. Every error begins with the
// path of the key it is about and says what is allowed there. Empty input is
// the default configuration; without pools there is one named "default".
func ParseConfig(data []byte) (*Config, error) {
	c := defaults()
	if len(data) > 0 {
		document, err := json.Parse(data)
		if err != nil {
			return nil, errors.New("configuration: " + err.Error())
		}
		if err := c.fields().parse("", document); err != nil {
			return nil, err
		}
	}
	return &c, c.check()
}

func (c *Config) fields() object {
	return object{
		"role":          {"\"route\" or \"report\"", oneOf(&c.Role, roleRoute, roleReport)},
		"report":        {"an object", c.Report.fields().parse},
		"pools":         {"an array of pools", list(&c.Pools, newPoolConfig, (*PoolConfig).fields)},
		"control":       {"an object", c.Control.fields().parse},
		"routing":       {"an object", c.Routing.fields().parse},
		"piggyback":     {"an object", c.Piggyback.fields().parse},
		"metrics":       {"an object", c.Metrics.fields().parse},
		"headers":       {"an object", c.Headers.fields().parse},
		"unknown_model": {"\"pass\" or \"reject\"", oneOf(&c.UnknownModel, "pass", "reject")},
		"no_replica":    {"\"pass\" or \"reject\"", oneOf(&c.NoReplica, "pass", "reject")},
	}
}

// Roles of the module.
const (
	roleRoute  = "route"
	roleReport = "report"
)

// Reports says that the module is to report on an engine, and not to route.
func (c *Config) Reports() bool { return c.Role == roleReport }

func (r *ReportConfig) fields() object {
	return object{
		"cluster":     {"a cluster name", text(&r.Cluster)},
		"path":        {"a path that begins with '/'", path(&r.Path)},
		"interval_ms": {"50 to 10000", integer(&r.IntervalMS, 50, 10000)},
		"timeout_ms":  {"10 to 60000", integer(&r.TimeoutMS, 10, 60000)},
		"max_bytes":   {"4096 to 33554432", integer(&r.MaxBytes, 4<<10, 32<<20)},
	}
}

func (p *PoolConfig) fields() object {
	return object{
		"name":    {"1 to 64 letters, digits, '-', '_' or '.'", name(&p.Name)},
		"models":  {"an array of model names", texts(&p.Models)},
		"cluster": {"a cluster name", text(&p.Cluster)},

		"kv_events":           {"true or false", boolean(&p.KVEvents)},
		"tokenize":            {"\"ask\", \"learned\" or \"off\"", oneOf(&p.Tokenize, tokenizeAsk, tokenizeLearned, tokenizeOff)},
		"tokenize_timeout_ms": {"1 to 10000", integer(&p.TokenizeTimeoutMS, 1, 10000)},
		"tokenize_budget":     {"an object", p.Budget.fields().parse},
		"tier_weight":         {"0 to 1", number(&p.TierWeight, 0, 1)},
	}
}

func (b *TokenizeBudget) fields() object {
	return object{
		"calls_per_s": {"0 to 1000", number(&b.CallsPerS, 0, 1000)},
		"in_flight":   {"1 to 16", integer(&b.InFlight, 1, maxJobs)},
		"max_bytes":   {"1024 to 4194304", integer(&b.MaxBytes, 1<<10, 4<<20)},
	}
}

func newPoolConfig() PoolConfig {
	return PoolConfig{
		TokenizeTimeoutMS: 100, TierWeight: 0.5,
		Budget: TokenizeBudget{CallsPerS: 10, InFlight: 2, MaxBytes: 1 << 20},
	}
}

// settle fills in what depends on other keys and refuses what does not fit
// together.
func (p *PoolConfig) settle(path string) error {
	switch {
	case p.Tokenize == "" && p.KVEvents:
		p.Tokenize = tokenizeLearned
	case p.Tokenize == "":
		p.Tokenize = tokenizeOff
	case p.Tokenize != tokenizeOff && !p.KVEvents:
		return errors.New(path + ".tokenize: " + strconv.Quote(p.Tokenize) + " without kv_events; allowed: \"off\", or kv_events: true")
	}
	if p.Tokenize == tokenizeAsk && p.Cluster == "" {
		return errors.New(path + ".tokenize: \"ask\" without cluster; allowed: with the name of the pool's cluster as cluster")
	}
	return nil
}

func (c *ControlConfig) fields() object {
	return object{
		"cluster":    {"a cluster name", text(&c.Cluster)},
		"authority":  {"a host name", text(&c.Authority)},
		"token":      {"a string", text(&c.Token)},
		"timeout_ms": {"1000 to 300000", integer(&c.TimeoutMS, 1000, 300000)},
	}
}

func (r *RoutingConfig) fields() object {
	return object{
		"queue_weight":      {"0 to 100", number(&r.QueueWeight, 0, 100)},
		"in_flight_cost_s":  {"0 to 10", number(&r.InFlightCost, 0, 10)},
		"prefill_rate":      {"1 to 10000000 tokens/s", number(&r.PrefillRate, 1, 1e7)},
		"candidates":        {"1 to 3", integer(&r.Candidates, 1, 3)},
		"index_mib":         {"1 to 256", integer(&r.IndexMiB, 1, 256)},
		"load_half_life_ms": {"10 to 600000", integer(&r.LoadHalfLifeMS, 10, 600000)},
		"max_prompt_bytes":  {"0 to 67108864", integer(&r.MaxPromptBytes, 0, 64<<20)},
	}
}

func (p *PiggybackConfig) fields() object {
	return object{
		"load_reports": {"true or false", boolean(&p.LoadReports)},
		"explain":      {"true or false", boolean(&p.Explain)},
		"log":          {"true or false", boolean(&p.Log)},
	}
}

func (m *MetricsConfig) fields() object {
	return object{"max_models": {"1 to 10000", integer(&m.MaxModels, 1, 10000)}}
}

func (h *HeaderConfig) fields() object {
	const allowed = "a lower-case header name"
	return object{
		"tenant":   {allowed, header(&h.Tenant)},
		"priority": {allowed, header(&h.Priority)},
		"session":  {allowed, header(&h.Session)},
		"explain":  {allowed, header(&h.Explain)},
		"cache":    {allowed, header(&h.Cache)},
		"forward":  {"true or false", boolean(&h.Forward)},
	}
}

// check holds what no single field can see.
func (c *Config) check() error {
	if err := c.checkRole(); err != nil {
		return err
	}
	for i, p := range c.Pools {
		if err := c.Pools[i].settle("pools[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
		path := "pools[" + strconv.Itoa(i) + "].name"
		if p.Name == "" {
			return errors.New(path + ": missing; allowed: 1 to 64 letters, digits, '-', '_' or '.'")
		}
		for _, q := range c.Pools[:i] {
			if q.Name == p.Name {
				return errors.New(path + ": " + strconv.Quote(p.Name) + " is the name of another pool; allowed: each name once")
			}
		}
	}
	if len(c.Pools) > maxPools {
		return errors.New("pools: " + strconv.Itoa(len(c.Pools)) + " pools; allowed: at most " + strconv.Itoa(maxPools))
	}
	return nil
}

// checkRole refuses the parts of the configuration that belong to the other
// role.
func (c *Config) checkRole() error {
	switch {
	case !c.Reports() && c.Report.Cluster != "":
		return errors.New("report: not with role \"route\"; allowed: with role \"report\"")
	case !c.Reports():
		return nil
	case c.Report.Cluster == "":
		return errors.New("report.cluster: missing; allowed: the name of the engine's cluster")
	case len(c.Pools) > 0:
		return errors.New("pools: not with role \"report\"; allowed: with role \"route\"")
	case c.Control.Cluster != "":
		return errors.New("control.cluster: not with role \"report\"; allowed: with role \"route\"")
	}
	return nil
}

// maxPools bounds the ledgers, which are keys that can never be removed.
const maxPools = 64
