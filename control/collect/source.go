package collect

import "context"

// Member is a replica as a source names it. Address is as [ParseAddress]
// returns it.
type Member struct {
	Address  string
	Draining bool // takes no new requests
}

// Source says which replicas there are. Run calls emit with the whole list,
// first as soon as it can and then whenever it changes, until ctx ends. A
// source that cannot read its list says why through report and goes on.
type Source interface {
	Run(ctx context.Context, emit func([]Member), report func(error))
}

// Static is a list that never changes.
type Static []Member

// Run emits the list once.
func (s Static) Run(ctx context.Context, emit func([]Member), _ func(error)) {
	emit(normal(s))
	<-ctx.Done()
}

// normal returns each address once, in the order in which they first occur,
// which is that of their slots. If two lines name one address, draining wins:
// it is the more careful reading.
func normal(members []Member) []Member {
	out := make([]Member, 0, len(members))
	at := make(map[string]int, len(members))
	for _, m := range members {
		i, seen := at[m.Address]
		if !seen {
			at[m.Address] = len(out)
			out = append(out, m)
		} else if m.Draining {
			out[i].Draining = true
		}
	}
	return out
}
