package lab

// oracle sees every queue, step and cache. It foresees the request's time to
// first token at each engine and takes the smallest, plus extra times the
// request's own uncached work, which is what it costs those behind it. It is
// greedy, so not a bound that cannot be beaten.
type oracle struct {
	deaf
	fleet *fleet
	extra float64
	sight forecast
}

func (o *oracle) pick(f *flight) int {
	o.fleet.prepare(f)
	best, least := 0, 0.0
	for slot, r := range o.fleet.replicas {
		ttft, uncached := o.sight.of(r, o.fleet.clock.now, f)
		cost := ttft.Seconds() + o.extra*float64(uncached)/r.Config().PrefillRate
		if slot == 0 || cost < least {
			best, least = slot, cost
		}
	}
	return best
}
