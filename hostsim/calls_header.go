package hostsim

// Host calls on header maps.

var headerCalls = []hostFunc{
	{name: "proxy_get_header_map_value", signature: "iiiii:i", run: callGetHeader},
	{name: "proxy_add_header_map_value", signature: "iiiii:i", run: callAddHeader},
	{name: "proxy_replace_header_map_value", signature: "iiiii:i", run: callReplaceHeader},
	{name: "proxy_remove_header_map_value", signature: "iii:i", run: callRemoveHeader},
	{name: "proxy_get_header_map_pairs", signature: "iii:i", run: callGetPairs},
	{name: "proxy_set_header_map_pairs", signature: "iii:i", run: callSetPairs},
	{name: "proxy_get_header_map_size", signature: "ii:i", run: callHeaderSize},
}

// callGetHeader gives the first value only, however often the name occurs.
func callGetHeader(v *vm, a []uint64) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	key, ok := v.readString(a[1], a[2])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	c := v.context()
	m := c.readable(a[0])
	if m == nil {
		return uint32(c.noMap())
	}
	i := m.index(key)
	if i < 0 {
		return uint32(statusNotFound)
	}
	return uint32(v.give([]byte((*m)[i][1]), a[3], a[4]))
}

func callAddHeader(v *vm, a []uint64) uint32 {
	return v.changeHeader(a, func(m *Header, key, value string) { m.add(key, value) })
}

func callReplaceHeader(v *vm, a []uint64) uint32 {
	return v.changeHeader(a, func(m *Header, key, value string) { m.set(key, value) })
}

func (v *vm) changeHeader(a []uint64, change func(m *Header, key, value string)) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	key, ok := v.readString(a[1], a[2])
	value, ok2 := v.readString(a[3], a[4])
	if !ok || !ok2 {
		return uint32(statusInvalidMemory)
	}
	m := v.context().writable(a[0])
	if m == nil {
		return uint32(statusBadArgument)
	}
	change(m, key, value)
	return uint32(statusOK)
}

func callRemoveHeader(v *vm, a []uint64) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	key, ok := v.readString(a[1], a[2])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	m := v.context().writable(a[0])
	if m == nil {
		return uint32(statusBadArgument)
	}
	m.remove(key)
	return uint32(statusOK)
}

// callGetPairs answers OK and nothing for a map that is not there.
func callGetPairs(v *vm, a []uint64) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	var b []byte
	if m := v.context().readable(a[0]); m != nil && len(*m) > 0 {
		b = encodePairs(*m)
	}
	return uint32(v.give(b, a[1], a[2]))
}

func callSetPairs(v *vm, a []uint64) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	b, ok := v.read(a[1], a[2])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	m := v.context().writable(a[0])
	if m == nil {
		return uint32(statusBadArgument)
	}
	*m = *decodePairs(b).lowered()
	return uint32(statusOK)
}

func callHeaderSize(v *vm, a []uint64) uint32 {
	if a[0] > maxMapType {
		return uint32(statusBadArgument)
	}
	m := v.context().writable(a[0])
	if m == nil {
		return uint32(statusBadArgument)
	}
	return uint32(written(v.put32(a[1], uint32(m.byteSize()))))
}

// noMap is the status for reading a map that is not there now.
func (c *wasmContext) noMap() status {
	if c.http != nil && c.http.logging {
		return statusNotFound
	}
	return statusBadArgument
}

// readable is the map a guest may look into now, or nil.
func (c *wasmContext) readable(kind uint64) *Header {
	switch {
	case kind == mapCallHeaders && c.root.reply != nil:
		return c.root.reply.headers
	case kind == mapCallTrailers && c.root.reply != nil:
		return c.root.reply.trailers
	case c.http != nil:
		return c.http.readable(kind)
	}
	return nil
}

// writable is the map a guest may change now, or nil.
func (c *wasmContext) writable(kind uint64) *Header {
	if c.http == nil {
		return nil
	}
	return c.http.writable(kind)
}
