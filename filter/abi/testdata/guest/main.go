//go:build wasip1

// Command guest calls every function of package abi once, so that a host can see
// what arrives, and logs what it got back. It also misbehaves on request.
package main

import (
	"runtime"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"github.com/warmlane/warmlane/filter/abi"
)

func main() {}

func init() { abi.Register(func(uint32) abi.Plugin { return &plugin{} }) }

type plugin struct{ abi.BasePlugin }

func (p *plugin) NewStream(uint32) abi.Stream { return &stream{} }

type stream struct {
	abi.BaseStream
	next *stream
}

// say logs one result under a name.
func say(name, value string, err error) {
	if err != nil {
		value += " error " + err.Error()
	} else if value == "" {
		value = "nothing"
	}
	abi.Log(abi.LogInfo, "  "+name+": "+value)
}

func number[T ~uint32 | ~uint64 | ~int | ~int64](name string, n T, err error) {
	say(name, strconv.FormatInt(int64(n), 10), err)
}

func bytes(name string, b []byte, err error) { say(name, string(b), err) }

// OnTick goes through the whole ABI.
func (p *plugin) OnTick() {
	about()
	headers()
	buffers()
	properties()
	shared()
	metrics()
	calls()
}

func about() {
	level, err := abi.CurrentLogLevel()
	number("CurrentLogLevel", level, err)
	number("Now", abi.Now(), nil)
	number("Monotonic", abi.Monotonic(), nil)
	say("SetTickPeriod", "", abi.SetTickPeriod(250))
	say("SetEffectiveContext", "", abi.SetEffectiveContext(3))
	say("ContinueStream", "", abi.ContinueStream(abi.ResponseStream))
	say("CloseStream", "", abi.CloseStream(abi.RequestStream))
	say("Done", "", abi.Done())
	code, message, err := abi.LastStatus()
	number("LastStatus", code, err)
	bytes("LastStatus", message, err)
}

func headers() {
	value, err := abi.Header(abi.ResponseHeaders, ":status")
	bytes("Header", value, err)
	value, err = abi.AppendHeader([]byte("before "), abi.CallTrailers, "x")
	bytes("AppendHeader", value, err)
	pairs, err := abi.HeaderPairs(abi.RequestHeaders)
	number("HeaderPairs", pairs.Len(), err)
	for name, value := range pairs.All() {
		bytes(string(name), value, nil)
	}
	size, err := abi.HeaderBytes(abi.RequestTrailers)
	number("HeaderBytes", size, err)
	say("SetHeaderPairs", "", abi.SetHeaderPairs(abi.ResponseTrailers, encoded("a", "b")))
	say("SetHeaderPairs", "none", abi.SetHeaderPairs(abi.ResponseTrailers, nil))
	say("AddHeader", "", abi.AddHeader(abi.RequestHeaders, "x-a", []byte("1")))
	say("ReplaceHeader", "", abi.ReplaceHeader(abi.RequestHeaders, "x-a", nil))
	say("RemoveHeader", "", abi.RemoveHeader(abi.RequestHeaders, "x-a"))
	say("SendLocalReply", "", abi.SendLocalReply(429, "full", encoded("retry-after", "1"), []byte("wait"), abi.NoGRPCStatus))
}

func encoded(name, value string) *abi.Encoder {
	e := &abi.Encoder{}
	e.Add(name, value)
	return e
}

func buffers() {
	b, err := abi.Buffer(abi.RequestBody, 5, 100)
	bytes("Buffer", b, err)
	b, err = abi.AppendBuffer([]byte("before "), abi.CallBody, 0, 9)
	bytes("AppendBuffer", b, err)
	size, err := abi.BufferSize(abi.PluginConfiguration)
	number("BufferSize", size, err)
	say("SetBuffer", "", abi.SetBuffer(abi.ResponseBody, 1, 2, []byte("new")))
}

func properties() {
	value, err := abi.Property("upstream\x00address")
	bytes("Property", value, err)
	value, err = abi.AppendProperty([]byte("before "), "plugin_name")
	bytes("AppendProperty", value, err)
	say("SetProperty", "", abi.SetProperty("log", []byte("line")))
}

