package hostsim

import (
	"encoding/binary"
	"strings"
)

// filterStatePrefix is what Envoy puts before the name of a property that a
// guest sets.
const filterStatePrefix = "wasm."

// Path joins the parts of a property's name as the ABI does, by zero bytes.
func Path(parts ...string) string { return strings.Join(parts, "\x00") }

// property looks a path up: what the test has set, then the stream's and the
// plugin's attributes, then filter state under the first part alone. So a
// property set under a path of several parts cannot be read back.
func (c *wasmContext) property(path string) ([]byte, status) {
	if value, ok := c.vm.host.opts.Properties[path]; ok {
		return []byte(value), statusOK
	}
	if path == "" {
		return nil, statusSerialization
	}
	first, rest, deep := strings.Cut(path, "\x00")
	if c.http != nil {
		if attributes := c.http.attributes(first); attributes != nil {
			return attribute(attributes, rest)
		}
	}
	if value, ok := c.pluginProperty(first); ok && !deep {
		return []byte(value), statusOK
	}
	if c.http != nil && !deep {
		if value, ok := c.http.stream.filterState[filterStatePrefix+first]; ok {
			return []byte(value), statusOK
		}
	}
	return nil, statusNotFound
}

func (c *wasmContext) pluginProperty(name string) (string, bool) {
	o := c.vm.host.opts
	switch name {
	case "plugin_name":
		return o.PluginName, true
	case "plugin_root_id":
		return o.RootID, true
	case "plugin_vm_id":
		return o.VMID, true
	case "connection_id":
		return number(1), c.http != nil
	}
	return "", false
}

// attribute reads one field of a group. A group as a whole cannot be read.
func attribute(group func(field, rest string) (string, bool), path string) ([]byte, status) {
	if path == "" {
		return nil, statusSerialization
	}
	field, rest, _ := strings.Cut(path, "\x00")
	value, ok := group(field, rest)
	if !ok {
		return nil, statusNotFound
	}
	return []byte(value), statusOK
}

// attributes is a group of stream attributes, or nil if there is none of that
// name. Attributes of the request's headers are there only as long as the
// guest holds the headers, or in the log phase.
func (g *guest) attributes(group string) func(field, rest string) (string, bool) {
	switch group {
	case "request":
		return g.requestAttribute
	case "response":
		return g.responseAttribute
	case "connection", "source", "destination", "upstream":
		return func(field, _ string) (string, bool) { return g.stream.address(group + "." + field) }
	}
	return nil
}

// address is an attribute of the peers, all of them invented but for the
// upstream's.
func (s *Stream) address(name string) (string, bool) {
	switch name {
	case "connection.id":
		return number(1), true
	case "connection.mtls":
		return "\x00", true
	case "source.address":
		return "127.0.0.1:50000", true
	case "source.port":
		return number(50000), true
	case "destination.address":
		return "127.0.0.1:10000", true
	case "destination.port":
		return number(10000), true
	case "upstream.address":
		return s.peer, s.peer != ""
	}
	return "", false
}

var headerAttributes = map[string]string{
	"path": ":path", "host": ":authority", "scheme": ":scheme", "method": ":method",
	"referer": "referer", "useragent": "user-agent", "id": "x-request-id",
}

func (g *guest) requestAttribute(field, rest string) (string, bool) {
	s := g.stream
	switch field {
	case "protocol":
		return "HTTP/1.1", true
	case "time":
		return number(uint64(s.host.opts.Start.Add(s.started).UnixNano())), true
	case "size":
		return number(uint64(s.received)), true
	case "total_size":
		return number(uint64(s.received + s.request.headers.byteSize())), true
	}
	h := g.readable(mapRequestHeaders)
	if h == nil {
		return "", false
	}
	path, query, _ := strings.Cut(h.Get(":path"), "?")
	switch field {
	case "headers":
		return joined(h, rest)
	case "url_path":
		return path, true
	case "query":
		return query, true
	}
	name, ok := headerAttributes[field]
	if !ok || !h.Has(name) {
		return "", false
	}
	return h.Get(name), true
}

func (g *guest) responseAttribute(field, rest string) (string, bool) {
	s := g.stream
	switch field {
	case "code":
		return number(uint64(s.code)), s.code != 0
	case "code_details":
		return s.result.Details, s.result.Details != ""
	case "headers":
		return joined(g.readable(mapResponseHeaders), rest)
	case "trailers":
		return joined(g.readable(mapResponseTrailers), rest)
	}
	return "", false
}

// joined is a header as an attribute: all values with commas between, unlike
// the header call, which gives the first.
func joined(h *Header, name string) (string, bool) {
	if h != nil && name == "" {
		return string(encodePairs(h.merged())), true
	}
	if h == nil || !h.Has(name) {
		return "", false
	}
	return strings.Join(h.Values(name), ","), true
}

// number is an integer attribute: 8 bytes, little-endian.
func number(n uint64) string {
	return string(binary.LittleEndian.AppendUint64(nil, n))
}
