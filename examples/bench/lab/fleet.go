package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// Engine is an 8B model on one large GPU: 16,000 uncached prompt tokens
// a second; 60 tokens a second for an answer alone, 25 for each of 64.
func Engine() engine.Config {
	const alone, crowd, seats = 1.0 / 60, 1.0 / 25, 256
	return engine.Config{
		PrefillRate: 16000, BatchTokens: 2048, Blocks: 31251, BlockSize: 16,
		DecodeRate: 1 / alone, DecodeFull: 1 / (alone + (crowd-alone)/63*(seats-1)), MaxSeqs: seats,
	}
}

// flight is one request on its way.
type flight struct {
	*Request
	id      int
	door    door
	session string // header x-session-id, set by who picks the engine
	prompt  []engine.Token
	job     *engine.Request

	replica *replica
	hits    int  // tokens that the replica holds, or will before it comes to this one
	headed  bool // the answer's head is out
	outputs int  // tokens so far
}

// door is where a request enters: a worker of a proxy.
type door struct{ proxy, worker int }

// replica is one engine and what is on its way to it or at it.
type replica struct {
	*engine.Engine
	slot   int
	flying []*flight // in order of arrival
	work   int       // uncached prompt tokens of all requests so far
}

// fleet is all engines in virtual time.
type fleet struct {
	clock    *clock
	replicas []*replica
	listener listener
	// hear, if not nil, gets every batch of KV events when its step is done.
	hear func(slot int, at time.Duration, events []engine.Event)
}

// listener hears of answers.
type listener interface {
	first(f *flight)
	done(f *flight)
}

func newFleet(c *clock, n int, cfg engine.Config) *fleet {
	f := &fleet{clock: c}
	for slot := range n {
		own := cfg
		own.OnBatch = func(at time.Duration, events []engine.Event) {
			if f.hear != nil {
				f.hear(slot, at, events)
			}
		}
		f.replicas = append(f.replicas, &replica{Engine: engine.New(own), slot: slot})
	}
	return f
}

// prepare makes what engines are given of the request. It is costly, and the
// same for all engines of a fleet.
func (s *fleet) prepare(f *flight) *engine.Request {
	if f.job == nil {
		f.prompt = f.Prompt()
		f.job = s.replicas[0].NewRequest(engine.Spec{
			Model: Model, Prompt: f.prompt, MaxTokens: f.Output, Session: f.session,
			Deliver: func(o engine.Output) { s.deliver(f, o) },
		})
	}
	return f.job
}

// send submits the request.
func (s *fleet) send(f *flight, slot int) error {
	job, r := s.prepare(f), s.replicas[slot]
	f.replica, f.hits = r, r.hits(f)
	r.flying = append(r.flying, f)
	if err := r.Submit(s.clock.now, job); err != nil {
		return fmt.Errorf("request %d of %d tokens: %w", f.id, f.Tokens, err)
	}
	return nil
}

func (s *fleet) deliver(f *flight, o engine.Output) {
	f.outputs = o.Index
	if o.Index == 1 {
		f.replica.work += f.Tokens - f.job.CachedTokens()
		s.listener.first(f)
	}
	if o.Finish != "" {
		i := slices.Index(f.replica.flying, f)
		f.replica.flying = slices.Delete(f.replica.flying, i, i+1)
		s.listener.done(f)
	}
}

// next is the engine that ends a step first, and when.
func (s *fleet) next() (first *replica, at time.Duration) {
	at = never
	for _, r := range s.replicas {
		if ends, busy := r.Next(); busy && ends < at {
			first, at = r, ends
		}
	}
	return first, at
}
