//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// loop sends requests from several clients until stopped and counts those
// that did not end well.
type loop struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	sent   atomic.Int64
	mu     sync.Mutex
	failed []string
}

func load(h *house, clients int, pause time.Duration, ask func(i int64) reply) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loop{cancel: cancel}
	for range clients {
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			for ctx.Err() == nil {
				r := ask(l.sent.Add(1))
				if r.err != nil || r.status != 200 {
					l.mu.Lock()
					l.failed = append(l.failed, fmt.Sprintf("%d %v %.100s", r.status, r.err, r.body))
					l.mu.Unlock()
				}
				time.Sleep(pause)
			}
		}()
	}
	return l
}

// end stops the load and gives what failed.
func (l *loop) end() []string {
	l.cancel()
	l.wg.Wait()
	return l.failed
}

// ask is a request of one of 20 conversations.
func (h *house) ask(i int64) reply {
	return post(kept, h.url+"/v1/chat/completions", message(fmt.Sprintf("user %d ", i%20)+strings.Repeat("text ", 400)))
}

// TestDeadFirstChoice stops the warm replica: its requests, up to 8 MB long,
// are served by another with the whole body.
func TestDeadFirstChoice(t *testing.T) {
	list := backends(t, 3)
	h := start(t, "-replicas", addresses(list), "-workers", "1")
	for _, size := range []int{20_000, 8 << 20} {
		body := message(fmt.Sprint(size) + strings.Repeat("0123456789", size/10))
		first := post(kept, h.url+"/v1/chat/completions", body)
		home := first.where(t)
		var down *backend
		for _, b := range list {
			if b.address == home {
				down = b
			}
		}
		down.stop()
		r := post(kept, h.url+"/v1/chat/completions", body)
		if at := r.where(t); at == home || !strings.Contains(string(r.body), sumOf(body)) {
			t.Errorf("%d bytes: %s", size, r.body)
		}
		down.listen()
		h.eventually(10*time.Second, "the replica healthy again", func() bool {
			return strings.Count(h.get(h.control+"/v1/pools"), `"healthy"`) == 3
		})
	}
	h.settled()
	h.eventually(5*time.Second, "override misses counted", func() bool { return h.series("warmlane_override_misses_total") >= 2 })
}

// TestKilledReplica cuts a replica off under load.
func TestKilledReplica(t *testing.T) {
	list := backends(t, 3)
	h := start(t, "-replicas", addresses(list), "-workers", "2")
	l := load(h, 8, 5*time.Millisecond, h.ask)
	time.Sleep(time.Second)
	list[0].stop()
	time.Sleep(2 * time.Second)
	list[0].listen()
	time.Sleep(2 * time.Second)
	if failed := l.end(); len(failed) > 0 {
		t.Errorf("%d of %d requests failed: %v", len(failed), l.sent.Load(), failed[:min(5, len(failed))])
	}
	h.settled()
}

// TestKilledControl kills the control service under load. The quickstart
// brings it back; meanwhile routing goes on by what was last known.
func TestKilledControl(t *testing.T) {
	list := backends(t, 3)
	h := start(t, "-replicas", addresses(list), "-workers", "2")
	l := load(h, 8, 5*time.Millisecond, h.ask)
	for range 3 {
		time.Sleep(time.Second)
		h.kill("/control")
	}
	time.Sleep(2 * time.Second)
	if failed := l.end(); len(failed) > 0 {
		t.Errorf("%d of %d requests failed: %v", len(failed), l.sent.Load(), failed[:min(5, len(failed))])
	}
	r := post(kept, h.url+"/v1/chat/completions", message("user 1 "+strings.Repeat("text ", 400)), "x-warmlane-explain", "1")
	if r.branch() != "cache_hit" {
		t.Errorf("after all that: %s", r.header.Get("x-warmlane-decision"))
	}
	h.settled()
	h.eventually(10*time.Second, "fresh state again", func() bool { return h.series("warmlane_state_age_ms") < 2000 })
}

// TestConfigurationChanges changes the plugin's configuration ten times under
// load.
func TestConfigurationChanges(t *testing.T) {
	list := backends(t, 3)
	config := t.TempDir() + "/config.yaml"
	yaml := func(i int) string {
		return fmt.Sprintf("filter:\n  routing:\n    queue_weight: %v\n", 1+float64(i)/10)
	}
	write(t, config, yaml(0))
	for _, b := range list {
		b.answer = func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("content-type", "text/event-stream")
			for range 10 {
				fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(50 * time.Millisecond)
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		}
	}
	h := start(t, "-replicas", addresses(list), "-workers", "2", "-config", config)
	l := load(h, 10, 20*time.Millisecond, func(i int64) reply {
		r := h.ask(i)
		if r.status == 200 && !strings.HasSuffix(string(r.body), "[DONE]\n\n") {
			r.err = fmt.Errorf("a stream was cut: %.100q", r.body)
		}
		return r
	})
	for i := range 10 {
		time.Sleep(time.Second)
		write(t, config, yaml(i+1))
	}
	time.Sleep(2 * time.Second)
	if failed := l.end(); len(failed) > 0 {
		t.Errorf("%d of %d requests failed: %v", len(failed), l.sent.Load(), failed[:min(5, len(failed))])
	}
	h.settled()
	if dump := h.get(h.admin + "/config_dump"); !strings.Contains(strings.ReplaceAll(dump, `\"`, `"`), `"queue_weight"`) || !strings.Contains(dump, "2") {
		t.Error("the last configuration is not in force")
	}
}

// TestAbortedRequests leaves 200 requests, half before and half after the
// head of the answer: nothing may stay on the books.
func TestAbortedRequests(t *testing.T) {
	list := backends(t, 2)
	for _, b := range list {
		b.answer = func(w http.ResponseWriter, r *http.Request, body []byte) {
			if strings.Contains(string(body), "slow head") {
				<-r.Context().Done()
				return
			}
			w.Header().Set("content-type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	h := start(t, "-replicas", addresses(list), "-workers", "2")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			text := "stream"
			if i%2 == 0 {
				text = "slow head"
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/v1/chat/completions", strings.NewReader(string(message(fmt.Sprint(text, i)))))
			req.Header.Set("content-type", "application/json")
			if resp, err := kept.Do(req); err == nil {
				buf := make([]byte, 1024)
				for err == nil {
					_, err = resp.Body.Read(buf)
				}
				resp.Body.Close()
			}
		}()
	}
	wg.Wait()
	h.settled()
	h.eventually(5*time.Second, "all counted as cancelled", func() bool {
		return h.series("warmlane_outcomes_total", `outcome="client_cancelled"`) == 200
	})
	// Nobody is left out after that.
	for _, b := range list {
		b.answer = nil
		b.arrivals()
	}
	for i := range 30 {
		r := post(kept, h.url+"/v1/chat/completions", message(fmt.Sprint("after ", i, strings.Repeat("y", 2000))))
		r.where(t)
	}
	for _, b := range list {
		if n := len(b.arrivals()); n < 5 {
			t.Errorf("%s got %d of 30 after the aborts", b.address, n)
		}
	}
}
