package exchange

// backoff stops calls that keep failing: after a few failures in a row for a
// second, and for twice as long each time one fails after that.
type backoff struct {
	failures int
	until    int64
}

const (
	failuresBorne = 3
	firstRestMS   = 1_000
	longestRestMS = 30_000
)

func (b *backoff) resting(now int64) bool {
	left := b.until - now
	return left > 0 && left <= longestRestMS // else the clock was set back
}

func (b *backoff) note(ok bool, now int64) {
	if ok {
		*b = backoff{}
		return
	}
	b.failures++
	if over := b.failures - failuresBorne; over >= 0 {
		b.until = now + min(int64(firstRestMS)<<min(over, 10), longestRestMS)
	}
}

// allowance is a token bucket of calls.
type allowance struct {
	perS  float64
	level float64
	at    int64
}

// most is how many calls may be made at once after a pause.
func (a *allowance) most() float64 { return max(a.perS, 1) }

// has says whether a call may be made at now.
func (a *allowance) has(now int64) bool {
	if now > a.at {
		if a.at == 0 {
			a.level = a.most()
		}
		a.level = min(a.level+float64(now-a.at)/1000*a.perS, a.most())
	}
	a.at = now
	return a.perS > 0 && a.level >= 1
}

func (a *allowance) take() { a.level-- }
