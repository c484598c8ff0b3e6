//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// where reads the replica out of a backend's answer.
func (r *reply) where(t *testing.T) string {
	t.Helper()
	var a struct{ Replica string }
	if r.err != nil || r.status != 200 || json.Unmarshal(r.body, &a) != nil {
		t.Fatalf("status %d, %v: %.200s", r.status, r.err, r.body)
	}
	return a.Replica
}

// TestWarmPromptsReturn has many conversations on many connections and four
// workers: each must stay with the replica that first got it.
func TestWarmPromptsReturn(t *testing.T) {
	list := backends(t, 4)
	h := start(t, "-replicas", addresses(list), "-workers", "4")
	homes := map[string]string{}
	away, asked := 0, 0
	for turn := range 6 {
		for user := range 12 {
			text := fmt.Sprintf("user %d says: ", user) + strings.Repeat(fmt.Sprintf("word%d ", user), 300*(turn+1))
			r := post(fresh, h.url+"/v1/chat/completions", message(text), "x-warmlane-explain", "1")
			at := r.where(t)
			if homes[fmt.Sprint(user)] == "" {
				homes[fmt.Sprint(user)] = at
				continue
			}
			asked++
			if homes[fmt.Sprint(user)] != at || r.branch() != "cache_hit" {
				away++
			}
		}
	}
	if away > 0 {
		t.Errorf("%d of %d follow-ups did not return to their replica", away, asked)
	}
	used := map[string]bool{}
	for _, at := range homes {
		used[at] = true
	}
	if len(used) < 3 {
		t.Errorf("12 conversations began on %d of 4 replicas", len(used))
	}
	h.settled()
	h.eventually(5*time.Second, "the decisions counted", func() bool {
		return h.series("warmlane_decisions_total", `branch="cache_hit"`, `model="m"`, `pool="default"`, `tier="1"`) >= float64(asked)
	})
}

// TestBurstSpreads sends 30 cold requests at once through four workers.
func TestBurstSpreads(t *testing.T) {
	list := backends(t, 3)
	for _, b := range list {
		b.answer = func(w http.ResponseWriter, _ *http.Request, body []byte) {
			time.Sleep(time.Second)
			fmt.Fprintf(w, `{"replica":%q}`, b.address)
		}
	}
	h := start(t, "-replicas", addresses(list), "-workers", "4")
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if r := post(fresh, h.url+"/v1/chat/completions", message(fmt.Sprintf("q%d ...", i))); r.status != 200 {
				t.Errorf("status %d, %v", r.status, r.err)
			}
		}()
	}
	wg.Wait()
	for _, b := range list {
		if n := len(b.arrivals()); n > 14 {
			t.Errorf("%s got %d of 30", b.address, n)
		}
	}
	h.settled()
}

