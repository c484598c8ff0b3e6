package hostsim

// Host calls on buffers: bodies, callout replies, configurations.

var bufferCalls = []hostFunc{
	{name: "proxy_get_buffer_bytes", signature: "iiiii:i", run: callGetBuffer},
	{name: "proxy_get_buffer_status", signature: "iii:i", run: callBufferStatus},
	{name: "proxy_set_buffer_bytes", signature: "iiiii:i", run: callSetBuffer},
}

// guestBuffer is a buffer as it is now. Only bodies can be edited.
type guestBuffer struct {
	bytes []byte
	live  *body
}

// buffer returns what kind means now; false means there is no such buffer. A
// body that is not at hand is an empty buffer.
func (c *wasmContext) buffer(kind uint64) (guestBuffer, bool) {
	switch kind {
	case bufferRequestBody, bufferResponseBody:
		if c.http == nil {
			return guestBuffer{}, true
		}
		d := c.http.bodyOf(kind)
		return guestBuffer{bytes: d.bytes(), live: d}, true
	case bufferVMConfig:
		return guestBuffer{bytes: []byte(c.vm.host.opts.VMConfig)}, true
	case bufferPluginConfig:
		return guestBuffer{bytes: []byte(c.root.config)}, c.root.configuring
	case bufferCallBody:
		if c.root.reply == nil {
			return guestBuffer{}, false
		}
		return guestBuffer{bytes: c.root.reply.body}, true
	}
	return guestBuffer{}, kind == bufferCallData
}

func callGetBuffer(v *vm, a []uint64) uint32 {
	if a[0] > maxBufferType {
		return uint32(statusBadArgument)
	}
	b, ok := v.context().buffer(a[0])
	if !ok {
		return uint32(statusNotFound)
	}
	start, end := min(a[1], uint64(len(b.bytes))), min(a[1]+a[2], uint64(len(b.bytes)))
	return uint32(v.give(b.bytes[start:end], a[3], a[4]))
}

func callBufferStatus(v *vm, a []uint64) uint32 {
	if a[0] > maxBufferType {
		return uint32(statusBadArgument)
	}
	b, ok := v.context().buffer(a[0])
	if !ok {
		return uint32(statusNotFound)
	}
	return uint32(written(v.put32(a[1], uint32(len(b.bytes))) && v.put32(a[2], 0)))
}

func callSetBuffer(v *vm, a []uint64) uint32 {
	if a[0] > maxBufferType {
		return uint32(statusBadArgument)
	}
	b, ok := v.context().buffer(a[0])
	if !ok {
		return uint32(statusNotFound)
	}
	value, ok := v.read(a[3], a[4])
	switch {
	case !ok:
		return uint32(statusInvalidMemory)
	case b.live == nil:
		return uint32(statusBadArgument)
	}
	return uint32(b.live.edit(uint32(a[1]), uint32(a[2]), value))
}
