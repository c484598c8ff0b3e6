package kvevents

// Anomaly is something that should not happen in a stream of events; the value of
// the label kind of warmlane_control_kv_anomalies_total. This package reports those
// up to UnknownMedium, the others are for what is made of the events.
type Anomaly string

// The anomalies.
const (
	Gap              Anomaly = "gap"               // sequence numbers were left out
	Restart          Anomaly = "restart"           // the engine started anew
	Undecodable      Anomaly = "undecodable"       // a message or an event that cannot be read
	UnknownEvent     Anomaly = "unknown_event"     // an event of a type not known
	ReplayFailed     Anomaly = "replay_failed"     // no answer, or one without end
	ReplayIncomplete Anomaly = "replay_incomplete" // the engine has forgotten what was asked for
	UnknownTopic     Anomaly = "unknown_topic"     // a message of a topic not asked for
	BadBlockSize     Anomaly = "bad_block_size"    // none or beyond measure
	Overrun          Anomaly = "overrun"           // a message dropped as events were taken too slowly
	UnknownMedium    Anomaly = "unknown_medium"    // an event about a tier not known

	UnknownParent Anomaly = "unknown_parent" // blocks stored after one nobody told of
	Misaligned    Anomaly = "misaligned"     // token count is not blocks times block size
	SparseGroup   Anomaly = "sparse_group"   // a cache group whose blocks do not cover the prompt
	OverCapacity  Anomaly = "over_capacity"  // more blocks than fit into the engine's cache
)

// Anomalies are all there are.
var Anomalies = []Anomaly{Gap, Restart, Undecodable, UnknownEvent, ReplayFailed, ReplayIncomplete, UnknownTopic,
	BadBlockSize, Overrun, UnknownMedium, UnknownParent, Misaligned, SparseGroup, OverCapacity}

// Counters are told what happened. Methods are called from several goroutines.
type Counters interface {
	Anomaly(a Anomaly, n int)
	Events(t Type, n int)
}
