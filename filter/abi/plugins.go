package abi

// plugin finds a root context for a call; nil counts as unknown.
func (c *contexts) plugin(id uint32) Plugin {
	c.current, c.effective = id, 0
	for i := range c.plugins {
		if c.plugins[i].id == id {
			return c.plugins[i].plugin
		}
	}
	c.unknown++
	return nil
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// contextCreate makes a plugin (parent 0) or a stream of the plugin parent.
func (c *contexts) contextCreate(id, parent uint32) {
	if parent == 0 {
		c.createPlugin(id)
		return
	}
	p := c.plugin(parent)
	if p == nil {
		return
	}
	c.current = id
	e := c.streams.add(id) // known from here on, whatever NewStream does
	if e == nil {
		return
	}
	defer c.guard()
	e.stream = p.NewStream(id)
}

func (c *contexts) createPlugin(id uint32) {
	c.current, c.effective = id, 0
	if c.create == nil {
		c.log("no plugin registered: call abi.Register from an init function")
		return
	}
	defer c.guard()
	if p := c.create(id); p != nil {
		c.plugins = append(c.plugins, pluginEntry{id, p})
	}
}

// notStream takes those of a stream's callbacks that plugins have too, and counts
// the rest as unknown.
func (c *contexts) notStream(k event, id uint32) (answer uint32) {
	p := c.plugin(id)
	if p == nil {
		return flag(k == done)
	}
	answer = flag(k == done) // also if it panics: the host may then delete it
	defer c.guard()
	switch k {
	case done:
		answer = flag(p.OnDone())
	case deleted:
		c.removePlugin(id)
		p.OnDelete()
	}
	return answer
}

func (c *contexts) removePlugin(id uint32) {
	for i := range c.plugins {
		if c.plugins[i].id == id {
			c.plugins = append(c.plugins[:i], c.plugins[i+1:]...)
			return
		}
	}
}

// vmStart is told the root context by Envoy. By the specification the number
// means nothing, and the Go SDK's proxytest says 0: whose start that is nobody
// knows, and nobody has anything against it.
func (c *contexts) vmStart(id, size uint32) (ok uint32) {
	if id == 0 {
		return 1
	}
	defer c.guard()
	if p := c.plugin(id); p != nil {
		return flag(p.OnVMStart(int(size)))
	}
	return 0
}

func (c *contexts) configure(id, size uint32) (ok uint32) {
	defer c.guard()
	if p := c.plugin(id); p != nil {
		return flag(p.OnConfigure(int(size)))
	}
	return 0
}

func (c *contexts) tick(id uint32) {
	defer c.guard()
	if p := c.plugin(id); p != nil {
		p.OnTick()
	}
}

func (c *contexts) httpCallResponse(id, call, headers, size, trailers uint32) {
	defer c.guard()
	if p := c.plugin(id); p != nil {
		p.OnHTTPCallResponse(call, int(headers), int(size), int(trailers))
	}
}

func (c *contexts) queueReady(id, queue uint32) {
	defer c.guard()
	if p := c.plugin(id); p != nil {
		p.OnQueueReady(queue)
	}
}

func (c *contexts) foreignFunction(id, function, size uint32) {
	defer c.guard()
	if p := c.plugin(id); p != nil {
		p.OnForeignFunction(function, int(size))
	}
}

// grpc finds a plugin that has the gRPC callbacks; others ignore them.
func (c *contexts) grpc(id uint32) GRPCPlugin {
	p, _ := c.plugin(id).(GRPCPlugin)
	return p
}

func (c *contexts) grpcInitialMetadata(id, call, elements uint32) {
	defer c.guard()
	if p := c.grpc(id); p != nil {
		p.OnGRPCInitialMetadata(call, int(elements))
	}
}

func (c *contexts) grpcMessage(id, call, size uint32) {
	defer c.guard()
	if p := c.grpc(id); p != nil {
		p.OnGRPCMessage(call, int(size))
	}
}

func (c *contexts) grpcTrailingMetadata(id, call, elements uint32) {
	defer c.guard()
	if p := c.grpc(id); p != nil {
		p.OnGRPCTrailingMetadata(call, int(elements))
	}
}

func (c *contexts) grpcClose(id, call, status uint32) {
	defer c.guard()
	if p := c.grpc(id); p != nil {
		p.OnGRPCClose(call, status)
	}
}
