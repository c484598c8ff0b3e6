package exchange

import (
	"bytes"

	"github.com/warmlane/warmlane/filter/route"
)

// Settle ends the exchange, on whatever way out: it takes the request off its
// replica's account, counts it and gives the access log its line. A second
// call does nothing. details is asked for the host's word on why the exchange
// ended (Envoy's response code details) if it did not end well.
func (e *Exchange) Settle(details func() []byte) *Verdict {
	w := e.worker
	v := &w.verdict
	v.reset()
	ours := e.phase == reading || e.phase == asking || e.phase == sent || e.phase == answering
	e.phase = settled
	if !ours {
		return v
	}
	now := w.env.Now()
	outcome := e.outcome(details)
	if e.pool == nil { // the upload was cut before there was a decision
		e.pool = w.pools[0]
		e.series = e.pool.series.other
	}
	if e.answer.status == 200 {
		e.takeUsage(now, outcome)
	}
	e.pay(now, outcome)
	w.tally.add(e.pool.series.status(e.series, e.answer.status), 1)
	w.tally.add(e.series.outcomes[outcome], 1)
	if e.sentAt != 0 {
		w.tally.observe(e.series.duration, now-e.sentAt)
	}
	if w.config.Piggyback.Log {
		v.property(logProperty, w.scratch.logOf(e, now, outcome))
	}
	e.drop()
	return v
}

func (e *Exchange) outcome(details func() []byte) Outcome {
	switch {
	case e.replied || e.answer.status != 0 && e.answeredLen == 0:
		return LocalReply
	case e.said.Broken():
		return StreamError
	case e.ended || e.said.Ended: // many clients leave once they have the end mark
		return OK
	case e.answer.status == 0:
		return ClientCancelled
	case bytes.Contains(details(), []byte("upstream")):
		return UpstreamReset
	}
	return ClientCancelled
}

// pay settles the request's account with the replica.
func (e *Exchange) pay(now int64, outcome Outcome) {
	how := route.OK
	switch {
	case outcome == ClientCancelled:
		how = route.Cancelled
	case outcome != OK || e.answer.status >= 500:
		how = route.Failed
	}
	if how != route.OK && e.answer.status == 0 || how == route.Failed {
		e.withdraw(e.ticket.Slot())
	}
	e.pool.router.Settle(&e.ticket, now, how)
}
