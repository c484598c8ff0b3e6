package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/route"
)

// otherModel is the label of every model that neither the configuration nor
// a replica names, so that made-up names grow nothing.
const otherModel = "other"

// branches are the ones of each tier, tier 1 first.
var branches = [...][]route.Branch{
	{route.NoHealthyWorker, route.NoTree, route.LoadBalanceOverride, route.CacheHit, route.CacheMissMinLoad},
	{
		route.KVHit, route.KVMissMinLoad, route.LoadBalanceOverride,
		route.FallbackNoIndex, route.FallbackUnsupported, route.FallbackTokenizeFailed,
	},
}

// scorers name the parts of a route.Scores, in its order.
var scorers = [...]string{"prefix", "owed", "busy", "foreign"}

// workerSeries holds the metrics that belong to no pool.
type workerSeries struct {
	scanErrors [faults]*Metric
	panics     *Metric
	panicsSeen uint64
	stateAge   *Metric
	generation *Metric
}

// faults is how many faults package openai knows.
const faults = int(openai.PromptShape) + 1

func newWorkerSeries(t *Tally) workerSeries {
	w := workerSeries{
		panics:     t.metric(Counter, "warmlane_panics_total"),
		stateAge:   t.metric(Gauge, "warmlane_state_age_ms"),
		generation: t.metric(Gauge, "warmlane_state_generation"),
	}
	for f := range w.scanErrors {
		w.scanErrors[f] = t.metric(Counter, seriesName("warmlane_scan_errors_total", "kind", openai.Fault(f).String()))
	}
	return w
}

// The kinds of tokens.
const (
	promptTokens = iota
	completionTokens
	cachedTokens
	tokenKinds
)

var tokenKindNames = [tokenKinds]string{"prompt", "completion", "cached"}

// modelSeries holds the metrics of one model in one pool. They are looked up
// once a request, by the model, and then by number.
type modelSeries struct {
	model     string
	requests  map[uint16]*Metric // by the client's status
	outcomes  [outcomeCount]*Metric
	decisions [len(branches)][route.NumBranches]*Metric // by tier - 1
	duration  *Metric
	ttft      *Metric
	pace      *Metric // of the tokens after the first
	tokens    [tokenKinds]*Metric
	matched   *Metric
	missed    *Metric // tokens by which the match was wrong
	unsaid    *Metric // answers without a usage
}

// poolSeries holds the metrics of one pool.
type poolSeries struct {
	pool       string
	tally      *Tally
	models     map[string]*modelSeries
	other      *modelSeries
	most       int
	candidates *Metric
	dropped    [route.NumFilters]*Metric
	scores     [len(scorers)]*Metric
	misses     *Metric
	loadAge    *Metric
	inFlight   []*Metric // by slot
	errors     []*Metric // by slot: tokens by which the match was wrong
	tokenize   [callOutcomes]*Metric
	tokenizeMS [callOutcomes]*Metric
}

func newPoolSeries(t *Tally, pool string, most int) *poolSeries {
	p := &poolSeries{
		pool: pool, tally: t, most: most, models: make(map[string]*modelSeries),
		candidates: t.metric(Histogram, seriesName("warmlane_candidates", "pool", pool)),
		misses:     t.metric(Counter, seriesName("warmlane_override_misses_total", "pool", pool)),
		loadAge:    t.metric(Histogram, seriesName("warmlane_load_age_ms", "pool", pool)),
	}
	for f := range p.dropped {
		p.dropped[f] = t.metric(Counter, seriesName("warmlane_candidates_dropped_total", "pool", pool, "filter", route.Filter(f).String()))
	}
	for s := range p.scores {
		p.scores[s] = t.metric(Histogram, seriesName("warmlane_score_permille", "pool", pool, "scorer", scorers[s]))
	}
	for o, name := range callOutcomeNames {
		p.tokenize[o] = t.metric(Counter, seriesName("warmlane_tokenize_total", "pool", pool, "outcome", name))
		p.tokenizeMS[o] = t.metric(Histogram, seriesName("warmlane_tokenize_ms", "pool", pool, "outcome", name))
	}
	p.other = p.newModel(otherModel)
	return p
}

func (p *poolSeries) newModel(model string) *modelSeries {
	t := p.tally
	m := &modelSeries{
		model: model, requests: make(map[uint16]*Metric),
		duration: t.metric(Histogram, seriesName("warmlane_duration_ms", "pool", p.pool, "model", model)),
		ttft:     t.metric(Histogram, seriesName("warmlane_ttft_ms", "pool", p.pool, "model", model)),
		pace:     t.metric(Histogram, seriesName("warmlane_time_per_output_token_us", "pool", p.pool, "model", model)),
		matched:  t.metric(Counter, seriesName("warmlane_matched_tokens_total", "pool", p.pool, "model", model)),
		missed:   t.metric(Counter, seriesName("warmlane_predicted_error_tokens_total", "pool", p.pool, "model", model)),
		unsaid:   t.metric(Counter, seriesName("warmlane_usage_missing_total", "pool", p.pool, "model", model)),
	}
	for k, kind := range tokenKindNames {
		m.tokens[k] = t.metric(Counter, seriesName("warmlane_tokens_total", "pool", p.pool, "model", model, "kind", kind))
	}
	for o := range m.outcomes {
		m.outcomes[o] = t.metric(Counter, seriesName("warmlane_outcomes_total", "pool", p.pool, "model", model, "outcome", Outcome(o).String()))
	}
	for tier, names := range branches {
		for _, b := range names {
			m.decisions[tier][b] = t.metric(Counter, seriesName("warmlane_decisions_total", "pool", p.pool, "model", model, "tier", itoa(tier+1), "branch", b.String()))
		}
	}
	return m
}

// admit gives model a label of its own, if there is room. It is called for
// the names in the configuration and in pushed state, never for a client's.
func (p *poolSeries) admit(model string) {
	if _, ok := p.models[model]; !ok && len(p.models) < p.most {
		p.models[model] = p.newModel(model)
	}
}

func (p *poolSeries) of(model []byte) *modelSeries {
	if m, ok := p.models[string(model)]; ok {
		return m
	}
	return p.other
}

// status finds the counter of requests that ended with the client's status.
func (p *poolSeries) status(m *modelSeries, status int) *Metric {
	if status < 0 || status > 599 {
		status = 0
	}
	c, ok := m.requests[uint16(status)]
	if !ok {
		c = p.tally.metric(Counter, seriesName("warmlane_requests_total", "pool", p.pool, "model", m.model, "status", itoa(status)))
		m.requests[uint16(status)] = c
	}
	return c
}

// gauge finds the in-flight gauge of a slot.
func (p *poolSeries) gauge(slot int) *Metric {
	return p.ofSlot(&p.inFlight, Gauge, "warmlane_in_flight", slot)
}

// wrong finds the counter of tokens by which predictions for a slot were wrong.
func (p *poolSeries) wrong(slot int) *Metric {
	return p.ofSlot(&p.errors, Counter, "warmlane_replica_error_tokens_total", slot)
}

func (p *poolSeries) ofSlot(series *[]*Metric, kind Kind, name string, slot int) *Metric {
	for n := len(*series); n <= slot; n++ {
		*series = append(*series, p.tally.metric(kind, seriesName(name, "pool", p.pool, "slot", "r"+itoa(n))))
	}
	return (*series)[slot]
}
