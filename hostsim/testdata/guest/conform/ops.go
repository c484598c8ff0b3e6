package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
)

var maps = map[string]abi.MapType{
	"req": abi.RequestHeaders, "reqt": abi.RequestTrailers,
	"resp": abi.ResponseHeaders, "respt": abi.ResponseTrailers,
	"call": abi.CallHeaders, "callt": abi.CallTrailers,
}

var buffers = map[string]abi.BufferType{
	"req": abi.RequestBody, "resp": abi.ResponseBody, "call": abi.CallBody, "config": abi.PluginConfiguration,
}

var streams = map[string]abi.StreamType{"req": abi.RequestStream, "resp": abi.ResponseStream}

// do runs one operation and returns what is to be noted of it.
func (s *stream) do(op string, w []string) string {
	switch op {
	case "get":
		value, err := abi.Header(maps[w[0]], w[1])
		return " " + w[1] + "=" + printable(value) + mark(err)
	case "add":
		return mark(abi.AddHeader(maps[w[0]], w[1], []byte(w[2])))
	case "set":
		return mark(abi.ReplaceHeader(maps[w[0]], w[1], []byte(w[2])))
	case "del":
		return mark(abi.RemoveHeader(maps[w[0]], w[1]))
	case "all":
		return all(maps[w[0]], w[1])
	case "size":
		_, err := abi.HeaderBytes(maps[w[0]])
		return mark(err)
	case "only":
		var e abi.Encoder
		e.Add(w[1], w[2])
		return mark(abi.SetHeaderPairs(maps[w[0]], &e))
	case "body":
		value, err := abi.Buffer(buffers[w[0]], 0, 1<<26)
		return " " + summary(value) + mark(err)
	case "put":
		return mark(abi.SetBuffer(buffers[w[0]], integer(w[1]), integer(w[2]), []byte(w[3])))
	}
	return s.steer(op, w)
}

// steer runs the operations that act on the stream or the plugin.
func (s *stream) steer(op string, w []string) string {
	switch op {
	case "cont":
		return mark(abi.ContinueStream(streams[w[0]]))
	case "close":
		return mark(abi.CloseStream(streams[w[0]]))
	case "reply":
		var e abi.Encoder
		for i := 2; i+1 < len(w); i += 2 {
			e.Add(w[i], w[i+1])
		}
		return mark(abi.SendLocalReply(uint32(integer(w[0])), "from guest", &e, []byte(w[1]), abi.NoGRPCStatus))
	case "call":
		return s.call(w[0], uint32(integer(w[1])), w[2])
	case "tick":
		s.plugin.ticking = append(s.plugin.ticking, s)
		return mark(abi.SetTickPeriod(uint32(integer(w[0]))))
	case "effective":
		return mark(abi.SetEffectiveContext(s.context(w[0])))
	case "nap":
		time.Sleep(1) // the runtime polls to wait
		return ""
	case "trap":
		select {} // a deadlock: the runtime's fatal error cannot be recovered
	}
	return s.share(op, w)
}

// context turns "root" and "self" into ids.
func (s *stream) context(name string) uint32 {
	switch name {
	case "root":
		return s.plugin.id
	case "self":
		return s.id
	}
	return uint32(integer(name))
}

func (s *stream) call(cluster string, timeout uint32, path string) string {
	var e abi.Encoder
	e.Add(":method", "GET")
	if path != "" {
		e.Add(":path", path)
	}
	e.Add(":authority", "side")
	call, err := abi.HTTPCall(cluster, &e, nil, nil, timeout)
	if err == nil {
		s.plugin.calls[call] = s
	}
	return mark(err)
}

// share runs the operations on what all VMs share, and properties.
func (s *stream) share(op string, w []string) string {
	switch op {
	case "prop":
		value, err := abi.Property(strings.ReplaceAll(w[0], "/", "\x00"))
		return " " + w[0] + "=" + printable(value) + mark(err)
	case "has":
		_, err := abi.Property(strings.ReplaceAll(w[0], "/", "\x00"))
		return " " + w[0] + mark(err)
	case "setprop":
		return mark(abi.SetProperty(strings.ReplaceAll(w[0], "/", "\x00"), []byte(w[1])))
	case "read":
		value, cas, err := abi.Shared([]byte(w[0]))
		return " " + printable(value) + " cas " + bit(cas != 0) + mark(err)
	case "write":
		return mark(abi.SetShared([]byte(w[0]), []byte(w[1]), cas(w[0], w[2])))
	case "register":
		queue, err := abi.RegisterQueue(w[0])
		s.plugin.queue, s.plugin.queueKey = queue, s.key
		return mark(err)
	case "resolve":
		_, err := abi.ResolveQueue("", w[0])
		return mark(err)
	case "enqueue":
		return mark(abi.Enqueue(s.plugin.queue, []byte(w[0])))
	case "metric":
		return metric(abi.MetricType(integer(w[0])), w[1], int64(integer(w[2])))
	case "foreign":
		_, err := abi.CallForeign(w[0], nil)
		return mark(err)
	}
	return " unknown operation"
}

// cas is a number to compare: 0, the present one, or one that cannot occur.
func cas(key, which string) uint32 {
	switch which {
	case "0":
		return 0
	case "same":
		_, n, _ := abi.Shared([]byte(key))
		return n
	}
	return ^uint32(0)
}

// metric defines, increments, records and reads one metric.
func metric(kind abi.MetricType, name string, n int64) string {
	id, err := abi.DefineMetric(kind, name)
	out := mark(err)
	if err != nil {
		return out
	}
	out += mark(abi.IncrementMetric(id, n))
	out += mark(abi.RecordMetric(id, 5))
	value, err := abi.Metric(id)
	return out + " " + number(int(value)) + mark(err)
}

// all lists the values of one name in a map.
func all(m abi.MapType, name string) string {
	pairs, err := abi.HeaderPairs(m)
	var values []string
	for k, v := range pairs.All() {
		if string(k) == name {
			values = append(values, string(v))
		}
	}
	return " " + name + "=" + strings.Join(values, "|") + mark(err)
}

// summary shows short bodies whole and long ones by size and ends.
func summary(b []byte) string {
	if len(b) <= 40 {
		return number(len(b)) + " " + printable(b)
	}
	return number(len(b)) + " " + printable(b[:4]) + ".." + printable(b[len(b)-4:])
}

// printable spells bytes outside plain ASCII in hexadecimal.
func printable(b []byte) string {
	for _, c := range b {
		if c < ' ' || c > '~' {
			const digits = "0123456789abcdef"
			out := make([]byte, 0, 2*len(b)+2)
			out = append(out, "0x"...)
			for _, c := range b {
				out = append(out, digits[c>>4], digits[c&15])
			}
			return string(out)
		}
	}
	return string(b)
}

// mark shows a status; OK is "!0".
func mark(err error) string {
	switch err {
	case nil:
		return " !0"
	case types.ErrorStatusNotFound:
		return " !1"
	case types.ErrorStatusBadArgument:
		return " !2"
	case types.ErrorStatusEmpty:
		return " !7"
	case types.ErrorStatusCasMismatch:
		return " !8"
	case types.ErrorInternalFailure:
		return " !10"
	case types.ErrorUnimplemented:
		return " !12"
	}
	if s, ok := err.(abi.Status); ok {
		return " !" + number(int(s))
	}
	return " " + err.Error()
}

func number(n int) string { return strconv.Itoa(n) }

func integer(word string) int {
	n, _ := strconv.Atoi(word)
	return n
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
