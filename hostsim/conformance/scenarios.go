package conformance

import "strings"

// Scenarios are all questions, in no particular order.
var Scenarios = concat(headerScenarios, bodyScenarios, steeringScenarios, calloutScenarios, stateScenarios, failureScenarios)

func concat(groups ...[]Scenario) []Scenario {
	var all []Scenario
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// one is a scenario of a single exchange.
func one(name, asks string, setup Setup, e Exchange) Scenario {
	return Scenario{Name: name, Asks: asks, Setup: setup, Exchanges: []Exchange{e}}
}

// steps joins statements to a script.
func steps(statements ...string) string { return strings.Join(statements, "; ") }

var (
	plain    = Setup{}
	buffered = Setup{Buffer: true}
	allowing = Setup{AllowStop: true}
	tight    = Setup{Limit: 65536}
)

var headerScenarios = []Scenario{
	one("headers", "what do reads and writes of request headers answer and do?", plain, Exchange{
		Script: steps("rh get req x-many", "rh all req x-many", "rh add req x-many c", "rh all req x-many",
			"rh set req x-many d", "rh all req x-many", "rh set req x-new v", "rh del req x-gone", "rh del req x-none",
			"rh get req X-New", "rh get req x-none", "rh add req content-type b", "rh all req content-type", "rh size req",
			"rh size reqt", "rh get resp :status", "rh all resp :status", "rh set resp x 1", "rh get call :status", "rh all call :status"),
		Header:       [][2]string{{"x-many", "a"}, {"X-Many", "b"}, {"x-gone", "1"}, {"content-type", "a"}},
		ShowUpstream: []string{"x-many", "x-new", "x-gone", "content-type"},
	}),
	one("headers-replaced", "what is left after set_header_map_pairs?", plain, Exchange{
		Script: steps("sh only resp x-only 1", "sh all resp x-only", "sh get resp :status", "sh add resp :status 201"),
		Reply:  Reply{Header: [][2]string{{"x-a", "1"}}}, ShowClient: []string{"x-only", "x-a"},
	}),
	one("headers-after-continue", "are request headers gone once the headers callback has continued?", plain, Exchange{
		Script: steps("re get req x-a", "re set req x-a 2", "re all req x-a", "re size req", "re prop request/path",
			"re prop request/headers/x-a", "re prop request/method", "sh get req x-a", "sh prop request/path"),
		Header: [][2]string{{"x-a", "1"}}, Chunks: []string{"body"}, ShowUpstream: []string{"x-a"},
	}),
	one("headers-no-body", "how is a request without a body announced?", plain, Exchange{
		Script: steps("rh body req"), Reply: Reply{Chunks: []string{"yes"}},
	}),
	one("response-headers", "can response headers be changed?", plain, Exchange{
		Script: steps("sh get resp x-a", "sh set resp x-a 2", "sh del resp x-b", "sh add resp x-c 3", "se get resp x-a", "se set resp x-a 3"),
		Reply:  Reply{Header: [][2]string{{"x-a", "1"}, {"x-b", "1"}}, Chunks: []string{"ok"}}, ShowClient: []string{"x-a", "x-b", "x-c"},
	}),
	one("trailers", "how do trailers arrive, and can they be changed?", plain, Exchange{
		Script: steps("rt get reqt x-t", "rt set reqt x-t 2", "rt body req", "st get respt x-u", "st set respt x-u 2"),
		Chunks: []string{"one", "two"}, Trailers: [][2]string{{"x-t", "1"}},
		Reply: Reply{Chunks: []string{"three"}, Trailers: [][2]string{{"x-u", "1"}}},
	}),
	one("trailers-added", "does writing trailers on the last body callback make them?", plain, Exchange{
		Script: steps("rb set reqt x-t 0", "re get reqt x-t", "re set reqt x-t 1", "re get reqt x-t"),
		Chunks: []string{"one"}, ShowUpstream: []string{"x-t"},
	}),
	one("log-phase", "what can be read in on_log, on_done and on_delete, and in which order do they come?", plain, Exchange{
		Script: steps("log get req x-a", "log all req x-a", "log set req x-a 2", "log size req", "log get resp :status", "log get respt x-u",
			"log get req x-none", "log all reqt x", "log get reqt x", "log prop request/path", "log prop response/code", "log prop response/code_details",
			"log setprop late 1", "log prop late", "log body req",
			"done get req x-a", "done all req x-a", "done prop request/path", "del get req x-a", "del body req"),
		Header: [][2]string{{"x-a", "1"}}, Chunks: []string{"b"},
		Reply: Reply{Status: 201, Chunks: []string{"c"}, Trailers: [][2]string{{"x-u", "1"}}},
	}),
}

var bodyScenarios = []Scenario{
	one("body-passes", "how do the pieces of a body come when the guest continues?", plain, Exchange{
		Script: steps("rb body req", "re body req"), Chunks: []string{"one", "three"}, Reply: Reply{Chunks: []string{"a", "bc"}},
	}),
	one("body-collected", "what does a guest see that pauses on body pieces?", plain, Exchange{
		Script: steps("rb answer 1", "rb body req", "re body req"), Chunks: []string{"one", "two", "three"},
	}),
	one("body-edited", "what does set_buffer_bytes do at which place?", plain, Exchange{
		Script: steps("rb put req 0 0 <", "rb body req", "rb put req 0 2 AB", "rb body req", "rb put req 99 0 >", "rb body req",
			"rb put req 2 1 x", "rb body req", "rb put req 0 99 all", "rb body req", "re put req 0 0 end", "re body req"),
		Chunks: []string{"hello"},
	}),
	one("body-edited-collected", "can a collected body be replaced at its end?", plain, Exchange{
		Script: steps("rb answer 1", "re put req 0 99 new", "re body req"), Chunks: []string{"one", "two"},
		ShowUpstream: []string{"content-length"},
	}),
	one("body-range", "what do reads outside a body answer?", plain, Exchange{
		Script: steps("rh body req", "rb body resp", "rb body call", "rb body config", "sh body req", "sh body resp", "sh put resp 0 0 x"), Chunks: []string{"hello"},
	}),
	one("pause-headers", "does a pause on headers stop the body too?", plain, Exchange{
		Script: steps("rh answer 1", "rh tick 600", "tick get req x-a", "tick set req x-a 2", "tick body req", "tick cont req", "tick get req x-a", "tick all req x-a", "re body req"),
		Header: [][2]string{{"x-a", "1"}}, Chunks: []string{"one", "two"}, ShowUpstream: []string{"x-a"},
	}),
	one("pause-headers-allowed", "does the body come during a pause on headers if that is allowed?", allowing, Exchange{
		Script: steps("rh answer 1", "rb answer 1", "re get req x-a", "re set req x-a 2", "re body req"),
		Header: [][2]string{{"x-a", "1"}}, Chunks: []string{"one", "two"}, ShowUpstream: []string{"x-a"},
	}),
	one("pause-headers-allowed-continue", "does continuing on a piece of body release paused headers?", allowing, Exchange{
		Script: steps("rh answer 1", "rb set req x-a 2", "re set req x-a 3"),
		Header: [][2]string{{"x-a", "1"}}, Chunks: []string{"one", "two"}, ShowUpstream: []string{"x-a"},
	}),
	one("pause-headers-only", "is a paused request without body resumed by a tick?", plain, Exchange{
		Script: steps("rh answer 1", "rh tick 20", "tick set req x-a 2", "tick cont req"), ShowUpstream: []string{"x-a"},
	}),
	one("pause-middle", "is a piece lost when a body pause is resumed from outside and more comes?", plain, Exchange{
		Script: steps("rb answer 1", "rb tick 20", "tick cont req", "tick body req"), Chunks: []string{"one", "two", "three"},
	}),
	one("pause-middle-buffered", "the same, with the buffer filter behind", buffered, Exchange{
		Script: steps("rb answer 1", "rb tick 20", "tick cont req", "tick body req"), Chunks: []string{"one", "two", "three"},
	}),
	one("pause-end", "does a pause on the last callback hold a request, and is it resumed?", plain, Exchange{
		Script: steps("re answer 1", "re tick 20", "tick body req", "tick cont req", "tick body req"), Chunks: []string{"one"},
	}),
	one("pause-end-buffered", "what is in the buffer then if the buffer filter holds the body?", buffered, Exchange{
		Script: steps("re answer 1", "re body req", "re tick 20", "tick body req", "tick setprop out b", "tick cont req"), Sized: true,
		Header: [][2]string{{"x-out", "client"}}, Chunks: []string{"one", "two"}, ShowUpstream: []string{"x-out", "content-length"},
	}),
	one("pause-end-buffered-chunked", "does the buffer filter count such a body once if its length was not named?", buffered, Exchange{
		Script: steps("re answer 1", "re tick 20", "tick cont req"), Chunks: []string{"one", "two"},
	}),
	one("pause-end-buffered-length", "can the guest correct that length?", buffered, Exchange{
		Script: steps("re answer 1", "re tick 20", "tick setprop length 6", "tick cont req"), Chunks: []string{"one", "two"}, ShowUpstream: []string{"content-length"},
	}),
	one("pause-trailers-buffered-chunked", "and if the guest pauses on trailers?", buffered, Exchange{
		Script: steps("rt answer 1", "rt tick 20", "tick cont req"), Chunks: []string{"one", "two"}, Trailers: [][2]string{{"x-t", "1"}},
	}),
	one("pause-end-no-buffer", "and if the guest stops the last callback without buffering?", buffered, Exchange{
		Script: steps("re answer 3", "re tick 20", "tick setprop out b", "tick cont req"), Chunks: []string{"one", "two"},
	}),
	one("buffered", "who holds a body the guest lets pass, and what does the mutation make of filter state?", buffered, Exchange{
		Script: steps("rb setprop out a", "re setprop out b", "re prop out"),
		Header: [][2]string{{"x-out", "client"}}, Chunks: []string{"one", "two"}, ShowUpstream: []string{"x-out", "content-length"},
	}),
	one("buffered-trailers", "the same with trailers", buffered, Exchange{
		Script: steps("rt setprop out c"), Chunks: []string{"one", "two"}, Trailers: [][2]string{{"x-t", "1"}},
		ShowUpstream: []string{"x-out", "content-length"},
	}),
	one("buffered-absent", "is no header added for filter state that is absent, and is the client's removed?", buffered, Exchange{
		Script: steps("re setprop other b"), Header: [][2]string{{"x-out", "client"}}, Chunks: []string{"one"}, ShowUpstream: []string{"x-out"},
	}),
	one("buffered-empty", "or for filter state that is empty?", buffered, Exchange{
		Script: steps("rh setprop out _"), Header: [][2]string{{"x-out", "client"}}, ShowUpstream: []string{"x-out"},
	}),
	one("buffered-too-large", "what happens over the buffer filter's limit?", buffered, Exchange{
		Script: "none", Chunks: []string{strings.Repeat("a", 60_000), strings.Repeat("b", 60_000), "c"}, ShowClient: []string{"content-type"},
	}),
	one("collected-too-large", "what happens when the guest collects more than the chain holds?", tight, Exchange{
		Script: "rb answer 1", Chunks: []string{strings.Repeat("a", 40_000), strings.Repeat("b", 40_000), "c"},
	}),
	one("response-collected", "can a response be collected and replaced?", plain, Exchange{
		Script: steps("sh del resp content-length", "sb answer 1", "se body resp", "se put resp 0 99 new"),
		Reply:  Reply{Chunks: []string{"one", "two"}},
	}),
	one("response-paused", "can a response's head be held and changed by a tick?", plain, Exchange{
		Script: steps("sh answer 1", "sh tick 600", "tick set resp x-a 2", "tick cont resp", "tick get resp x-a"),
		Reply:  Reply{Chunks: []string{"one"}, Header: [][2]string{{"x-a", "1"}}}, ShowClient: []string{"x-a"},
	}),
	one("response-too-large", "what happens when the guest collects too much of a response?", tight, Exchange{
		Script: "sb answer 1", Brief: true, Reply: Reply{Chunks: []string{strings.Repeat("a", 50_000), strings.Repeat("b", 50_000)}},
	}),
	one("response-too-large-allowed", "and if its head is held and the body comes?", Setup{AllowStop: true, Limit: 65536}, Exchange{
		Script: steps("sh answer 1", "sb answer 1"), Brief: true, Reply: Reply{Chunks: []string{strings.Repeat("a", 50_000), strings.Repeat("b", 50_000)}},
	}),
}

var steeringScenarios = []Scenario{
	one("reply-headers", "what does a local reply from the headers callback look like, and who sees it?", plain, Exchange{
		Script: steps("rh reply 429 slow+down x-why quota content-type application/json", "sh get resp content-type", "sh add resp x-seen 1", "se body resp",
			"log prop response/code_details"),
		ShowClient: []string{"x-why", "content-type", "x-seen", "content-length"},
	}),
	one("reply-plain", "which content type does a reply get by itself?", plain, Exchange{
		Script: "rh reply 200 text", ShowClient: []string{"content-type", "content-length"},
	}),
	one("reply-empty", "what is sent for an empty body?", plain, Exchange{
		Script: "rh reply 204 _ x-why none", ShowClient: []string{"x-why", "content-type", "content-length"},
	}),
	one("reply-body", "can a reply come when the body has ended?", plain, Exchange{
		Script: "re reply 403 no", Chunks: []string{"one"},
	}),
	one("reply-body-early", "can a reply come before the body has ended?", plain, Exchange{
		Script: "rb reply 403 no", Chunks: []string{"one"},
	}),
	one("reply-buffered", "and with the buffer filter behind?", buffered, Exchange{
		Script: "re reply 403 no", Chunks: []string{"one", "two"},
	}),
	one("reply-tick", "can a reply come from a tick?", plain, Exchange{
		Script: steps("re answer 1", "re tick 20", "tick reply 429 late x-why tick"), Chunks: []string{"one"}, ShowClient: []string{"x-why"},
	}),
	one("reply-twice", "which of two replies wins?", plain, Exchange{
		Script: steps("rh reply 401 first", "rh reply 402 second", "log prop response/code_details"),
	}),
	one("reply-response", "can a response be replaced in its headers callback?", plain, Exchange{
		Script: steps("sh reply 500 replaced x-why sh"), Reply: Reply{Chunks: []string{"one"}}, ShowClient: []string{"x-why"},
	}),
	one("reply-response-body", "can it be replaced when its head has left?", plain, Exchange{
		Script: steps("se reply 500 replaced"), Reply: Reply{Chunks: []string{"one"}},
	}),
	one("reply-paused-response", "can it be replaced by a tick while its head is held?", plain, Exchange{
		Script: steps("sh answer 1", "sh tick 20", "tick reply 500 replaced x-why tick"), Reply: Reply{Chunks: []string{"one"}}, ShowClient: []string{"x-why"},
	}),
	one("reply-root", "what does a reply from the root context do?", plain, Exchange{
		Script: steps("rh tick 20", "rh effective root", "rh reply 500 root", "tick cont req"),
	}),
	one("continue-inside", "what does continue_stream inside a paused headers callback do?", plain, Exchange{
		Script: steps("rh cont req", "rh answer 1", "rh get req x-a"), Header: [][2]string{{"x-a", "1"}},
	}),
	one("close", "what does close_stream do?", plain, Exchange{
		Script: steps("rh close req", "rh answer 1", "log prop response/code_details"),
	}),
	one("answers", "how are answers out of range read?", plain, Exchange{
		Script: steps("rh answer 2", "rb answer 2", "re answer 0"), Chunks: []string{"one"},
	}),
	one("answer-no-buffer", "what is left of a body the guest stops without buffering?", plain, Exchange{
		Script: steps("rb answer 3", "re answer 0"), Chunks: []string{"one", "two"},
	}),
	one("effective", "which contexts can be made effective?", plain, Exchange{
		Script: steps("rh effective 999", "rh effective root", "rh get req x-a", "rh setprop p 1", "rh effective self", "rh get req x-a", "rh effective 0", "rh get req x-a"),
		Header: [][2]string{{"x-a", "1"}},
	}),
	one("abort", "what does a tick find of a stream whose client has left?", plain, Exchange{
		Script: steps("rh answer 1", "rh tick 200", "tick get req x-a"), Abort: true,
	}),
	one("abort-body", "is a stream settled whose client leaves in the body?", plain, Exchange{
		Script: steps("log prop response/code_details"), Chunks: []string{"one", "two"}, Abort: true,
	}),
}

var calloutScenarios = []Scenario{
	one("call", "how does a callout's reply come, and what can be read?", plain, Exchange{
		Script: steps("rh call side 1000 /hello", "rh answer 1", "call get call :status", "call get call x-side", "call all call x-side", "call size call", "call body call",
			"call set call x-side 2", "call get callt x", "call get req x-a", "call set req x-a 2", "call cont req", "sh body call", "sh get call :status"),
		Header: [][2]string{{"x-a", "1"}}, ShowUpstream: []string{"x-a"},
	}),
	one("call-refused", "which calls are refused at once?", plain, Exchange{
		Script: steps("rh call nowhere 1000 /hello", "rh call side 1000 _", "rh call empty 1000 /hello", "rh call side -1 /hello"),
	}),
	one("call-late", "what comes of a reply that is too late?", plain, Exchange{
		Script: steps("rh call side 100 /slow", "rh answer 1", "call get call :status", "call cont req"),
	}),
	one("call-late-body", "and if its head was in time?", plain, Exchange{
		Script: steps("rh call side 100 /slow-body", "rh answer 1", "call get call :status", "call cont req"),
	}),
	one("call-reset", "and of a connection that breaks?", plain, Exchange{
		Script: steps("rh call side 1000 /reset", "rh answer 1", "call get call :status", "call cont req"),
	}),
	one("call-reset-body", "and if it breaks in the body?", plain, Exchange{
		Script: steps("rh call side 1000 /reset-body", "rh answer 1", "call get call :status", "call cont req"),
	}),
	one("call-reply", "can a callout's reply make a local reply?", plain, Exchange{
		Script: steps("re call side 1000 /hello", "re answer 1", "call reply 403 denied x-why call"), Chunks: []string{"one"}, ShowClient: []string{"x-why"},
	}),
	one("call-orphan", "what does the reply find of a stream whose client has left?", plain, Exchange{
		Script: steps("rh call side 1000 /delayed", "rh answer 1", "call get req x-a"), Abort: true,
	}),
}

var stateScenarios = []Scenario{
	one("shared-data", "which rules does compare-and-set follow?", plain, Exchange{
		Script: steps("rh read k1", "rh write k1 a never", "rh read k1", "rh write k1 b never", "rh read k1", "rh write k1 c same", "rh read k1",
			"rh write k1 d 0", "rh read k1", "rh write k2 _ same", "rh read k2"),
	}),
	one("queue", "how do queues work?", plain, Exchange{
		Script: steps("rh resolve q-none", "rh register q1", "rh resolve q1", "rh enqueue one", "rh answer 1", "rh tick 100", "tick cont req"),
	}),
	one("metrics", "what do the three kinds of metrics accept?", plain, Exchange{
		Script: steps("rh metric 0 m.counter 2", "rh metric 0 m.counter 0", "rh metric 0 m.counter -1", "rh metric 1 m.gauge 2", "rh metric 1 m.gauge -3", "rh metric 2 m.hist 1", "rh metric 3 m.none 1"),
	}),
	one("properties", "which attributes are there, and in what form?", plain, Exchange{
		Script: steps("rh prop request/path", "rh prop request/url_path", "rh prop request/query", "rh prop request/host", "rh prop request/method", "rh prop request/scheme",
			"rh prop request/protocol", "rh prop request/useragent", "rh prop request/headers/x-a", "rh has request/headers", "rh prop request", "rh prop request/none",
			"rh prop plugin_name", "rh prop plugin_root_id", "rh has plugin_vm_id", "rh has request/time", "rh has request/id", "rh has connection/id", "rh has connection_id", "rh has request/size", "rh has request/total_size", "rh has source/address", "rh has destination/port", "rh prop nothing", "rh prop nothing/at/all", "rh prop _", "rh prop response/code", "rh prop connection/mtls",
			"rh prop plugin_name/x", "rh prop response", "rh prop connection",
			"sh prop response/code", "sh prop response/headers/x-b", "sh prop response/code_details", "sh prop request/method", "se prop response/code", "se prop response/headers/x-b", "se has upstream/address", "rh prop wasm.x"),
		Path: "/p?q=1", Header: [][2]string{{"x-a", "1"}, {"x-a", "2"}, {"user-agent", "test"}},
		Reply: Reply{Header: [][2]string{{"x-b", "3"}}, Chunks: []string{"x"}},
	}),
	one("properties-set", "which properties can be set and read back?", plain, Exchange{
		Script: steps("rh setprop one 1", "rh prop one", "rh setprop a/b 2", "rh prop a/b", "rh prop a", "rh prop one/x", "rh setprop request 3", "rh prop request", "rh setprop request/path 4", "rh prop request/path",
			"rh setprop one 5", "rh prop one", "rh setprop _ 6", "rh prop _", "rh setprop plugin_name 7", "rh prop plugin_name",
			"rh effective root", "rh setprop one 8", "rh prop one", "rh prop plugin_root_id", "rh prop plugin_name", "rh prop request/path"),
	}),
	one("foreign", "which foreign functions answer?", plain, Exchange{
		Script: steps("rh foreign clear_route_cache", "rh foreign nothing"),
	}),
}

var failureScenarios = []Scenario{
	{Name: "trap-closed", Asks: "what do streams of a dead VM get if the plugin fails closed?", Setup: Setup{Failure: "closed"}, Exchanges: []Exchange{
		{Script: "rh trap", ShowClient: []string{"content-type"}}, {Script: "none", Chunks: []string{"one"}}}},
	{Name: "trap-open", Asks: "and if it fails open?", Setup: Setup{Failure: "open"}, Exchanges: []Exchange{
		{Script: "rh trap", Chunks: []string{"one"}}, {Script: "none"}}},
	{Name: "trap-response", Asks: "what does a client get whose VM dies in the response's head?", Setup: Setup{Failure: "closed", Limit: 70000}, Exchanges: []Exchange{
		{Script: "sh trap", Reply: Reply{Chunks: []string{"one"}}}}},
	{Name: "trap-response-body", Asks: "and in its body?", Setup: Setup{Failure: "closed", Limit: 70001}, Exchanges: []Exchange{
		{Script: "sb trap", Reply: Reply{Chunks: []string{"one"}}}}},
	{Name: "trap-reload", Asks: "does the next stream get a new VM, with shared data kept?", Setup: Setup{Failure: "reload"}, Exchanges: []Exchange{
		{Script: "rh write kept 1 0; rh trap"}, {Script: "rh read kept"}}},
}