func shared() {
	value, cas, err := abi.Shared([]byte("key"))
	bytes("Shared", value, err)
	number("Shared", cas, err)
	say("SetShared", "", abi.SetShared([]byte("key"), []byte("value"), 41))
	queue, err := abi.RegisterQueue("q")
	number("RegisterQueue", queue, err)
	queue, err = abi.ResolveQueue("vm", "q")
	number("ResolveQueue", queue, err)
	say("Enqueue", "", abi.Enqueue(6, []byte("item")))
	item, err := abi.Dequeue(6)
	bytes("Dequeue", item, err)
}

func metrics() {
	id, err := abi.DefineMetric(abi.Histogram, "m;k=v")
	number("DefineMetric", id, err)
	say("IncrementMetric", "", abi.IncrementMetric(4, -5))
	say("RecordMetric", "", abi.RecordMetric(4, 1<<40))
	value, err := abi.Metric(4)
	number("Metric", value, err)
}

func calls() {
	result, err := abi.CallForeign("compress", []byte("args"))
	bytes("CallForeign", result, err)
	call, err := abi.HTTPCall("up", encoded(":path", "/"), []byte("body"), encoded("t", ""), 1500)
	number("HTTPCall", call, err)
	call, err = abi.GRPCCall("up", "svc", "Do", encoded("m", "d"), []byte("msg"), 700)
	number("GRPCCall", call, err)
	call, err = abi.GRPCStream("up", "svc", "Watch", nil)
	number("GRPCStream", call, err)
	say("GRPCSend", "", abi.GRPCSend(8, []byte("msg"), true))
	say("GRPCCancel", "", abi.GRPCCancel(8))
	say("GRPCClose", "", abi.GRPCClose(8))
	big := &abi.Encoder{}
	big.AddBytes("x", make([]byte, abi.MaxPairsBytes))
	_, err = abi.HTTPCall("up", big, nil, nil, 0)
	say("HTTPCall", "too large", err)
}

// OnRequestHeaders counts the garbage of many rounds of questions.
func (s *stream) OnRequestHeaders(int, bool) types.Action {
	ask() // brings the buffers to their size
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		ask()
	}
	runtime.ReadMemStats(&after)
	number("garbage", after.Mallocs-before.Mallocs, nil)
	return types.ActionPause
}

func ask() {
	key := [...]byte{'k', 'e', 'y'}
	if _, _, err := abi.Shared(key[:]); err != nil {
		panic(err)
	}
	if err := abi.SetShared(key[:], key[:2], 0); err != nil {
		panic(err)
	}
	_, errHeader := abi.Header(abi.RequestHeaders, ":path")
	_, errBuffer := abi.Buffer(abi.RequestBody, 0, 64)
	_, errProperty := abi.Property("plugin_name")
	var pairs abi.Pairs
	errPairs := abi.ReadHeaders(abi.RequestHeaders, &pairs)
	walked := 0
	for _, _, ok := pairs.Next(); ok; walked++ {
		_, _, ok = pairs.Next()
	}
	if walked == 0 || pairs.Err() != nil {
		panic("no headers to walk")
	}
	if errHeader != nil || errBuffer != nil || errProperty != nil || errPairs != nil {
		panic("a question was not answered")
	}
}

// OnRequestBody fails in the way that its size asks for.
func (s *stream) OnRequestBody(size int, _ bool) types.Action {
	switch size {
	case 1:
		panic("on request")
	case 2:
		s.next.next = s // a nil pointer
	case 3:
		return types.Action(deep(size))
	case 4:
		var none []byte
		none[size] = 1
	}
	return types.ActionPause
}

// deep asks a question from far down the stack, which has to grow for it, and on
// the way back needs everything that lies there to be in its place.
func deep(n int) int {
	if n > 4000 {
		b, err := abi.Property("plugin_name")
		if err != nil || len(b) == 0 {
			return -n
		}
		return 4 - n // the 3,998 ones on the way back make it 1
	}
	var frame [64]byte
	frame[n%64] = 1
	return deep(n+1) + int(frame[n%64])
}

// OnDelete reports what this VM has been through.
func (s *stream) OnDelete() {
	number("Panics", abi.Panics(), nil)
	number("UnknownContexts", abi.UnknownContexts(), nil)
}
