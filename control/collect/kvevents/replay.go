package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
)

// endSeq in place of a sequence number marks the end of a replay: -1.
const endSeq = ^uint64(0)

// replayTries is how often a replay is asked for in vain before it has failed. A
// ROUTER may drop a request that reaches it before it has taken its peer in.
const replayTries = 2

// Ways a single request can end other than with an error of the connection.
var (
	errHole  = errors.New("kvevents: a batch is missing within a replay")
	errOther = errors.New("kvevents: the replay is that of another engine")
	errOrder = errors.New("kvevents: numbers of a replay do not ascend")
	errLarge = errors.New("kvevents: a replay without end")
	errShort = errors.New("kvevents: the replay tells less than is known")
)

// reply is one answer of a replay.
type reply struct {
	end     bool
	topic   []byte // nil: not told
	seq     uint64
	payload []byte
}

// parseReply reads ["", topic, seq, payload], or without topic as vLLM sent before
// June 2026. The end mark has the same frames with sequence number -1; it may lack
// those after it.
func parseReply(m *message) (r reply, err error) {
	n := m.frames()
	if n < 2 || n > 4 || len(m.frame(0)) != 0 {
		return r, fmt.Errorf("kvevents: replay reply of %d frames", n)
	}
	if last := m.frame(n - 1); len(last) == 8 && binary.BigEndian.Uint64(last) == endSeq {
		return reply{end: true}, nil
	}
	at := n - 2
	if at == 0 || len(m.frame(at)) != 8 {
		return r, fmt.Errorf("kvevents: replay reply without a sequence number")
	}
	r.seq, r.payload = binary.BigEndian.Uint64(m.frame(at)), m.frame(n-1)
	if r.end = r.seq == endSeq; at == 2 && !r.end {
		r.topic = m.frame(1)
	}
	return r, nil
}

// catchUp asks for what was missed until the engine has no more, and takes it in.
// It reports whether that worked; if not, the next try has to wait.
func (f *Follower) catchUp(ctx context.Context) bool {
	if f.replayAddress == "" {
		return false
	}
	until := time.Now().Add(f.opts.ReplayTimeout)
	f.replayed = 0
	accept := false // a hole that stays is not worth asking again
	for vain := 0; vain < replayTries; {
		before, seen, rebuild := f.next, f.seen, f.rebuilding()
		err := f.ask(ctx, until, accept)
		progress := f.next != before || f.seen != seen
		switch {
		case err == nil && f.rebuild && !rebuild: // it is the same engine: now from the start
			f.synced = true
		case err == nil, errors.Is(err, errShort):
			f.synced, f.rebuild, f.failures = true, false, 0
			f.setPartial(f.holes, false)
			return true
		case ctx.Err() != nil:
			return false
		case time.Now().After(until):
			vain = replayTries
		case errors.Is(err, errOther) && !f.synced:
			f.counters.Anomaly(Restart, 1)
			f.void(Restarted)
		case errors.Is(err, errOther), errors.Is(err, errOrder), errors.Is(err, errLarge): // asking again will not help
			vain = replayTries
		case errors.Is(err, errHole):
			accept = !progress
		case progress:
			vain = 0
		default:
			vain++
			sleep(ctx, f.opts.RetryMin)
		}
	}
	f.counters.Anomaly(ReplayFailed, 1)
	f.failures++
	f.retryAt = time.Now().Add(f.opts.RetryMax << min(f.failures-1, 5))
	return false
}

// ask sends one request and takes in the replies up to the end mark. The request is
// for the last batch known, which proves that it is the same engine, and all after.
func (f *Follower) ask(ctx context.Context, until time.Time, accept bool) error {
	p := playback{f: f, accept: accept}
	if f.seen && !f.rebuilding() {
		p.from, p.verify = f.next-1, true
	}
	if err := f.request(ctx, p.from); err != nil {
		return err
	}
	for {
		r, err := f.reply(until)
		if err != nil {
			f.hangUp() // what still comes is not to be taken for the answer to the next request
			return err
		}
		switch {
		case r.end && p.err == nil:
			return p.end()
		case r.end:
			return p.err
		case p.err != nil: // only the end mark counts from now on
		case r.topic == nil || f.wanted(r.topic):
			p.err = p.take(r.seq, r.payload)
		}
	}
}

// rebuilding tells whether the replay from the start is due. Before that it must be
// known to be the same engine.
func (f *Follower) rebuilding() bool { return f.rebuild && f.synced }

// request asks for all batches from a number on. The connection is kept for the next.
func (f *Follower) request(ctx context.Context, from uint64) (err error) {
	if f.dealer == nil {
		if f.dealer, err = dial(ctx, f.replayAddress, "DEALER", "ROUTER", f.opts.DialTimeout); err != nil {
			f.dealer = nil
			return err
		}
	}
	if err = f.dealer.send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		f.hangUp()
	}
	return err
}

func (f *Follower) hangUp() {
	if f.dealer != nil {
		_ = f.dealer.Close()
		f.dealer = nil
	}
}

// reply receives the next reply; it points into f.message.
func (f *Follower) reply(until time.Time) (reply, error) {
	if wait := time.Now().Add(f.opts.ReplyTimeout); wait.Before(until) {
		until = wait
	}
	_ = f.dealer.SetReadDeadline(until)
	if err := f.dealer.receive(&f.message); err != nil {
		return reply{}, err
	}
	if f.replayed += int64(len(f.message.data)); f.replayed > f.opts.ReplayBytes {
		return reply{}, errLarge
	}
	return parseReply(&f.message)
}

// playback is one replay under way.
type playback struct {
	f      *Follower
	from   uint64 // number asked for
	verify bool   // it is that of the last batch known
	accept bool   // go on after a hole
	begun  bool
	last   uint64 // number of the last reply
	err    error  // why the rest is not taken in
}

// take takes in one reply.
func (p *playback) take(seq uint64, payload []byte) error {
	f := p.f
	if p.begun && seq <= p.last || seq < p.from {
		return errOrder
	}
	if !p.begun {
		if known, err := p.first(seq, payload); known || err != nil {
			return err
		}
	} else if seq != f.next {
		if !p.accept {
			return errHole
		}
		f.incomplete()
	}
	p.begun, p.last, f.synced = true, seq, true
	f.deliver(seq, payload)
	return nil
}

// first looks at the first reply, before it is taken in unless it is known. If it is
// not the batch asked for, the engine has forgotten that one.
func (p *playback) first(seq uint64, payload []byte) (known bool, err error) {
	f := p.f
	switch {
	case p.verify && seq == p.from:
		if xxhash.Sum64(payload) != f.sum {
			return true, errOther
		}
		p.begun, p.last, f.synced = true, seq, true
		return true, nil
	case f.rebuilding() && seq > f.base:
		f.incomplete()
		return true, errShort
	case f.rebuilding(), p.verify && !f.synced: // the latter: nothing tells whether it is the same engine
		f.void(Lost)
	}
	if seq != f.next {
		f.incomplete()
	}
	return false, nil
}

// end looks at the end mark.
func (p *playback) end() error {
	f := p.f
	switch {
	case p.begun:
	case p.verify && !f.synced:
		return errOther // it has not even published the last batch known
	case !f.seen:
		f.setPartial(false, false) // nothing was ever stored
	}
	return nil
}
