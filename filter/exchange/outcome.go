package exchange

// Outcome is how an exchange ended.
type Outcome uint8

// The outcomes of the contract, in the order of its table.
const (
	OK Outcome = iota
	ClientCancelled
	UpstreamReset
	StreamError
	LocalReply
	outcomeCount
)

var outcomeNames = [outcomeCount]string{"ok", "client_cancelled", "upstream_reset", "stream_error", "local_reply"}

func (o Outcome) String() string { return outcomeNames[o] }

// Reason is one word for why the filter answered by itself; it travels as
// x-warmlane-reason and stands in the log.
type Reason string

// The reasons of this version.
const (
	NoReason     Reason = ""
	UnknownModel Reason = "unknown_model"
	NoReplica    Reason = "no_replica"
)
