package exchange

import (
	"bytes"

	"github.com/warmlane/warmlane/filter/openai"
)

// Headers walks a header map. Names are lower-case, as HTTP/2 has them, and
// name and value are valid until the next call.
type Headers interface {
	Next() (name, value []byte, ok bool)
}

// Names of the contract with operators and replicas.
const (
	decisionHeader = "x-warmlane-decision"
	loadHeader     = "x-warmlane-load"
	// ReasonHeader says on every reply of the filter's own why there is one.
	ReasonHeader = "x-warmlane-reason"

	// sessionHeader is what an engine hands on with its KV events.
	sessionHeader = "x-session-id"

	askLoadHeader    = "endpoint-load-metrics-format"
	loadReportHeader = "endpoint-load-metrics"
	loadBinaryHeader = "endpoint-load-metrics-bin"

	// attemptHeader is Envoy's, if the virtual host has
	// include_attempt_count_in_response.
	attemptHeader = "x-envoy-attempt-count"
)

// Properties of filter state, below "wasm.": the native filters behind this
// one make headers of them (examples/quickstart/envoy.yaml).
const (
	destinationProperty = "warmlane.destination"
	poolProperty        = "warmlane.pool"
	workProperty        = "warmlane.work" // for the reporter beside the replica
	logProperty         = "warmlane.log"
	// sessionProperty becomes x-session-id, if the client has sent none.
	sessionProperty = "warmlane.session"
	// lengthProperty becomes content-length: Envoy counts the body of a request
	// that was held twice if the client had sent no length.
	lengthProperty = "warmlane.length"
)

// dialect is how a request is read.
type dialect uint8

const (
	notOurs     dialect = iota // passes untouched and unrouted
	byLoad                     // routed by load alone
	chat                       // /v1/chat/completions
	completions                // /v1/completions
	responses                  // /v1/responses
	messages                   // /v1/messages
	embeddings                 // /v1/embeddings and its like
	rerank                     // /v1/rerank and /v1/score
)

// kinds says how the scanner reads a dialect.
var kinds = [...]openai.Kind{
	chat: openai.Chat, completions: openai.Completions, responses: openai.Responses, messages: openai.Messages,
	embeddings: openai.Embeddings, rerank: openai.Rerank,
}

func (d dialect) kind() openai.Kind { return kinds[d] }

// tokenized says that engines tell the tokens of such a request.
func (d dialect) tokenized() bool { return d == chat || d == completions }

// requestHead is what the headers of a request say about it.
type requestHead struct {
	post      bool
	dialect   dialect
	encoded   bool // the body is compressed, so it cannot be read
	explain   bool
	askedLoad bool // the client itself asked for load reports
	session   bool // the client has a session of its own
	id        [64]byte
	idLen     int
	mark      [70]byte // boundary of a form ...
	markLen   int      // ... or 0, if the body is none
}

// read takes in the head and says in v which headers must go. The names a
// client may use are the operator's to choose.
func (r *requestHead) read(h Headers, names *HeaderConfig, v *Verdict) {
	*r = requestHead{}
	for {
		name, value, ok := h.Next()
		if !ok {
			break
		}
		if len(name) > 0 && name[0] == ':' {
			r.readPseudo(name, value)
			continue
		}
		switch string(name) {
		case "content-encoding":
			r.encoded = len(value) > 0 && !bytes.EqualFold(value, []byte("identity"))
		case "content-type":
			r.markLen = copy(r.mark[:], openai.Boundary(value))
		case "x-request-id":
			r.idLen = copy(r.id[:], value)
		case askLoadHeader:
			r.askedLoad = true
		case sessionHeader:
			r.session = len(value) > 0
		default:
			r.readClient(name, value, names, v)
		}
	}
	if !r.post {
		r.dialect = notOurs
	}
}

func (r *requestHead) readPseudo(name, value []byte) {
	switch string(name) {
	case ":method":
		r.post = string(value) == "POST"
	case ":path":
		r.dialect = dialectOf(value)
	}
}

func (r *requestHead) readClient(name, value []byte, names *HeaderConfig, v *Verdict) {
	found := ""
	switch string(name) {
	case names.Explain:
		found, r.explain = names.Explain, string(value) == "1"
	case names.Tenant:
		found = names.Tenant
	case names.Priority:
		found = names.Priority
	case names.Session:
		found = names.Session
	case names.Cache:
		found = names.Cache
	}
	if found != "" && !names.Forward {
		v.remove(found)
	}
}

// Counts says whether a POST to this path is a request that is routed, and so
// counted as a replica's work.
func Counts(path []byte) bool { return dialectOf(path) != notOurs }

// dialectOf knows the paths of the engines' HTTP servers.
func dialectOf(path []byte) dialect {
	if i := bytes.IndexByte(path, '?'); i >= 0 {
		path = path[:i]
	}
	switch string(path) {
	case "/v1/chat/completions":
		return chat
	case "/v1/completions":
		return completions
	case "/v1/responses":
		return responses
	case "/v1/messages":
		return messages
	case "/v1/embeddings", "/pooling", "/classify":
		return embeddings
	case "/v1/rerank", "/rerank", "/v2/rerank", "/v1/score", "/score":
		return rerank
	case "/tokenize", "/detokenize", "/v1/messages/count_tokens", "/v2/embed",
		"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech":
		return byLoad
	}
	return notOurs
}

// responseHead is what the headers of an answer say about it. report points
// into the header map and is valid as long as that is.
type responseHead struct {
	status   int
	first    bool // Envoy says that it is the first replica asked
	stream   bool // an event stream
	encoded  bool // the body is compressed
	report   []byte
	binary   bool // report is the protobuf form
	reported bool // there was a report, under either name
	text     bool // there was one under the name of the text form
	bin      bool // and under that of the binary form
}

// strip removes the reports, which are for us.
func (r *responseHead) strip(v *Verdict) {
	if r.text {
		v.remove(loadReportHeader)
	}
	if r.bin {
		v.remove(loadBinaryHeader)
	}
}

func (r *responseHead) read(h Headers) {
	*r = responseHead{}
	for {
		name, value, ok := h.Next()
		if !ok {
			return
		}
		switch string(name) {
		case ":status":
			r.status = atoi(value)
		case "content-type":
			r.stream = bytes.HasPrefix(value, []byte("text/event-stream"))
		case "content-encoding":
			r.encoded = len(value) > 0 && !bytes.EqualFold(value, []byte("identity"))
		case attemptHeader:
			r.first = string(value) == "1"
		case loadReportHeader:
			r.report, r.binary, r.reported, r.text = value, false, true, true
		case loadBinaryHeader:
			r.report, r.binary, r.reported, r.bin = value, true, true, true
		}
	}
}

// atoi reads a status; what is not a number of three digits is 0.
func atoi(b []byte) int {
	if len(b) != 3 {
		return 0
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}
