package wire

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// adapters are the LoRA adapters loaded at run time.
type adapters struct {
	mu     sync.Mutex
	list   []adapter
	lastID int // numbers are used up by failed loads too
}

// maxAdapters bounds what a forgetful client can load.
const maxAdapters = 1000

type adapter struct {
	name, path string
	id         int
	loaded     time.Time
}

func (a *adapters) find(name string) (adapter, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.list, func(x adapter) bool { return x.name == name })
	if i < 0 {
		return adapter{}, false
	}
	return a.list[i], true
}

func (a *adapters) all() []adapter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// nextID uses up a number.
func (a *adapters) nextID() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastID++
	return a.lastID
}

// put adds an adapter, or replaces the one of its name.
func (a *adapters) put(n adapter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(x adapter) bool { return x.name == n.name })
	if len(a.list) >= maxAdapters {
		return false
	}
	a.list = append(a.list, n)
	return true
}

func (a *adapters) remove(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.list)
	a.list = slices.DeleteFunc(a.list, func(x adapter) bool { return x.name == name })
	return len(a.list) < before
}

// resolve finds what a model name stands for: a base model, an adapter, or, if
// empty, the first base model.
func (s *Server) resolve(model string) (engine.Space, string, *apiError) {
	if model == "" {
		return engine.Space{}, s.cfg.Models[0], nil
	}
	if slices.Contains(s.cfg.Models, model) {
		return engine.Space{}, model, nil
	}
	if a, ok := s.adapters.find(model); ok {
		return engine.Space{Adapter: a.name, AdapterPath: a.path, AdapterID: a.id}, model, nil
	}
	return engine.Space{}, "", unknownModel(model, s.cfg.Models)
}

// adapterCall is the body of the two adapter paths.
type adapterCall struct {
	name, path string
	inPlace    bool
}

// decodeAdapter reads it; the path is required to load only.
func decodeAdapter(root gjson.Result, load bool) (c adapterCall, refusal *apiError) {
	d := &decoder{call: call{root: root}}
	var name, path gjson.Result
	root.ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "lora_name":
			name = v
		case "lora_path":
			path = v
		case "load_inplace":
			d.bool(&c.inPlace, "load_inplace", v)
		}
		return true
	})
	d.required(&c.name, "lora_name", name)
	if load {
		d.required(&c.path, "lora_path", path)
	}
	if len(d.problems) > 0 {
		return c, invalid(d.problems)
	}
	return c, nil
}

func (d *decoder) required(to *string, loc string, v gjson.Result) {
	if v.Type == gjson.Null {
		d.missing(loc)
		return
	}
	d.string(to, loc, v)
}

func (x *exchange) adapterCall(load bool) (adapterCall, bool) {
	if !x.read() {
		return adapterCall{}, false
	}
	root, refusal := parse(x.body)
	var c adapterCall
	if refusal == nil {
		c, refusal = decodeAdapter(root, load)
	}
	if refusal != nil {
		x.refuse(refusal)
		return c, false
	}
	x.entry.Model = c.name
	return c, true
}

// loadAdapter adds an adapter. There are no weights to find, so every path is
// good but those below /nonexistent, which stand for a missing one.
func (s *Server) loadAdapter(x *exchange) {
	c, ok := x.adapterCall(true)
	if !ok {
		return
	}
	if _, loaded := s.adapters.find(c.name); loaded && !c.inPlace {
		x.refuse(&apiError{http.StatusBadRequest, "InvalidUserInput", "The lora adapter '" + c.name +
			"' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.", ""})
		return
	}
	id := s.adapters.nextID()
	if strings.HasPrefix(c.path, "/nonexistent") {
		x.refuse(&apiError{http.StatusNotFound, "NotFoundError", "Loading lora " + c.name + " failed: No adapter found for " + c.path, ""})
		return
	}
	if !x.pause(s.cfg.LoRALoad) {
		return
	}
	if !s.adapters.put(adapter{c.name, c.path, id, time.Now()}) {
		x.refuse(badRequest("too many adapters are loaded", "lora_name"))
		return
	}
	x.send(http.StatusOK, "", []byte("Success: LoRA adapter '"+c.name+"' added successfully."))
}

// pause waits for a time of the engine; false: the client left meanwhile.
func (x *exchange) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(float64(d) / x.s.cfg.Runner.Speed()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
		x.entry.Outcome = OutcomeCancelled
	case <-x.s.closing.Done():
		x.entry.Outcome = OutcomeFault
	}
	return false
}

// unloadAdapter forgets an adapter. Its blocks stay in the cache until they are evicted.
func (s *Server) unloadAdapter(x *exchange) {
	c, ok := x.adapterCall(false)
	if !ok {
		return
	}
	if !s.adapters.remove(c.name) {
		x.refuse(&apiError{http.StatusNotFound, "NotFoundError", "The lora adapter '" + c.name + "' cannot be found.", ""})
		return
	}
	x.send(http.StatusOK, "", []byte("Success: LoRA adapter '"+c.name+"' removed successfully."))
}
