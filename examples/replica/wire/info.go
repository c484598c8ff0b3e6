package wire

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

func (s *Server) health(x *exchange) {
	x.quiet = true
	status := http.StatusOK
	if s.cfg.Faults.Get().Unhealthy {
		status = http.StatusServiceUnavailable
	}
	x.send(status, "", nil)
}

func (s *Server) version(x *exchange) {
	x.json(http.StatusOK, append(appendJSON([]byte(`{"version":`), s.cfg.Version), '}'))
}

// load is the number of generating requests under way, as with vLLM's
// --enable-server-load-tracking.
func (s *Server) load(x *exchange) {
	x.quiet = true
	x.json(http.StatusOK, append(strconv.AppendInt([]byte(`{"server_load":`), s.inFlight.Load(), 10), '}'))
}

// loadNow is what the load reports say.
func (s *Server) loadNow() (waiting int, usage float64) {
	s.cfg.Runner.Do(func(e *engine.Engine, _ time.Duration) { _, waiting, usage = e.Load() })
	return waiting, usage
}

// models lists base models, then adapters.
func (s *Server) models(x *exchange) {
	b := []byte(`{"object":"list","data":[`)
	for i, name := range s.cfg.Models {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendModel(b, name, "/srv/vllm-models/"+name, "", s.cfg.Engine.MaxModelLen, s.started)
	}
	for _, a := range s.adapters.all() {
		b = appendModel(append(b, ','), a.name, a.path, s.cfg.Models[0], 0, a.loaded)
	}
	x.json(http.StatusOK, append(b, "]}"...))
}

// appendModel writes one model; an adapter has a parent and no length.
func appendModel(b []byte, name, root, parent string, length int, created time.Time) []byte {
	at := strconv.FormatInt(created.Unix(), 10)
	b = appendJSON(append(b, `{"id":`...), name)
	b = append(b, `,"object":"model","created":`+at+`,"owned_by":"vllm","root":`...)
	b = append(appendJSON(b, root), `,"parent":`...)
	if parent == "" {
		b = append(b, `null,"max_model_len":`+strconv.Itoa(length)...)
	} else {
		b = append(appendJSON(b, parent), `,"max_model_len":null`...)
	}
	return append(b, `,"permission":[{"id":"modelperm-`+newID()+`","object":"model_permission","created":`+at+
		`,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,`+
		`"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`...)
}

// source is how /kv_event_sources describes one publisher.
type source struct {
	Enable    bool    `json:"enable_kv_cache_events"`
	Publisher string  `json:"publisher"`
	Endpoint  string  `json:"endpoint"`
	Replay    *string `json:"replay_endpoint"`
	Kept      int     `json:"buffer_steps"`
	HighWater int     `json:"hwm"`
	Queue     int     `json:"max_queue_size"`
	Topic     string  `json:"topic"`
}

// eventSources tells where the events are. vLLM binds "*" only, and says so; a
// router takes the host from the replica's address. So do we, whatever is bound.
func (s *Server) eventSources(x *exchange) {
	o := s.cfg.Events.Options()
	src := source{true, "zmq", anyHost(o.Endpoint), nil, o.KeptSteps, o.HighWater, 100000, o.Topic}
	if o.Replay != "" {
		replay := anyHost(o.Replay)
		src.Replay = &replay
	}
	body, err := json.Marshal(map[string]source{"0": src})
	if err != nil {
		x.refuse(engineDead)
		return
	}
	x.json(http.StatusOK, body)
}

func anyHost(endpoint string) string {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(endpoint, "tcp://"))
	if err != nil {
		return endpoint
	}
	return "tcp://*:" + port
}

// resetPrefixCache drops the cache, unless requests hold blocks.
func (s *Server) resetPrefixCache(x *exchange) {
	if !x.read() {
		return
	}
	var done bool
	s.cfg.Runner.Do(func(e *engine.Engine, now time.Duration) { done = e.Reset(now) })
	if !done {
		x.json(http.StatusConflict, []byte(`{"detail":"Blocks are in use"}`))
		return
	}
	x.send(http.StatusOK, "", nil)
}
