package main

import (
	"testing"

	"github.com/warmlane/warmlane/hostsim"
)

// TestAnswersAreCounted reads answers in the module, in pieces that fit nothing.
func TestAnswersAreCounted(t *testing.T) {
	const (
		text  = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
		usage = `data: {"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":96}}}` + "\n\n"
		fault = `data: {"error":{"message":"overloaded","code":503}}` + "\n\n"
		done  = "data: [DONE]\n\n"
	)
	p := newProxy(t, 2, 1, "")
	stream := hostsim.Header{{"content-type", "text/event-stream"}}
	answer := func(header hostsim.Header, body string) {
		t.Helper()
		_, r := p.ask(0, chat("hi", true), func(*hostsim.UpstreamRequest) hostsim.Reply {
			return hostsim.Reply{Header: header, Body: []byte(body), ChunkSize: 11}
		})
		if string(r.Body) != body {
			t.Errorf("%q arrived as %q", body, r.Body)
		}
	}
	answer(stream, text+text+usage+done)
	answer(stream, fault+done)
	answer(stream, text+fault+done)
	answer(hostsim.Header{{"content-type", "application/json"}}, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`)
	answer(append(hostsim.Header{{"content-encoding", "gzip"}}, stream...), text+fault+done)
	const labels = ";pool=default;model=m"
	for name, want := range map[string]uint64{
		"warmlane_tokens_total" + labels + ";kind=prompt":            125,
		"warmlane_tokens_total" + labels + ";kind=completion":        8,
		"warmlane_tokens_total" + labels + ";kind=cached":            96,
		"warmlane_usage_missing_total" + labels:                      1,
		"warmlane_outcomes_total" + labels + ";outcome=ok":           3,
		"warmlane_outcomes_total" + labels + ";outcome=stream_error": 2,
	} {
		p.wantMetric(name, want)
	}
	histograms := p.host.Metrics().Histograms
	if n := len(histograms["warmlane_ttft_ms"+labels]); n != 2 {
		t.Errorf("%d times to a first token, want 2", n)
	}
	if n := len(histograms["warmlane_time_per_output_token_us"+labels]); n != 1 {
		t.Errorf("%d times per token, want 1", n)
	}
}
