package exchange

// window tells how much of what a replica was sent last may still be missing
// from its index: what it has not prefilled yet, and what it did in the time
// that its events need to arrive here. It keeps two samples of how much was done,
// in units of route.ClockUnit on the replica's clock, which wraps.
type window struct {
	at   [2]int64 // when, ms; 0 = never
	done [2]uint32
}

// eventMS is how long an event may take from the engine to here: the budget is
// 150 ms, and a busy engine sends late.
const eventMS = 500

// sample notes how much was done at now: what was sent (clock) less what is owed,
// both in clock units.
func (w *window) sample(clock, owed uint32, now int64) {
	if age := now - w.at[1]; age < 0 || age >= eventMS {
		w.at[0], w.done[0] = w.at[1], w.done[1]
		w.at[1], w.done[1] = now, clock-owed
	}
}

// open is how many units of what was sent may be missing from the index. The
// older sample is at least eventMS old; until there is one, what came since the
// first may be missing.
func (w *window) open(clock, owed uint32, now int64) uint32 {
	w.sample(clock, owed, now)
	done := w.done[0]
	if w.at[0] == 0 {
		done = w.done[1]
	}
	return uint32(max(int32(clock-done), int32(owed), 0))
}
