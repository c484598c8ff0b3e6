package hostsim

import (
	"slices"
	"strings"
)

// Header is a header or trailer map: name and value of each field, in order.
// Names are lower case once a Header has passed through the host; the
// pseudo-headers (":path", ":status", ...) are ordinary fields.
type Header [][2]string

// Get returns the first value of name, or "".
func (h Header) Get(name string) string {
	if i := h.index(name); i >= 0 {
		return h[i][1]
	}
	return ""
}

// Has says whether name occurs.
func (h Header) Has(name string) bool { return h.index(name) >= 0 }

// Values returns every value of name, in order.
func (h Header) Values(name string) []string {
	var out []string
	for _, f := range h {
		if strings.EqualFold(f[0], name) {
			out = append(out, f[1])
		}
	}
	return out
}

// Clone returns a copy that shares nothing with h.
func (h Header) Clone() Header { return slices.Clone(h) }

func (h Header) index(name string) int {
	return slices.IndexFunc(h, func(f [2]string) bool { return strings.EqualFold(f[0], name) })
}

// lowered returns a copy with lower-case names, as Envoy keeps them.
func (h Header) lowered() *Header {
	out := make(Header, 0, len(h))
	for _, f := range h {
		out.add(f[0], f[1])
	}
	return &out
}

// add appends a field. Fields that Envoy keeps in a slot of their own exist
// only once, so a second value is joined to the first by a comma.
func (h *Header) add(name, value string) {
	name = strings.ToLower(name)
	if i := h.index(name); i >= 0 && inlineHeaders[name] {
		(*h)[i][1] += "," + value
		return
	}
	*h = append(*h, [2]string{name, value})
}

// set replaces every value of name by one, in the place of the first.
func (h *Header) set(name, value string) {
	i := h.index(name)
	if i < 0 {
		h.add(name, value)
		return
	}
	(*h)[i][1] = value
	rest := slices.DeleteFunc((*h)[i+1:], func(f [2]string) bool { return strings.EqualFold(f[0], name) })
	*h = (*h)[:i+1+len(rest)]
}

func (h *Header) remove(name string) {
	*h = slices.DeleteFunc(*h, func(f [2]string) bool { return strings.EqualFold(f[0], name) })
}

// merged lists each name once, with all its values.
func (h Header) merged() Header {
	var out Header
	for _, f := range h {
		if !out.Has(f[0]) {
			out = append(out, [2]string{f[0], strings.Join(h.Values(f[0]), ",")})
		}
	}
	return out
}

// byteSize is what proxy_get_header_map_size reports: names and values.
func (h Header) byteSize() int {
	n := 0
	for _, f := range h {
		n += len(f[0]) + len(f[1])
	}
	return n
}

// inlineHeaders are the fields Envoy stores once per map. Only those a filter
// is likely to touch are listed.
var inlineHeaders = map[string]bool{
	":authority": true, ":method": true, ":path": true, ":scheme": true, ":status": true,
	"accept": true, "accept-encoding": true, "authorization": true, "cache-control": true,
	"content-length": true, "content-type": true, "user-agent": true, "via": true,
	"x-forwarded-for": true, "x-request-id": true,
}
