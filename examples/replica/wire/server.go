package wire

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/pace"
)

// Config is what a server is made of. Zero values mean defaults or "off".
type Config struct {
	Runner    *pace.Runner
	Engine    engine.Config       // as Engine.Config returns it
	Events    *kvevents.Publisher // nil: no events
	Models    []string            // served names, at least one; the first is the metrics' label
	Name      string              // of the replica; only makes its fingerprint
	Version   string              // default 0.32.0
	MaxBody   int                 // bytes; default 64 MiB
	Journal   *Journal            // default: one without a log
	Faults    *FaultBox           // default: none switched on
	NoDetails bool                // leave out usage.prompt_tokens_details
	NoLoRA    bool                // no run-time adapters
	MaxLoRAs  int                 // label max_lora of the metrics; default 4
	LoRALoad  time.Duration       // engine time that loading an adapter takes
	OldNames  bool                // metric names and labels of older versions
	EchoIDs   bool                // take X-Request-Id for the answer's id and send it back
	Still     bool                // ids are made of the request's body and times are 0: equal requests, equal bytes
	ForceUse  bool                // send the usage event of a stream even if not asked for

	// Act does what POST /debug/faults asks for. spare is the connection of that
	// request, nil if it is not known. May be nil.
	Act func(a Action, spare net.Conn)
}

// Server is the HTTP side of one life of a replica.
type Server struct {
	cfg         Config
	fingerprint string
	started     time.Time
	routes      map[string]map[string]handler
	adapters    adapters
	pieces      dictionary
	http        httpCounts
	inFlight    atomic.Int64
	frozen      frozen
	closing     context.Context
	close       context.CancelFunc
}

type handler func(*exchange)

// New returns a server. Its handler is the server itself.
func New(cfg Config) *Server {
	if cfg.Version == "" {
		cfg.Version = "0.32.0"
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 64 << 20
	}
	if cfg.MaxLoRAs <= 0 {
		cfg.MaxLoRAs = 4
	}
	if cfg.Journal == nil {
		cfg.Journal = NewJournal(nil, 0)
	}
	if cfg.Faults == nil {
		cfg.Faults = &FaultBox{}
	}
	if cfg.Act == nil {
		cfg.Act = func(Action, net.Conn) {}
	}
	s := &Server{cfg: cfg, fingerprint: "vllm-" + cfg.Version + "-" + fingerprint(cfg.Name), started: time.Now()}
	s.closing, s.close = context.WithCancel(context.Background())
	s.routes = s.table()
	s.applySlow()
	return s
}

// Close lets requests go that wait for something that will not come.
func (s *Server) Close() { s.close() }

// table lists what is served. Paths that generate and may be hit by faults are
// told apart in their handlers.
func (s *Server) table() map[string]map[string]handler {
	get := func(h handler) map[string]handler { return map[string]handler{"GET": h} }
	post := func(h handler) map[string]handler { return map[string]handler{"POST": h} }
	t := map[string]map[string]handler{
		"/v1/chat/completions":      post(s.chatCompletions),
		"/v1/completions":           post(s.completions),
		"/v1/responses":             post(s.responses),
		"/v1/messages":              post(s.messages),
		"/v1/messages/count_tokens": post(s.countTokens),
		"/v1/embeddings":            post(s.embeddings),
		"/pooling":                  post(s.pooling),
		"/v1/rerank":                post(s.rerank),
		"/rerank":                   post(s.rerank),
		"/v1/score":                 post(s.score),
		"/score":                    post(s.score),
		"/v1/audio/transcriptions":  post(s.transcriptions),
		"/tokenize":                 post(s.tokenize),
		"/detokenize":               post(s.detokenize),
		"/v1/models":                get(s.models),
		"/health":                   get(s.health),
		"/load":                     get(s.load),
		"/version":                  get(s.version),
		"/metrics":                  get(s.metrics),
		"/reset_prefix_cache":       post(s.resetPrefixCache),
		"/debug/blocks":             get(s.debugBlocks),
		"/debug/requests":           {"GET": s.debugRequests, "DELETE": s.debugForget},
		"/debug/faults":             {"GET": s.debugFaults, "POST": s.debugSetFaults, "DELETE": s.debugHeal},
	}
	if s.cfg.Events != nil {
		t["/kv_event_sources"] = get(s.eventSources)
	}
	if !s.cfg.NoLoRA {
		t["/v1/load_lora_adapter"] = post(s.loadAdapter)
		t["/v1/unload_lora_adapter"] = post(s.unloadAdapter)
	}
	return t
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	x := &exchange{s: s, w: w, r: r, entry: newEntry(r, now)}
	defer func() { x.finish(now) }()
	h := w.Header()
	h.Set("Server", "uvicorn")
	h.Set("Vary", "Origin")
	byMethod, known := s.routes[r.URL.Path]
	if !known {
		_ = x.read()
		x.json(http.StatusNotFound, []byte(`{"detail":"Not Found"}`))
		return
	}
	handle := byMethod[r.Method]
	if handle == nil && r.Method == http.MethodHead {
		handle = byMethod[http.MethodGet]
	}
	if handle == nil {
		h.Set("Allow", allowed(byMethod))
		x.json(http.StatusMethodNotAllowed, []byte(`{"detail":"Method Not Allowed"}`))
		return
	}
	handle(x)
}

func allowed(byMethod map[string]handler) string {
	for m := range byMethod {
		if len(byMethod) == 1 {
			return m
		}
	}
	return "DELETE, GET, POST"
}

// httpCounts are the requests by method, path and class of status.
type httpCounts struct {
	mu sync.Mutex
	n  map[[3]string]uint64
}

func (c *httpCounts) count(method, path string, status int) {
	class := "5xx"
	if status > 0 {
		class = string('0'+rune(status/100)) + "xx"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[[3]string]uint64{}
	}
	if key := [3]string{path, method, class}; c.n[key] > 0 || len(c.n) < 200 {
		c.n[key]++
	}
}

const hexDigits = "0123456789abcdef"

// newID makes 16 random hex digits.
func newID() string { return hex16(rand.Uint64()) }

func hex16(v uint64) string {
	var b [16]byte
	for i := range b {
		b[i] = hexDigits[v>>(60-4*i)&15]
	}
	return string(b[:])
}

// fingerprint makes eight hex digits of a name.
func fingerprint(name string) string {
	h := uint64(14695981039346656037)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return hex16(h)[8:]
}
