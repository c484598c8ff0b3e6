package collect

import "time"

// Events says how the KV events of a pool's replicas are followed.
type Events struct {
	Discover      bool          // ask replicas for /kv_event_sources
	DiscoverEvery time.Duration // between two such questions while all is well
	ReplayTimeout time.Duration // of one replay
}

// DefaultEvents is what is used unless the configuration says otherwise.
var DefaultEvents = Events{Discover: true, DiscoverEvery: 30 * time.Second, ReplayTimeout: time.Minute}

// Answer is how a question for /kv_event_sources went: the label of a counter.
type Answer string

// The answers.
const (
	AnswerSources Answer = "sources"
	AnswerNone    Answer = "none" // the replica publishes no events
	AnswerFailed  Answer = "failed"
)

// Answers lists all answers.
var Answers = []Answer{AnswerSources, AnswerNone, AnswerFailed}
