package exchange

import (
	"github.com/warmlane/warmlane/filter/openai"
	"github.com/warmlane/warmlane/filter/route"
)

// otherModel is the label of every model that neither the configuration nor
// a replica names, so that made-up names grow nothing.
const otherModel = "other"

// branches is how many branches package route knows.
const branches = int(route.CacheMissMinLoad) + 1

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

// modelSeries holds the metrics of one model in one pool. They are looked up
// once a request, by the model, and then by number.
type modelSeries struct {
	model     string
	requests  map[uint16]*Metric // by the client's status
	outcomes  [outcomeCount]*Metric
	decisions [branches]*Metric
	duration  *Metric
	ttft      *Metric
	matched   *Metric
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
	p.other = p.newModel(otherModel)
	return p
}

func (p *poolSeries) newModel(model string) *modelSeries {
	t := p.tally
	m := &modelSeries{
		model: model, requests: make(map[uint16]*Metric),
		duration: t.metric(Histogram, seriesName("warmlane_duration_ms", "pool", p.pool, "model", model)),
		ttft:     t.metric(Histogram, seriesName("warmlane_ttft_ms", "pool", p.pool, "model", model)),
		matched:  t.metric(Counter, seriesName("warmlane_matched_tokens_total", "pool", p.pool, "model", model)),
	}
	for o := range m.outcomes {
		m.outcomes[o] = t.metric(Counter, seriesName("warmlane_outcomes_total", "pool", p.pool, "model", model, "outcome", Outcome(o).String()))
	}
	for b := range m.decisions {
		m.decisions[b] = t.metric(Counter, seriesName("warmlane_decisions_total", "pool", p.pool, "model", model, "tier", "1", "branch", route.Branch(b).String()))
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
	for len(p.inFlight) <= slot {
		p.inFlight = append(p.inFlight, p.tally.metric(Gauge,
			seriesName("warmlane_in_flight", "pool", p.pool, "slot", "r"+itoa(len(p.inFlight)))))
	}
	return p.inFlight[slot]
}
