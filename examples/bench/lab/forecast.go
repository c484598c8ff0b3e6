package lab

import (
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// forecast plays the next steps of an engine, as its scheduler plans them, for
// a request that is sent now. It counts tokens instead of keeping blocks: who
// shares what with whom is settled before. The zero value is ready; it keeps
// its memory.
type forecast struct {
	cfg      engine.Config
	prefills []prefill // in the order in which they are served
	decodes  []decode
	started  []decode // those that join them with the next step
	free     int      // blocks
}

// prefill is a prompt that is not computed yet.
type prefill struct {
	left    int  // tokens
	waiting bool // not among the running ones
	own     bool // the request that the forecast is for
	then    decode
}

// decode is an answer being generated.
type decode struct {
	left   int // tokens
	blocks int // that its end sets free
}

// of is the time to first token of f at r, were it sent now and nothing after
// it, and its uncached tokens.
func (s *forecast) of(r *replica, now time.Duration, f *flight) (ttft time.Duration, uncached int) {
	s.take(r)
	uncached = f.Tokens - r.hits(f)
	s.prefills = append(s.prefills, prefill{left: uncached, waiting: true, own: true})
	at, busy := r.Next()
	if busy {
		s.step(true)
	} else {
		at = now
	}
	for {
		took, done := s.step(false)
		at += took
		if done {
			return at - now, uncached
		}
	}
}

// hits is how many of f's tokens r holds, or will before it comes to f.
func (r *replica) hits(f *flight) int {
	size := r.Config().BlockSize
	most := (f.Tokens - 1) / size * size // the last token is always computed
	hits := r.Resident(f.job)
	for _, q := range r.flying {
		if q.outputs == 0 {
			hits = max(hits, min(common(f.prompt, q.prompt)/size*size, most))
		}
	}
	return hits
}

func common(a, b []engine.Token) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// take notes what the engine has to do. It serves requests in order of
// arrival, so of those that run the first without output is the only one whose
// prompt may be partly done.
func (s *forecast) take(r *replica) {
	s.cfg, s.prefills, s.decodes = r.Config(), s.prefills[:0], s.decodes[:0]
	running, _, usage := r.Load()
	s.free = int((1 - usage) * float64(s.cfg.Blocks-1))
	owed, partial := r.Backlog(), -1
	for i, q := range r.flying {
		cached := q.job.CachedTokens()
		if i >= running {
			cached = q.hits
			owed -= q.Tokens - r.Resident(q.job)
		}
		own := decode{q.Output - max(q.outputs, 1), (q.Tokens - cached + q.Output) / s.cfg.BlockSize}
		if q.outputs > 0 {
			s.decodes = append(s.decodes, own)
			continue
		}
		if i < running {
			owed -= q.Tokens - cached
			if partial < 0 {
				partial = len(s.prefills)
			}
		}
		s.prefills = append(s.prefills, prefill{left: q.Tokens - cached, waiting: i >= running, then: own})
	}
	if partial >= 0 {
		s.prefills[partial].left = max(s.prefills[partial].left+owed, 1)
	}
}

// step plays one step. Under way are only those that run already. done says
// that the own prompt is computed.
func (s *forecast) step(underway bool) (took time.Duration, done bool) {
	decoding, computed := len(s.decodes), 0
	budget := s.cfg.BatchTokens - decoding
	keep, started := s.prefills[:0], s.started[:0]
	for _, p := range s.prefills {
		n := min(p.left, budget-computed)
		if p.waiting && (underway || decoding > 0 && n/s.cfg.BlockSize >= s.free) {
			n, budget = 0, computed // nor may those behind it overtake
		}
		if n > 0 {
			p.left, p.waiting = p.left-n, false
			computed, s.free = computed+n, s.free-n/s.cfg.BlockSize
		}
		switch {
		case p.left > 0:
			keep = append(keep, p)
		case p.own:
			done = true
		case p.then.left > 0:
			started = append(started, p.then)
		}
	}
	s.generate()
	s.prefills, s.started, s.decodes = keep, started, append(s.decodes, started...)
	return s.stepTime(computed, decoding), done
}

// generate gives every answer its next token.
func (s *forecast) generate() {
	keep := s.decodes[:0]
	for _, d := range s.decodes {
		if d.left--; d.left > 0 {
			keep = append(keep, d)
			continue
		}
		s.free += d.blocks
	}
	s.decodes = keep
}

// stepTime is how long the engine takes: see engine.Config.
func (s *forecast) stepTime(prefill, decoding int) time.Duration {
	t := float64(prefill) / s.cfg.PrefillRate
	if decoding > 0 {
		alone, full := 1/s.cfg.DecodeRate, 1/s.cfg.DecodeFull
		t += alone + (full-alone)*float64(decoding-1)/float64(s.cfg.MaxSeqs-1)
	}
	return time.Duration(t * float64(time.Second))
}
