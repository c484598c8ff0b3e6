package hostsim_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/warmlane/warmlane/hostsim"
)

// A filter's test in ten lines: load the module, send a request, look at what
// the upstream and the client got.
func Example() {
	wasm, err := buildGuest("example") // or os.ReadFile of your module
	if err != nil {
		log.Fatal(err)
	}
	h, err := hostsim.New(context.Background(), wasm, hostsim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	r, err := h.Do(hostsim.Request{Path: "/"}, hostsim.Respond(200, "hi"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Status, string(r.Body), r.Upstream.Header.Get("x-greeting"))
	// Output: 200 hi hello
}

// Callouts go to scripted upstreams, in virtual time.
func ExampleHost_SetUpstream() {
	h := exampleHost(hostsim.Options{})
	defer h.Close()
	h.SetUpstream("auth", func(r *hostsim.UpstreamRequest) hostsim.Reply {
		return hostsim.Reply{Status: 200, Delay: 20 * time.Millisecond}
	})
	r, err := h.Do(hostsim.Request{Path: "/ask"}, hostsim.Respond(200, "hi"))
	fmt.Println(r.Status, r.Upstream.Header.Get("x-checked"), r.Duration, err)

	h.SetUpstream("auth", hostsim.Respond(401, ""))
	r, err = h.Do(hostsim.Request{Path: "/ask"}, hostsim.Respond(200, "hi"))
	fmt.Println(r.Status, r.Details, r.Upstream == nil, err)
	// Output:
	// 200 yes 20ms <nil>
	// 403 asked true <nil>
}

// A race between two workers is a script: worker 1 spends the last token just
// before worker 0 writes.
func ExampleHost_OnCall() {
	h := exampleHost(hostsim.Options{Workers: 2})
	defer h.Close()
	h.Shared().Set("tokens", []byte("t"))
	err := h.OnCall(0, "proxy_set_shared_data", 1, func() {
		r, err := h.Do(hostsim.Request{Path: "/spend", Worker: 1}, hostsim.Respond(200, ""))
		fmt.Println("worker 1:", r.Status, err)
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := h.Do(hostsim.Request{Path: "/spend"}, hostsim.Respond(200, ""))
	fmt.Print("worker 0: ", r.Status, " ", string(r.Body), err, "\n")
	// Output:
	// worker 1: 200 <nil>
	// worker 0: 429 too late
	// <nil>
}

// Step by step: what has reached the upstream while the body is on its way?
func ExampleStream() {
	h := exampleHost(hostsim.Options{Buffer: 1 << 20})
	defer h.Close()
	s, err := h.Stream(0)
	if err != nil {
		log.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	check(s.RequestHeaders(hostsim.Header{{":method", "POST"}, {":path", "/"}, {":authority", "a"}}, false))
	check(s.RequestBody([]byte("one"), false))
	fmt.Println(s.Paused(), s.Upstream() == nil)
	check(s.RequestBody([]byte("two"), true))
	fmt.Println(s.Paused(), string(s.Upstream().Body))
	check(s.ResponseHeaders(hostsim.Header{{":status", "200"}}, true))
	fmt.Println(s.Done(), s.Result().Status)
	// Output:
	// true true
	// false onetwo
	// true 200
}

// Every VM ticks by itself: two workers and the main thread.
func ExampleHost_Advance() {
	h := exampleHost(hostsim.Options{Workers: 2})
	defer h.Close()
	h.Advance(2500 * time.Millisecond)
	fmt.Println(h.Metrics().Counters["ticks"])
	// Output: 6
}

func exampleHost(opts hostsim.Options) *hostsim.Host {
	wasm, err := buildGuest("example")
	if err != nil {
		log.Fatal(err)
	}
	h, err := hostsim.New(context.Background(), wasm, opts)
	if err != nil {
		log.Fatal(err)
	}
	return h
}
