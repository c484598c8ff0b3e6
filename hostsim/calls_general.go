package hostsim

// Host calls about the VM: log, time, ticks, contexts, properties, foreign
// functions.

var generalCalls = []hostFunc{
	{name: "proxy_log", signature: "iii:i", run: callLog},
	{name: "proxy_get_log_level", signature: "i:i", run: callGetLogLevel},
	{name: "proxy_get_current_time_nanoseconds", signature: "i:i", run: callTime},
	{name: "proxy_set_tick_period_milliseconds", signature: "i:i", run: callSetTickPeriod},
	{name: "proxy_set_effective_context", signature: "i:i", run: callSetEffectiveContext},
	{name: "proxy_done", signature: ":i", run: callDone},
	{name: "proxy_get_status", signature: "iii:i", run: callGetStatus},
	{name: "proxy_get_property", signature: "iiii:i", run: callGetProperty},
	{name: "proxy_set_property", signature: "iiii:i", run: callSetProperty},
	{name: "proxy_call_foreign_function", signature: "iiiiii:i", run: callForeign},
	{name: "pthread_equal", signature: "ii:i", run: callPthreadEqual},
	{name: "emscripten_notify_memory_growth", signature: "i:", run: func(*vm, []uint64) uint32 { return 0 }},
}

func callLog(v *vm, a []uint64) uint32 {
	if a[0] > maxLogLevel {
		return uint32(statusBadArgument)
	}
	message, ok := v.readString(a[1], a[2])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	v.log(Level(a[0]), message)
	return uint32(statusOK)
}

func callGetLogLevel(v *vm, a []uint64) uint32 {
	return uint32(written(v.put32(a[0], uint32(v.host.opts.LogLevel))))
}

func callTime(v *vm, a []uint64) uint32 {
	return uint32(written(v.put64(a[0], uint64(v.host.clock.wall().UnixNano()))))
}

func callSetTickPeriod(v *vm, a []uint64) uint32 {
	v.context().root.setTick(uint32(a[0]))
	return uint32(statusOK)
}

// callSetEffectiveContext refuses an id that is gone; later calls of the same
// callback then still act on the context before.
func callSetEffectiveContext(v *vm, a []uint64) uint32 {
	id := uint32(a[0])
	if _, ok := v.contexts[id]; !ok && id != 0 {
		return uint32(statusBadArgument)
	}
	v.effective = id
	return uint32(statusOK)
}

// callDone ends a root context whose on_done asked to wait.
func callDone(v *vm, _ []uint64) uint32 {
	c := v.context().root
	if !c.retired {
		return uint32(statusNotFound)
	}
	c.retired = false
	v.after = append(v.after, func() { c.remove() })
	return uint32(statusOK)
}

func callGetStatus(v *vm, a []uint64) uint32 {
	c := v.context().root
	if !v.put32(a[0], c.statusCode) {
		return uint32(statusInvalidMemory)
	}
	return uint32(v.give([]byte(c.statusText), a[1], a[2]))
}

func callGetProperty(v *vm, a []uint64) uint32 {
	path, ok := v.readString(a[0], a[1])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	value, st := v.context().property(path)
	if st != statusOK {
		return uint32(st)
	}
	return uint32(v.give(value, a[2], a[3]))
}

func callSetProperty(v *vm, a []uint64) uint32 {
	path, ok := v.readString(a[0], a[1])
	value, ok2 := v.readString(a[2], a[3])
	if !ok || !ok2 {
		return uint32(statusInvalidMemory)
	}
	c := v.context()
	if c.http == nil {
		return uint32(statusNotFound)
	}
	c.http.stream.filterState[filterStatePrefix+path] = value
	return uint32(statusOK)
}

// callForeign runs a function the test has registered. Of Envoy's own only
// clear_route_cache exists, which has nothing to clear here.
func callForeign(v *vm, a []uint64) uint32 {
	name, ok := v.readString(a[0], a[1])
	arguments, ok2 := v.readString(a[2], a[3])
	if !ok || !ok2 {
		return uint32(statusInvalidMemory)
	}
	var result []byte
	f, known := v.host.opts.Foreign[name]
	switch {
	case known:
		var err error
		if result, err = f([]byte(arguments)); err != nil {
			return uint32(statusBadArgument)
		}
	case name != "clear_route_cache":
		return uint32(statusNotFound)
	}
	return uint32(v.giveIfWanted(result, a[4], a[5]))
}

// giveIfWanted is give for results the guest may decline by null pointers.
func (v *vm) giveIfWanted(b []byte, ptrOut, sizeOut uint64) status {
	if ptrOut != 0 && sizeOut != 0 {
		return v.give(b, ptrOut, sizeOut)
	}
	if sizeOut != 0 {
		return written(v.put32(sizeOut, uint32(len(b))))
	}
	return statusOK
}

func callPthreadEqual(_ *vm, a []uint64) uint32 {
	if uint32(a[0]) == uint32(a[1]) {
		return 1
	}
	return 0
}

// written is the status of a write to guest memory.
func written(ok bool) status {
	if !ok {
		return statusInvalidMemory
	}
	return statusOK
}
