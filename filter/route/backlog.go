package route

// A backlog is what one replica still has to prefill, as far as this proxy
// knows. Streams say when their prefill is over: by their first token. Until
// then their tokens are in owed, and what the replica has done since the last
// first token is taken off by the clock. Answers that come in one piece say
// nothing until they are complete, so their tokens (soft) only run off by the
// clock.
type backlog struct {
	owed  uint32  // tokens of streams that wait for their first token
	soft  uint32  // tokens of other requests, as of since
	since int64   // ms; last first token, or when the replica began to work
	rate  float32 // tokens per second
}

// drained is how many tokens the replica has done since b.since.
func (b backlog) drained(now int64) float32 {
	if now <= b.since {
		return 0
	}
	return float32(now-b.since) / 1000 * b.rate
}

// left is how many tokens are to be done at now. When a stream is overdue the
// rate or the match was wrong or the replica is stuck; nothing tells which, so
// it is taken to need as long again as it is late.
func (b backlog) left(now int64) float32 {
	left := float32(b.owed) + float32(b.soft) - b.drained(now)
	if left < 0 && b.owed > 0 {
		return -left
	}
	if left < 0 {
		return 0
	}
	return left
}

// send is the backlog just before a new request is added to it. While no
// stream waits, the soft part is settled by the clock; while one does, since
// must stay at the last first token.
func (b backlog) send(now int64) backlog {
	if b.owed > 0 {
		return b
	}
	b.soft = less(b.soft, b.drained(now))
	b.since = now
	return b
}

// first is the backlog after the first token of a stream of uncached tokens,
// which the caller has taken off owed. What was done beyond the stream's own
// tokens was done for soft ones.
func (b backlog) first(now int64, uncached uint32) backlog {
	if now < b.since {
		return b
	}
	if extra := b.drained(now) - float32(uncached); extra > 0 {
		b.soft = less(b.soft, extra)
	}
	b.since = now
	return b
}

func less(tokens uint32, by float32) uint32 {
	if by >= float32(tokens) {
		return 0
	}
	return tokens - uint32(by)
}

// Rates outside these bounds are measuring errors.
const (
	minRate = 1
	maxRate = 1e7
)

func plausibleRate(r float32) bool { return r >= minRate && r <= maxRate }

// learn moves rate towards work tokens done in ms milliseconds. A sample
// counts by its time: the mean is then tokens over time, which errs low as it
// should (a rate too high costs much more than one too low), and many short
// prompts, whose time is mostly overhead, do not drown a long one. How far one
// sample can pull is limited, as the work may be wrong: not everything that was
// thought resident is.
func learn(rate float32, work uint32, ms int64) float32 {
	span := float32(max(ms, 1))
	sample := float32(work) * 1000 / span
	sample = min(max(sample, rate*learnLow, minRate), rate*learnHigh, maxRate)
	return rate + (sample-rate)*learnMost*span/(span+learnHalfMS)
}

const (
	learnMost   = 0.1 // weight of an endless sample
	learnHalfMS = 500 // length of a sample that gets half of it
	learnLow    = 0.7 // how far a sample is believed, times the rate
	learnHigh   = 1.4
)
