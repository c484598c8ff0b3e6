//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mortal builds the filter with one change: a VM whose request has the header
// x-crash, or with x-crash: leader the one that leads, blocks for ever, which
// Go's runtime ends with a fatal error that kills the VM. A panic would not do:
// those are recovered.
func mortal(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	file := func(name, text string) {
		source, err := filepath.Abs("../../filter/" + name)
		if err != nil {
			t.Fatal(err)
		}
		replace[source] = filepath.Join(dir, name)
		write(t, replace[source], text)
	}
	insert := func(name, anchor, line string) {
		text, err := os.ReadFile("../../filter/" + name)
		if err != nil {
			t.Fatal(err)
		}
		before, after, ok := strings.Cut(string(text), anchor)
		if !ok || strings.Contains(after, anchor) {
			t.Fatalf("filter/%s has changed: where to let the VM die?", name)
		}
		file(name, before+anchor+line+after)
	}
	file("crash.go", crashing)
	insert("stream.go", "	s.replied = false\n", "	crash()\n")
	insert("tick.go", "	leading := p.follower != nil && p.follower.Leading()\n", "	crashLeader(leading)\n")
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	wasm := filepath.Join(dir, "mortal.wasm")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-buildmode=c-shared", "-o", wasm, "../../filter")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return wasm
}

// crashing is what a mortal filter has more. A note in shared data tells the
// leader, who has no requests.
const crashing = `//go:build wasip1

package main

import (
	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/shared"
)

func crash() {
	how, err := abi.Header(abi.RequestHeaders, "x-crash")
	if err != nil {
		return
	}
	if string(how) != "leader" {
		select {}
	}
	_, cas, err := (&store{}).Get([]byte("crash"))
	if err != nil {
		cas = shared.Absent
	}
	_ = (&store{}).Set([]byte("crash"), []byte("leader"), cas)
}

func crashLeader(leading bool) {
	if !leading {
		return
	}
	how, cas, err := (&store{}).Get([]byte("crash"))
	if err != nil || string(how) != "leader" {
		return
	}
	_ = (&store{}).Set([]byte("crash"), []byte("done"), cas)
	select {}
}
`

// TestKilledVM kills the worker's VM again and again: what it had at that
// moment is lost, which Envoy does under every failure policy; everything after
// is served and routed as before, and the books are right in the end.
func TestKilledVM(t *testing.T) {
	list := backends(t, 3)
	for _, b := range list {
		b.answer = func(w http.ResponseWriter, r *http.Request, body []byte) {
			// No engine answers at once; to one that did, requests in flight that a dead VM
			// has left on the books would matter more than what it has cached.
			took := 20 * time.Millisecond
			if strings.Contains(string(body), "held") {
				took = 3 * time.Second
			}
			time.Sleep(took)
			fmt.Fprintf(w, `{"replica":%q}`, b.address)
		}
	}
	h := start(t, "-replicas", addresses(list), "-workers", "1", "-wasm", mortal(t))
	body := message(strings.Repeat("warm prompt ", 400))
	first := post(fresh, h.url+"/v1/chat/completions", body)
	home := first.where(t)
	for round := range 3 {
		held := make(chan reply, 1)
		go func() { held <- post(fresh, h.url+"/v1/chat/completions", message("held")) }()
		time.Sleep(1200 * time.Millisecond)
		post(fresh, h.url+"/v1/chat/completions", message("x"), "x-crash", "1")
		for i := range 50 {
			r := post(fresh, h.url+"/v1/chat/completions", body, "x-warmlane-explain", "1")
			if at := r.where(t); at != home {
				t.Fatalf("round %d, request %d after the crash: went to %s, its home is %s: %s", round, i, at, home, r.header.Get("x-warmlane-decision"))
			}
		}
		select {
		case <-held:
		case <-time.After(20 * time.Second):
			t.Error("a stream of the dead VM hangs")
		}
	}
	h.eventually(20*time.Second, "the dead VMs' requests off the books", func() bool { return h.series("warmlane_in_flight") == 0 })
	if n := h.series("warmlane_panics_total"); n != 0 {
		t.Errorf("%v panics", n)
	}
}
