package main

import "slices"

// spread is a median with its quartiles.
type spread struct{ p25, p50, p75 float64 }

// spreadOf gives the spread of values, of which there is at least one.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	return spread{quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)}
}

// quantile interpolates between the two values around its place.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// ratios compares two contestants round by round.
func ratios(base, other []sample, value func(sample) float64) spread {
	var all []float64
	for i := range other {
		all = append(all, value(other[i])/value(base[i]))
	}
	return spreadOf(all)
}

// absolute is the spread of one contestant's own values.
func absolute(samples []sample, value func(sample) float64) spread {
	var all []float64
	for _, s := range samples {
		all = append(all, value(s))
	}
	return spreadOf(all)
}

func throughputOf(s sample) float64 { return s.throughput() }
func p50Of(s sample) float64        { return s.p50 }
func p99Of(s sample) float64        { return s.p99 }
func cpuOf(s sample) float64        { return s.cpu }