// TestForgedHeadersSteerNothing tries to steer with every header of ours.
func TestForgedHeadersSteerNothing(t *testing.T) {
	list := backends(t, 3)
	h := start(t, "-replicas", addresses(list), "-workers", "1")
	body := message(strings.Repeat("warm prompt ", 300))
	r := post(kept, h.url+"/v1/chat/completions", body)
	home := r.where(t)
	for _, b := range list {
		if b.address == home {
			continue
		}
		r := post(kept, h.url+"/v1/chat/completions", body,
			"x-gateway-destination-endpoint", b.address, "x-warmlane-pool", "other", "x-warmlane-work", "prompt=1")
		if at := r.where(t); at != home {
			t.Errorf("a forged header sent the request to %s, want %s", at, home)
		}
	}
	for _, b := range list {
		for _, a := range b.arrivals() {
			if v := a.header.Get("x-warmlane-pool"); v != "" && v != "default" {
				t.Errorf("the client's x-warmlane-pool %q arrived", v)
			}
			if a.header.Get("x-warmlane-work") == "prompt=1" {
				t.Error("the client's x-warmlane-work arrived")
			}
		}
	}
	// Nor on requests that the filter does not route.
	seen := map[string]bool{}
	for range 12 {
		req, _ := http.NewRequest(http.MethodGet, h.url+"/v1/models", nil)
		req.Header.Set("x-gateway-destination-endpoint", list[0].address)
		req.Header.Set("x-test", "1")
		resp, err := kept.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, b := range list {
		for _, a := range b.arrivals() {
			seen[b.address] = true
			if v := a.header.Get("x-gateway-destination-endpoint"); v != "" {
				t.Errorf("the client's destination %q arrived", v)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("12 unrouted requests with a forged destination all went to %v", seen)
	}
}

// TestReplicasFile adds and removes replicas without a restart.
func TestReplicasFile(t *testing.T) {
	list := backends(t, 3)
	file := t.TempDir() + "/replicas"
	write(t, file, list[0].address+"\n"+list[1].address+"\n")
	h := start(t, "-replicas-file", file, "-workers", "2")
	body := message(strings.Repeat("prompt that is warm ", 200))
	home := post(fresh, h.url+"/v1/chat/completions", body)
	at := home.where(t)
	rest := ""
	for _, b := range list {
		if b.address != at {
			rest += b.address + "\n"
		}
	}
	write(t, file, rest)
	time.Sleep(1500 * time.Millisecond)
	for range 20 {
		r := post(fresh, h.url+"/v1/chat/completions", body)
		if now := r.where(t); now == at {
			t.Fatal("a request went to a replica that has left")
		}
	}
	h.eventually(5*time.Second, "the new replica gets its share", func() bool {
		for i := range 10 {
			r := post(fresh, h.url+"/v1/chat/completions", message(fmt.Sprintf("%d %d", time.Now().UnixNano(), i)))
			r.where(t)
		}
		return len(list[2].arrivals()) > 0
	})
}

// TestIPv6 has replicas at [::1], one of them spelled out: metrics, routing and
// the override must all know it for the same replica.
func TestIPv6(t *testing.T) {
	list := backendsAt(t, "[::1]:0", 2)
	spelled := strings.Replace(list[1].address, "[::1]", "[0:0:0:0:0:0:0:1]", 1)
	h := start(t, "-replicas", list[0].address+","+spelled, "-workers", "1")
	for i := range 6 {
		body := message(fmt.Sprint(i) + strings.Repeat(" warm", 500))
		first := post(fresh, h.url+"/v1/chat/completions", body)
		again := post(fresh, h.url+"/v1/chat/completions", body, "x-warmlane-explain", "1")
		if home, at := first.where(t), again.where(t); home != at || again.branch() != "cache_hit" {
			t.Errorf("prompt %d went to %s, then to %s (%s)", i, home, at, again.branch())
		}
	}
	if n := strings.Count(h.get(h.control+"/v1/pools"), `"address": "[::1]:`); n != 2 {
		t.Errorf("control knows %d replicas at [::1], want 2: %s", n, h.get(h.control+"/v1/pools"))
	}
	if n := h.series("warmlane_override_misses_total"); n != 0 {
		t.Errorf("%v override misses", n)
	}
	h.settled()
}

// TestDraining marks the warmest replica: its stream ends in peace, nothing new
// goes there, and it comes back when the mark is gone.
func TestDraining(t *testing.T) {
	list := backends(t, 2)
	for _, b := range list {
		b.answer = func(w http.ResponseWriter, _ *http.Request, body []byte) {
			if strings.Contains(string(body), "long stream") {
				w.Header().Set("content-type", "text/event-stream")
				for range 30 {
					fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
					w.(http.Flusher).Flush()
					time.Sleep(100 * time.Millisecond)
				}
				fmt.Fprint(w, "data: [DONE]\n\n")
				return
			}
			fmt.Fprintf(w, `{"replica":%q}`, b.address)
		}
	}
	file := t.TempDir() + "/replicas"
	both := list[0].address + "\n" + list[1].address + "\n"
	write(t, file, both)
	h := start(t, "-replicas-file", file, "-workers", "2")
	body := message(strings.Repeat("prompt that is warm ", 200))
	first := post(fresh, h.url+"/v1/chat/completions", body)
	home := first.where(t)
	stream := make(chan reply, 1)
	go func() {
		stream <- post(fresh, h.url+"/v1/chat/completions", message(strings.Repeat("prompt that is warm ", 200)+"long stream"))
	}()
	time.Sleep(300 * time.Millisecond)
	write(t, file, strings.Replace(both, home, home+" draining", 1))
	time.Sleep(time.Second)
	for range 20 {
		r := post(fresh, h.url+"/v1/chat/completions", body)
		if r.where(t) == home {
			t.Fatal("a new request went to a draining replica")
		}
	}
	if r := <-stream; r.status != 200 || !strings.HasSuffix(string(r.body), "[DONE]\n\n") {
		t.Errorf("the stream ended with status %d, %v", r.status, r.err)
	}
	write(t, file, both)
	h.eventually(10*time.Second, "the replica gets requests again", func() bool {
		for i := range 10 {
			r := post(fresh, h.url+"/v1/chat/completions", message(fmt.Sprint(time.Now().UnixNano(), i)))
			if r.where(t) == home {
				return true
			}
		}
		return false
	})
}
