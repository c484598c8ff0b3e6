package publish

import (
	"slices"
	"strings"

	"github.com/warmlane/warmlane/filter/state"
)

// maxAnswers bounds the answers that are kept: as many as there are states to
// begin at, for a few choices of pools. Above it each is made for its asker.
const maxAnswers = 4 * kept

// question is what an answer depends on, beside the latest generation.
type question struct {
	from  uint64 // 0 = the whole
	pools string // sorted, joined by "\x00"; "" = all
}

// answers keeps what was encoded towards the latest state.
type answers struct {
	pages map[question][][]byte
}

func (a *answers) reset() { a.pages = nil }

// get returns the pages that lead from old (nil: from nothing) to now.
func (a *answers) get(old, now *state.Snapshot, want pools) [][]byte {
	q := question{pools: want.joined}
	if old != nil {
		q.from = old.Generation
	}
	pages, ok := a.pages[q]
	if ok {
		return pages
	}
	pages = encode(old, now, want)
	if a.pages == nil {
		a.pages = make(map[question][][]byte)
	}
	if len(a.pages) < maxAnswers {
		a.pages[q] = pages
	}
	return pages
}

// encode makes the pages that lead from old to now.
func encode(old, now *state.Snapshot, want pools) [][]byte {
	if old == nil {
		return state.Pages(nil, want.of(now), state.MaxPage)
	}
	return state.Pages(want.of(old), want.of(now), state.MaxPage)
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
