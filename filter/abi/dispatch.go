package abi

import (
	"runtime"
	"strconv"
	"strings"
)

// contexts holds what the host has created in this VM and hands its calls on.
// The exports are one line each; everything they do is here, where ordinary
// tests reach it. What every call needs comes first and fits a cache line.
type contexts struct {
	streams table

	// current is the context the host called, effective the one chosen since
	// with SetEffectiveContext, 0 if none.
	current, effective uint32

	plugins []pluginEntry // very few: one for each configuration of the module
	create  func(id uint32) Plugin

	panics, unknown uint64

	// log and resume reach the host.
	log    func(line string)
	resume func(id uint32, direction StreamType)
}

type pluginEntry struct {
	id     uint32
	plugin Plugin
}

// live is the VM's one set of contexts.
var live contexts

// Register says how plugins are made; id is the root context. Call it from an
// init function: the host asks for plugins as soon as the module is initialised.
func Register(create func(id uint32) Plugin) { live.create = create }

// Panics is the number of panics recovered in this VM.
func Panics() uint64 { return live.panics }

// UnknownContexts is the number of calls for contexts this VM does not know.
func UnknownContexts() uint64 { return live.unknown }

// resumed notes that the stream in work no longer waits.
func (c *contexts) resumed(direction StreamType) {
	if e := c.streams.find(c.inWork()); e != nil && direction <= ResponseStream {
		e.paused[direction] = false
	}
}

func (c *contexts) inWork() uint32 {
	if c.effective != 0 {
		return c.effective
	}
	return c.current
}

// guard is deferred by every call into the filter, but for stream, which saves
// a call and does the same. It must itself be the deferred function, for only
// that may recover.
func (c *contexts) guard() {
	if r := recover(); r != nil {
		c.panicked(r)
	}
}

func (c *contexts) panicked(r any) {
	c.panics++
	current, effective := c.current, c.effective
	c.log("panic in context " + strconv.FormatUint(uint64(current), 10) + ": " + describe(r) + " at " + origin())
	c.letPass(current)
	if effective != current {
		c.letPass(effective)
	}
}

// letPass marks a stream as broken and continues it wherever it waits. The
// callback that panicked continues its own direction by its answer.
func (c *contexts) letPass(id uint32) {
	e := c.streams.find(id)
	if e == nil {
		return
	}
	e.broken = true
	for direction := range e.paused {
		if e.paused[direction] {
			e.paused[direction] = false
			c.resume(id, StreamType(direction))
		}
	}
}

func describe(r any) string {
	switch r := r.(type) {
	case error:
		return r.Error()
	case string:
		return r
	}
	return "value of an unprintable type"
}

// origin names function and line that panicked: the first frame outside the
// runtime below the deferred guard.
func origin() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return f.Function + " line " + strconv.Itoa(f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
