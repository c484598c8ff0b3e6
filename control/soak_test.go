//go:build soak

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/replicatest"
	"github.com/warmlane/warmlane/filter/state"
)

// The soak: control over eight engines that are busy, lose events, drop their
// caches, are started anew, leave and come back, all at random. At the end it
// knows what each of them has, and needs neither more memory nor more goroutines
// than early on. WARMLANE_SOAK says how long; default 30m.
func TestSoak(t *testing.T) {
	length := 30 * time.Minute
	if text := os.Getenv("WARMLANE_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSoak(t, 8)
	end := time.Now().Add(length)
	var busy sync.WaitGroup
	for i := range s.engines {
		busy.Go(func() { s.use(i, end) })
	}
	busy.Go(func() { s.upset(end) })
	busy.Go(func() { s.follow(end) })
	early, late := s.measure(t, length/3), s.measure(t, length-length/3)
	busy.Wait()
	for _, r := range s.engines {
		if err := complete(r, "brings the clear that may be due, and must be longer than a block of tokens is, so here is more"); err != nil {
			t.Error(err)
		}
	}
	s.agree()
	t.Logf("%d requests, %d restarts; heap %d then %d KiB, goroutines %d then %d",
		s.requests, s.restarts, early.heap>>10, late.heap>>10, early.goroutines, late.goroutines)
	if late.heap > early.heap+early.heap/4+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", early.heap, late.heap)
	}
	if late.goroutines > early.goroutines+16 {
		t.Errorf("goroutines grew from %d to %d", early.goroutines, late.goroutines)
	}
	if s.requests == 0 || s.restarts == 0 && length > time.Minute {
		t.Errorf("%d requests, %d restarts", s.requests, s.restarts)
	}
}

type soak struct {
	t       *testing.T
	engines []*replicatest.Replica
	file    string
	p       *program

	mu                 sync.Mutex
	requests, restarts int
}

func newSoak(t *testing.T, n int) *soak {
	s := &soak{t: t, file: filepath.Join(t.TempDir(), "replicas")}
	bin := replicatest.Build(t)
	for range n {
		s.engines = append(s.engines, replicatest.StartProcess(t, bin, "-speed", "20", "-num-gpu-blocks", "2000",
			"-kv-events", "tcp://127.0.0.1:0", "-kv-replay", "tcp://127.0.0.1:0", "-kv-keep", "100000"))
	}
	s.write(-1)
	s.p = launch(t, "pools: [{name: default, kv_events: {discover_every: 5s}, replicas_file: "+s.file+"}]")
	return s
}

// write lists all engines but one.
func (s *soak) write(without int) {
	var text strings.Builder
	for i, r := range s.engines {
		if i != without {
			text.WriteString(r.Addr + "\n")
		}
	}
	write(s.t, s.file, text.String())
}

// use sends prompts that have much in common to an engine. Some are lost, as
// engines are started anew.
func (s *soak) use(i int, end time.Time) {
	for time.Now().Before(end) {
		n := rand.IntN(200)
		text := strings.Repeat(fmt.Sprint("system", n%5, " "), 200) + strings.Repeat(fmt.Sprint("user", n, " "), 20+n)
		body := fmt.Sprintf(`{"prompt":%q,"max_tokens":20}`, text)
		req, err := http.NewRequest(http.MethodPost, s.engines[i].URL+"/v1/completions", strings.NewReader(body))
		if err != nil {
			s.t.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Session-ID", fmt.Sprintf("wl1-%016x", n+1))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			s.mu.Lock()
			s.requests++
			s.mu.Unlock()
		}
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

// upset does something to an engine every now and then.
func (s *soak) upset(end time.Time) {
	for time.Now().Before(end) {
		i := rand.IntN(len(s.engines))
		switch rand.IntN(5) {
		case 0, 1:
			s.engines[i].Faults(`{"restart": true}`)
			s.mu.Lock()
			s.restarts++
			s.mu.Unlock()
		case 2:
			s.engines[i].Faults(`{"drop_batches": 3}`)
		case 3:
			if resp, err := http.Post(s.engines[i].URL+"/reset_prefix_cache", "application/json", nil); err == nil {
				resp.Body.Close()
			}
		default:
			s.write(i)
			time.Sleep(time.Second)
			s.write(-1)
		}
		time.Sleep(rand.N(4 * time.Second))
	}
}

// follow polls as a filter does.
func (s *soak) follow(end time.Time) {
	var v state.View
	for time.Now().Before(end) {
		resp, err := http.Get(s.p.url + v.Query([]string{"default"}))
		if err != nil {
			s.t.Error(err)
			return
		}
		s.apply(&v, resp)
	}
}

func (s *soak) apply(v *state.View, resp *http.Response) {
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return
	}
	page, err := io.ReadAll(resp.Body)
	if err == nil {
		_, err = v.Apply(page)
	}
	if err != nil {
		s.t.Errorf("state: %v", err)
	}
}

type footprint struct {
	heap       uint64 // bytes in use
	goroutines int
}

// measure waits, and takes the least of some measures: what is in use for a
// moment only does not count.
func (s *soak) measure(t *testing.T, after time.Duration) (least footprint) {
	t.Helper()
	time.Sleep(after * 9 / 10)
	for i := range 10 {
		time.Sleep(after / 100)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now := footprint{m.HeapInuse, runtime.NumGoroutine()}
		if i == 0 {
			least = now
		}
		least = footprint{min(least.heap, now.heap), min(least.goroutines, now.goroutines)}
	}
	return least
}

// agree compares what is known of each engine with what it has.
func (s *soak) agree() {
	var v state.View
	s.p.follow(s.t, &v, "all there", func(rs []state.Replica) bool {
		for _, r := range rs {
			if r.KV == state.KVNone {
				return false
			}
		}
		return len(rs) == len(s.engines)
	})
	byAddress := map[string]uint16{}
	for _, r := range v.Snapshot().Pools[0].Replicas {
		byAddress[r.Address] = r.Slot
	}
	for _, r := range s.engines {
		s.p.agree(s.t, byAddress[r.Addr], r)
	}
}
