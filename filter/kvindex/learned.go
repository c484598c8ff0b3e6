package kvindex

import "github.com/warmlane/warmlane/filter/shared"

// Learned is what the workers of a proxy have found out about prompts: where
// their texts part ([Border]), and the blocks of those whose tokens a replica
// was asked for. Every worker writes, by compare-and-set; what is oldest makes
// room. It is not safe for concurrent use; several on one store are.
type Learned struct {
	store  shared.Store
	opts   Options
	stats  Stats
	images [borderImages]image
	value  []byte // of the bucket of prompts at hand
	key    []byte
}

// NewLearned returns one worker's access to what is learned.
func NewLearned(store shared.Store, o Options) *Learned {
	o = o.withDefaults()
	l := &Learned{
		store: store, opts: o, value: make([]byte, 0, o.PromptBytes), key: make([]byte, 0, 32),
	}
	for i := range l.images {
		l.images[i].buf = make([]byte, 0, o.BorderBytes+borderBytes)
	}
	return l
}

// Stats returns the counters.
func (l *Learned) Stats() Stats { return l.stats }
