package publish

import (
	"slices"
	"strings"

	"github.com/warmlane/warmlane/filter/state"
)

// question is what an answer depends on.
type question struct {
	from, to uint64 // from 0 = the whole
	pools    string // sorted, joined by "\x00"; "" = all
}

// answers keeps what was encoded: towards the latest state all of it, and of
// what has several pages also what was begun before, until it is fetched.
type answers struct {
	latest map[question][][]byte
	long   []answer // oldest first
	bytes  int      // of long
}

type answer struct {
	question
	pages [][]byte
	bytes int
}

// reset is for a new latest state. An answer towards a state older than the
// oldest is of no use any more: nothing could be built on it.
func (a *answers) reset(oldest uint64) {
	a.latest = nil
	a.evict(func() bool { return a.long[0].to < oldest })
}

// evict drops the oldest of the long answers while that is called for.
func (a *answers) evict(called func() bool) {
	for len(a.long) > 0 && called() {
		a.bytes -= a.long[0].bytes
		a.long = slices.Delete(a.long, 0, 1)
	}
}

// keep remembers the answer to q, which is towards the latest state, unless
// there are so many.
func (a *answers) keep(q question, pages [][]byte, max int) {
	if a.latest == nil {
		a.latest = make(map[question][][]byte)
	}
	if len(a.latest) < max {
		a.latest[q] = pages
	}
}

// keepLong remembers an answer of several pages, and forgets the oldest ones if
// that makes more than max bytes.
func (a *answers) keepLong(q question, pages [][]byte, max int) {
	n := answer{question: q, pages: pages}
	for _, page := range pages {
		n.bytes += cap(page)
	}
	a.evict(func() bool { return a.bytes+n.bytes > max })
	a.long = append(a.long, n)
	a.bytes += n.bytes
}

// find returns an answer that was kept, or nil.
func (a *answers) find(q question) [][]byte {
	if pages, ok := a.latest[q]; ok {
		return pages
	}
	for i := range a.long {
		if a.long[i].question == q {
			return a.long[i].pages
		}
	}
	return nil
}

// recent returns the newest whole of several pages that leads beyond the
// generation after, or nil.
func (a *answers) recent(pools string, after uint64) [][]byte {
	for _, l := range slices.Backward(a.long) {
		if l.from == 0 && l.pools == pools && l.to > after {
			return l.pages
		}
	}
	return nil
}

// answer returns the pages that lead from held (nil: from nothing) to the
// latest state, or near to it.
func (h *Hub) answer(held *generation, want pools) [][]byte {
	if held == nil {
		return h.whole(0, want)
	}
	q := question{from: held.Generation, to: h.latest().Generation, pools: want.joined}
	if pages := h.answers.find(q); pages != nil {
		return pages
	}
	later, _ := h.since(held.Generation)
	to := want.of(h.latest().Snapshot)
	kv := h.index.since(later, to)
	if n := sizeOf(kv); n > h.limits.smallDelta && n > h.index.size(to) {
		pages := h.whole(held.Generation, want)
		h.answers.keep(q, pages, h.limits.answers)
		return pages
	}
	return h.keep(q, state.Pages(want.of(held.Snapshot), to, h.limits.page, kv...))
}

// whole returns the pages of all there is, as of a state after that one.
func (h *Hub) whole(after uint64, want pools) [][]byte {
	now := h.latest()
	q := question{to: now.Generation, pools: want.joined}
	if pages := h.answers.find(q); pages != nil {
		return pages
	}
	if now.Generation > h.limits.age {
		after = max(after, now.Generation-h.limits.age)
	}
	if pages := h.answers.recent(want.joined, after); pages != nil {
		return pages
	}
	to := want.of(now.Snapshot)
	return h.keep(q, state.Pages(nil, to, h.limits.page, h.index.whole(to)...))
}

// keep remembers the answer to q.
func (h *Hub) keep(q question, pages [][]byte) [][]byte {
	if len(pages) > 1 {
		h.answers.keepLong(q, pages, h.limits.long)
	} else {
		h.answers.keep(q, pages, h.limits.answers)
	}
	return pages
}

// pools is a choice of pools.
type pools struct {
	names  []string // sorted; empty = all
	joined string
}

func choose(names []string) pools {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	return pools{names: names, joined: strings.Join(names, "\x00")}
}

// of returns s with the chosen pools only.
func (p *pools) of(s *state.Snapshot) *state.Snapshot {
	if len(p.names) == 0 {
		return s
	}
	out := &state.Snapshot{Epoch: s.Epoch, Generation: s.Generation}
	for i := range s.Pools {
		if _, ok := slices.BinarySearch(p.names, s.Pools[i].Name); ok {
			out.Pools = append(out.Pools, s.Pools[i])
		}
	}
	return out
}
