package hostsim

// Host calls on what all VMs of a proxy share: data and queues.

var sharedCalls = []hostFunc{
	{name: "proxy_get_shared_data", signature: "iiiii:i", run: callGetShared},
	{name: "proxy_set_shared_data", signature: "iiiii:i", run: callSetShared},
	{name: "proxy_register_shared_queue", signature: "iii:i", run: callRegisterQueue},
	{name: "proxy_resolve_shared_queue", signature: "iiiii:i", run: callResolveQueue},
	{name: "proxy_enqueue_shared_queue", signature: "iii:i", run: callEnqueue},
	{name: "proxy_dequeue_shared_queue", signature: "iii:i", run: callDequeue},
}

func callGetShared(v *vm, a []uint64) uint32 {
	key, ok := v.readString(a[0], a[1])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	v.countShared(1, 0)
	value, cas, ok := v.host.shared.Get(key)
	if !ok {
		return uint32(statusNotFound)
	}
	if st := v.give(value, a[2], a[3]); st != statusOK {
		return uint32(st)
	}
	return uint32(written(v.put32(a[4], cas)))
}

func callSetShared(v *vm, a []uint64) uint32 {
	key, ok := v.readString(a[0], a[1])
	value, ok2 := v.readString(a[2], a[3])
	if !ok || !ok2 {
		return uint32(statusInvalidMemory)
	}
	v.countShared(0, 1)
	return uint32(v.host.shared.set(key, value, uint32(a[4])))
}

// countShared books an access to the store and to the stream it was made for.
func (v *vm) countShared(gets, sets int) {
	v.host.shared.count(gets, sets)
	if c := v.context(); c.http != nil {
		c.http.stream.sharedGets += gets
		c.http.stream.sharedSets += sets
	}
}

func callRegisterQueue(v *vm, a []uint64) uint32 {
	name, ok := v.readString(a[0], a[1])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	id := v.host.queues.register(v.host.opts.VMID, name, v.worker, v.context().root.id)
	return uint32(written(v.put32(a[2], id)))
}

func callResolveQueue(v *vm, a []uint64) uint32 {
	vmID, ok := v.readString(a[0], a[1])
	name, ok2 := v.readString(a[2], a[3])
	if !ok || !ok2 {
		return uint32(statusInvalidMemory)
	}
	if vmID == "" {
		vmID = v.host.opts.VMID
	}
	id, ok := v.host.queues.byName[queueName(vmID, name)]
	if !ok {
		return uint32(statusNotFound)
	}
	return uint32(written(v.put32(a[4], id)))
}

func callEnqueue(v *vm, a []uint64) uint32 {
	item, ok := v.readString(a[1], a[2])
	if !ok {
		return uint32(statusInvalidMemory)
	}
	return uint32(v.host.enqueue(uint32(a[0]), item))
}

func callDequeue(v *vm, a []uint64) uint32 {
	item, st := v.host.queues.dequeue(uint32(a[0]))
	if st != statusOK {
		return uint32(st)
	}
	return uint32(v.give([]byte(item), a[1], a[2]))
}
