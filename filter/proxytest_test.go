package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// TestProxytest has the Go SDK's own emulator host the compiled module: a host
// that neither we nor Envoy have written.
func TestProxytest(t *testing.T) {
	wasm, err := withStart(moduleBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	vm, err := proxytest.NewWasmVMContext(wasm)
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	host, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(vm).
		WithProperty([]string{"upstream", "address"}, []byte("10.0.0.1:8000")).WithPluginConfiguration([]byte(`{"pools":[{"name":"chat","models":["m"]},{"name":"code"}],"unknown_model":"reject"}`)))
	defer reset()
	if host.StartVM() != types.OnVMStartStatusOK || host.StartPlugin() != types.OnPluginStartStatusOK {
		t.Fatalf("not started: %v", host.GetCriticalLogs())
	}
	head := [][2]string{{":method", "POST"}, {":path", "/v1/chat/completions"}, {"x-warmlane-tenant", "a"}}

	id := host.InitializeHttpContext()
	host.CallOnRequestHeaders(id, head, false)
	if got := fmt.Sprint(host.GetCurrentRequestHeaders(id)); strings.Contains(got, "tenant") || !strings.Contains(got, "endpoint-load-metrics-format TEXT") {
		t.Errorf("request headers %s", got)
	}
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	host.CallOnRequestBody(id, body, true)
	if got := host.GetCurrentRequestBody(id); !bytes.Equal(got, body) {
		t.Errorf("the body became %q", got)
	}
	if pool, err := host.GetProperty([]string{"warmlane.pool"}); err != nil || string(pool) != "chat" {
		t.Errorf("pool property %q, %v", pool, err)
	}
	host.CallOnResponseHeaders(id, [][2]string{{":status", "200"}}, false)
	host.CallOnResponseBody(id, []byte("{}"), true)
	host.CompleteHttpContext(id)

	id = host.InitializeHttpContext()
	host.CallOnRequestHeaders(id, head, false)
	host.CallOnRequestBody(id, []byte(`{"model":"none","messages":[]}`), true)
	if r := host.GetSentLocalResponse(id); r == nil || r.StatusCode != 404 || !bytes.Contains(r.Data, []byte(`"error"`)) {
		t.Errorf("local reply %+v", r)
	}
	host.CompleteHttpContext(id)
	host.Tick()
	for series, want := range map[string]uint64{
		"warmlane_outcomes_total;pool=chat;model=m;outcome=ok":                       1,
		"warmlane_outcomes_total;pool=chat;model=other;outcome=local_reply":          1,
		"warmlane_decisions_total;pool=chat;model=m;tier=1;branch=no_healthy_worker": 1,
	} {
		if n, err := host.GetCounterMetric(series); err != nil || n != want {
			t.Errorf("%s: %d, %v, want %d", series, n, err, want)
		}
	}
	for _, level := range [][]string{host.GetCriticalLogs(), host.GetErrorLogs(), host.GetWarnLogs()} {
		if len(level) > 0 {
			t.Errorf("logged %v", level)
		}
	}
}

// withStart exports the function `_initialize` as `_start` too. proxytest
// calls the latter alone, which a reactor module does not have.
func withStart(wasm []byte) ([]byte, error) {
	const exportSection = 7
	for at := 8; at < len(wasm); {
		id := wasm[at]
		size, n := binary.Uvarint(wasm[at+1:])
		begin := at + 1 + n
		end := begin + int(size)
		if id != exportSection {
			at = end
			continue
		}
		section, err := addStart(wasm[begin:end])
		if err != nil {
			return nil, err
		}
		out := append([]byte{}, wasm[:at+1]...)
		out = binary.AppendUvarint(out, uint64(len(section)))
		return append(append(out, section...), wasm[end:]...), nil
	}
	return nil, fmt.Errorf("no export section")
}

func addStart(section []byte) ([]byte, error) {
	count, n := binary.Uvarint(section)
	name := append([]byte{byte(len("_initialize"))}, "_initialize"...)
	i := bytes.Index(section, name)
	if i < 0 {
		return nil, fmt.Errorf("no export _initialize")
	}
	const function = 0
	index, _ := binary.Uvarint(section[i+len(name)+1:])
	out := binary.AppendUvarint(nil, count+1)
	out = append(out, section[n:]...)
	out = append(out, byte(len("_start")))
	out = append(append(out, "_start"...), function)
	return binary.AppendUvarint(out, index), nil
}
