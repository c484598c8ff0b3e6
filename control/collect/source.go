package collect

import (
	"context"
	"slices"

	"github.com/warmlane/warmlane/control/collect/kvevents"
)

// Member is a replica as a source names it. Address is as [ParseAddress]
// returns it.
type Member struct {
	Address  string
	Draining bool // takes no new requests

	// Feeds are the replica's KV events, one for each of its engines. Without
	// any the replica is asked for them.
	Feeds []kvevents.Source
}

func (m *Member) equal(o *Member) bool {
	return m.Address == o.Address && m.Draining == o.Draining && slices.Equal(m.Feeds, o.Feeds)
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
// it is the more careful reading; feeds are those of the first line that has
// some.
func normal(members []Member) []Member {
	out := make([]Member, 0, len(members))
	at := make(map[string]int, len(members))
	for _, m := range members {
		i, seen := at[m.Address]
		if !seen {
			at[m.Address] = len(out)
			out = append(out, m)
			continue
		}
		out[i].Draining = out[i].Draining || m.Draining
		if len(out[i].Feeds) == 0 {
			out[i].Feeds = m.Feeds
		}
	}
	return out
}
