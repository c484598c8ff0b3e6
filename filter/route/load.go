package route

import (
	"math"

	"github.com/warmlane/warmlane/filter/state"
)

// Report is what a replica, or the proxy beside it, says of itself with an
// answer. Absent is not zero: see [NoReport].
type Report struct {
	state.Load
	Owed     int32 // prompt tokens to prefill, for all clients; -1 = not known
	InFlight int32 // requests, of all clients; -1 = not known
}

// NoReport is a report in which nothing is known.
func NoReport() Report {
	nan := float32(math.NaN())
	return Report{
		Load: state.Load{Waiting: -1, Running: -1, KV: nan, Hit: nan, RPS: nan, TPS: nan},
		Owed: -1, InFlight: -1,
	}
}

// foreign is the part of a replica's load that is not this proxy's own. It is
// taken when the report arrives, so later own requests do not count twice.
type foreign struct {
	at       int64 // ms; 0 = not known
	inFlight float32
	owed     float32 // tokens
}

// foreignOf compares a report with this proxy's own books of the same moment.
// A report without owed tokens tells them by those who wait, each taken for a
// prompt of mean uncached tokens.
func foreignOf(r *Report, inFlight uint32, owed, mean float32) foreign {
	total, known := total(r)
	if !known || r.At <= 0 {
		return foreign{}
	}
	f := foreign{at: r.At}
	if more := float32(total) - float32(inFlight); more > slackRequests+slackShare*float32(inFlight) {
		f.inFlight = more
	}
	if r.Owed >= 0 {
		f.owed = max(0, float32(r.Owed)-owed)
	} else if r.Waiting > 0 {
		f.owed = min(float32(r.Waiting), f.inFlight) * mean
	}
	return f
}

// A report is older than the books it is compared with: what has ended between
// the two is not somebody else's. So much more than our own counts as nothing.
const (
	slackRequests = 1
	slackShare    = 1.0 / 8
)

// total is how many requests a replica has, and whether that is known at all.
// Engines report those who wait without those who run.
func total(r *Report) (int64, bool) {
	if r.InFlight >= 0 {
		return int64(r.InFlight), true
	}
	n := int64(max(r.Waiting, 0)) + int64(max(r.Running, 0))
	return n, r.Waiting >= 0 || r.Running >= 0 || r.Owed >= 0
}

// halved is how much a load still says at an age of so many half-lives: 1 when
// new, a half after one. It is 2 to the -lives within 3e-9 of it, for a tenth of
// the price of math.Exp2, which is software in Wasm.
func halved(lives float64) float32 {
	if lives <= 0 {
		return 1
	}
	if lives >= 100 {
		return 0
	}
	whole := int(lives)
	x := lives - float64(whole)
	y := 0.9999999986493096 + x*(-0.6931470472976721+x*(0.24022435546531445+x*(-0.055491035283751544+
		x*(0.009580058453149132+x*(-0.001275716216612821+x*0.00010938752370748261)))))
	return float32(y) * math.Float32frombits(uint32(127-whole)<<23)
}

// newer fills what the later of two loads leaves open from the earlier one.
func newer(a, b state.Load) state.Load {
	if b.At > a.At {
		a, b = b, a
	}
	if a.Waiting < 0 {
		a.Waiting = b.Waiting
	}
	if a.Running < 0 {
		a.Running = b.Running
	}
	a.KV, a.Hit = either(a.KV, b.KV), either(a.Hit, b.Hit)
	a.RPS, a.TPS = either(a.RPS, b.RPS), either(a.TPS, b.TPS)
	return a
}

func either(a, b float32) float32 {
	if a != a {
		return b
	}
	return a
}
