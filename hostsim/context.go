package hostsim

import "github.com/tetratelabs/wazero/api"

// wasmContext is the host's side of a context id: the VM itself (id 0), a root
// context or a stream context.
type wasmContext struct {
	vm   *vm
	id   uint32
	root *wasmContext // itself in a root context
	http *guest       // the stream; nil in a root context

	// Root contexts only.
	config      string // what on_configure reads
	configuring bool   // the plugin configuration can be read only then
	tick        *event
	calls       map[uint32]*callout
	reply       *callReply // the callout response being delivered
	statusCode  uint32
	statusText  string
	streams     int
	retired     bool
}

func (v *vm) newContext(root *wasmContext) *wasmContext {
	c := &wasmContext{vm: v, id: v.nextID, root: root}
	v.nextID++
	if root == nil {
		c.root = c
		c.calls = map[uint32]*callout{}
	}
	v.contexts[c.id] = c
	return c
}

func (c *wasmContext) parentID() uint64 {
	if c.root == c {
		return 0
	}
	return uint64(c.root.id)
}

// callbacks are the guest's exports; what it does not export is nil.
type callbacks struct {
	onContextCreate, onVMStart, onConfigure, onTick, onQueueReady api.Function
	onDone, onLog, onDelete                                       api.Function
	onRequestHeaders, onRequestBody, onRequestTrailers            api.Function
	onResponseHeaders, onResponseBody, onResponseTrailers         api.Function
	onHTTPCallResponse                                            api.Function
}

// callbackSignatures are the callbacks the host looks up, with the type it
// insists on.
var callbackSignatures = map[string]string{
	"_initialize":                 ":",
	"malloc":                      "i:i",
	"proxy_on_memory_allocate":    "i:i",
	"proxy_on_context_create":     "ii:",
	"proxy_on_vm_start":           "ii:i",
	"proxy_on_configure":          "ii:i",
	"proxy_on_tick":               "i:",
	"proxy_on_queue_ready":        "ii:",
	"proxy_on_done":               "i:i",
	"proxy_on_log":                "i:",
	"proxy_on_delete":             "i:",
	"proxy_on_request_headers":    "iii:i",
	"proxy_on_request_body":       "iii:i",
	"proxy_on_request_trailers":   "ii:i",
	"proxy_on_response_headers":   "iii:i",
	"proxy_on_response_body":      "iii:i",
	"proxy_on_response_trailers":  "ii:i",
	"proxy_on_http_call_response": "iiiii:",
}

func (v *vm) bind() {
	get := v.mod.ExportedFunction
	if v.malloc = get("malloc"); v.malloc == nil {
		v.malloc = get("proxy_on_memory_allocate")
	}
	v.fn = callbacks{
		onContextCreate:    get("proxy_on_context_create"),
		onVMStart:          get("proxy_on_vm_start"),
		onConfigure:        get("proxy_on_configure"),
		onTick:             get("proxy_on_tick"),
		onQueueReady:       get("proxy_on_queue_ready"),
		onDone:             get("proxy_on_done"),
		onLog:              get("proxy_on_log"),
		onDelete:           get("proxy_on_delete"),
		onRequestHeaders:   get("proxy_on_request_headers"),
		onRequestBody:      get("proxy_on_request_body"),
		onRequestTrailers:  get("proxy_on_request_trailers"),
		onResponseHeaders:  get("proxy_on_response_headers"),
		onResponseBody:     get("proxy_on_response_body"),
		onResponseTrailers: get("proxy_on_response_trailers"),
		onHTTPCallResponse: get("proxy_on_http_call_response"),
	}
}
