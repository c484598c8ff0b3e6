package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/warmlane/warmlane/examples/replica/engine"
	"github.com/warmlane/warmlane/examples/replica/kvevents"
	"github.com/warmlane/warmlane/examples/replica/wire"
)

func start(t *testing.T, o Options) *Replica {
	t.Helper()
	r, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

func loopback() *kvevents.Options {
	return &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: "kv@a@tiny"}
}

func post(t *testing.T, r *Replica, path, body string) (int, string) {
	t.Helper()
	status, text, err := tryPost(r, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

func tryPost(r *Replica, path, body string) (int, string, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post("http://"+r.Addr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func get(t *testing.T, r *Replica, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + r.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within 10 s", what)
		}
	}
}

// index is a consumer of the events, as a router would have one.
type index struct {
	mu     sync.Mutex
	seqs   []uint64
	blocks map[uint64]int
}

func (x *index) apply(t *testing.T, frames [][]byte) {
	var batch struct {
		_msgpack struct{} `msgpack:",as_array"` //nolint:unused // tells the decoder the shape
		TS       float64
		Events   []struct {
			Type   string   `msgpack:"type"`
			Hashes []uint64 `msgpack:"block_hashes"`
		}
		Rank int
	}
	if err := msgpack.Unmarshal(frames[2], &batch); err != nil {
		t.Error(err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seqs = append(x.seqs, binary.BigEndian.Uint64(frames[1]))
	for _, ev := range batch.Events {
		switch ev.Type {
		case "AllBlocksCleared":
			clear(x.blocks)
		case "BlockStored":
			for _, h := range ev.Hashes {
				x.blocks[h]++
			}
		case "BlockRemoved":
			if x.blocks[ev.Hashes[0]]--; x.blocks[ev.Hashes[0]] == 0 {
				delete(x.blocks, ev.Hashes[0])
			}
		}
	}
}

func (x *index) state() (last uint64, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.seqs) > 0 {
		last = x.seqs[len(x.seqs)-1]
	}
	return last, len(x.seqs)
}

// follow subscribes to a replica's events.
func follow(t *testing.T, r *Replica) *index {
	t.Helper()
	x := &index{blocks: map[uint64]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	sub := zmq4.NewSub(ctx)
	t.Cleanup(func() { cancel(); _ = sub.Close() })
	if err := sub.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	events, _ := r.Events()
	if err := sub.Dial(events); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	go func() {
		for {
			m, err := sub.Recv()
			if err != nil {
				return
			}
			x.apply(t, m.Frames)
		}
	}()
	return x
}

type cache struct {
	NextSeq uint64 `json:"next_seq"`
	Unsent  int
	Blocks  []struct {
		Hash   uint64
		Copies int
	}
}

// TestEventsEqualBlocks sends traffic that fills a small cache many times over
// and compares what the events told with what the engine lists.
func TestEventsEqualBlocks(t *testing.T) {
	r := start(t, Options{Speed: 50, Engine: engine.Config{Blocks: 60, MaxSeqs: 8, MaxModelLen: 600}, Events: loopback()})
	x := follow(t, r)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 12 {
				body := fmt.Sprintf(`{"prompt":"%s %s","max_tokens":%d}`, strings.Repeat(fmt.Sprint(" shared", i%3), 40), strings.Repeat(fmt.Sprint(" own", worker, i), 20), 1+i*3)
				if status, text, err := tryPost(r, "/v1/completions", body); err != nil || status != 200 {
					t.Errorf("%d %v %s", status, err, text)
				}
			}
		})
	}
	wg.Wait()
	var c cache
	if err := json.Unmarshal([]byte(get(t, r, "/debug/blocks?tokens=0")), &c); err != nil {
		t.Fatal(err)
	}
	if c.Unsent != 0 || c.NextSeq == 0 {
		t.Fatalf("idle, but %d events unsent, next %d", c.Unsent, c.NextSeq)
	}
	until(t, "the last batch", func() bool { last, _ := x.state(); return last+1 == c.NextSeq })
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, s := range x.seqs {
		if s != uint64(i) {
			t.Fatalf("batch %d has number %d", i, s)
		}
	}
	for _, b := range c.Blocks {
		if x.blocks[b.Hash] != b.Copies {
			t.Errorf("block %x: events say %d, engine %d", b.Hash, x.blocks[b.Hash], b.Copies)
		}
	}
	if len(x.blocks) != len(c.Blocks) || len(c.Blocks) < 20 {
		t.Errorf("events tell of %d blocks, the engine has %d", len(x.blocks), len(c.Blocks))
	}
}

var startTime = regexp.MustCompile(`(?m)^process_start_time_seconds (\S+)`)

const warm = `{"prompt":"The suite of the compound statement is executed, and after that comes one more sentence for a full block.","max_tokens":1}`

func TestRestart(t *testing.T) {
	r := start(t, Options{Speed: 50, Events: loopback()})
	post(t, r, "/v1/load_lora_adapter", `{"lora_name":"a","lora_path":"/a"}`)
	x := follow(t, r)
	post(t, r, "/v1/completions", warm)
	until(t, "a batch", func() bool { _, n := x.state(); return n > 0 })
	before := startTime.FindString(get(t, r, "/metrics"))
	events, replay := r.Events()
	dead, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dead.Close() }()
	get(t, r, "/health") // connections are accepted in order: now dead is one of them

	if status, _ := post(t, r, "/debug/faults", `{"restart":true}`); status != 200 {
		t.Fatalf("status %d", status)
	}
	_ = dead.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := dead.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("an old connection reads %v, want it cut", err)
	}
	if after := startTime.FindString(get(t, r, "/metrics")); after == before || after == "" {
		t.Errorf("start time before %q, after %q", before, after)
	}
	if e, p := r.Events(); e != events || p != replay {
		t.Errorf("events moved from %s %s to %s %s", events, replay, e, p)
	}
	if text := get(t, r, "/v1/models"); strings.Contains(text, `"id":"a"`) {
		t.Error("the adapter outlived the restart")
	}
	if last, n := x.state(); n != 1 || last != 0 {
		t.Errorf("before the restart %d batches, the last %d", n, last)
	}
	y := follow(t, r)
	if _, text := post(t, r, "/v1/completions", warm); !strings.Contains(text, `"cached_tokens":0`) {
		t.Errorf("the cache outlived the restart: %s", text)
	}
	until(t, "a batch", func() bool { _, n := y.state(); return n > 0 })
	if last, n := y.state(); n != 1 || last != 0 {
		t.Errorf("after the restart %d batches, the last %d; want one, number 0", n, last)
	}
	if n := len(r.Journal().Last(0)); n == 0 {
		t.Error("the journal did not outlive the restart")
	}
}

func TestRefuse(t *testing.T) {
	f := func(action string, wantCached string) {
		t.Helper()
		r := start(t, Options{Speed: 50, Events: loopback()})
		post(t, r, "/v1/completions", warm)
		post(t, r, "/debug/faults", action)
		if _, err := net.Dial("tcp", r.Addr()); err == nil {
			t.Errorf("%s: connections are taken", action)
		}
		var text string
		until(t, "answer after "+action, func() (ok bool) {
			_, answer, err := tryPost(r, "/v1/completions", warm)
			text = answer
			return err == nil
		})
		if !strings.Contains(text, wantCached) {
			t.Errorf("%s: back with %s, want %s", action, text, wantCached)
		}
		if e, _ := r.Events(); e == "" {
			t.Errorf("%s: back without events", action)
		}
	}
	f(`{"refuse_s":0.8}`, `"cached_tokens":16`)
	f(`{"refuse_s":0.8,"restart":true}`, `"cached_tokens":0`)
}

func TestDropBatches(t *testing.T) {
	r := start(t, Options{Speed: 50, Events: loopback()})
	x := follow(t, r)
	r.Do(wire.Action{DropBatches: 1})
	post(t, r, "/v1/completions", warm)
	post(t, r, "/v1/completions", strings.Replace(warm, "suite", "house", 1))
	until(t, "a batch", func() bool { _, n := x.state(); return n > 0 })
	if last, n := x.state(); n != 1 || last != 1 {
		t.Errorf("got %d batches, the last %d; want only number 1", n, last)
	}
}

func TestExit(t *testing.T) {
	gone := make(chan struct{})
	r := start(t, Options{Exit: func() { close(gone) }})
	post(t, r, "/debug/faults", `{"exit":true}`)
	select {
	case <-gone:
	case <-time.After(time.Second):
		t.Error("exit was not called")
	}
	r = start(t, Options{})
	if _, _, err := tryPost(r, "/debug/faults", `{"exit":true}`); err == nil {
		t.Error("a killed replica answered")
	}
	if _, err := net.Dial("tcp", r.Addr()); err == nil {
		t.Error("a killed replica takes connections")
	}
}

func TestStopWaitsForStreams(t *testing.T) {
	var log bytes.Buffer
	r := start(t, Options{Log: &log})
	done := make(chan string, 1)
	go func() {
		_, text, _ := tryPost(r, "/v1/completions", `{"prompt":"x","max_tokens":12,"stream":true}`)
		done <- text
	}()
	until(t, "a request under way", func() bool { return get(t, r, "/load") == `{"server_load":1}` })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
	if text := <-done; !strings.HasSuffix(text, "data: [DONE]\n\n") {
		t.Errorf("the stream was cut: %q", text)
	}
	var e wire.Entry
	if err := json.Unmarshal(log.Bytes(), &e); err != nil || e.CompletionTokens != 12 {
		t.Errorf("log %q: %v", log.String(), err)
	}

	r = start(t, Options{Faults: wire.Faults{Hang: true}})
	go func() { _, _, _ = tryPost(r, "/v1/completions", `{"prompt":"x"}`) }()
	until(t, "a request under way", func() bool { return get(t, r, "/load") == `{"server_load":1}` })
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Stop(short); err == nil {
		t.Error("a request that hangs was waited for")
	}
}

func TestStartRefuses(t *testing.T) {
	r := start(t, Options{})
	f := func(o Options, want string) {
		t.Helper()
		if n, err := Start(o); err == nil {
			n.Kill()
			t.Errorf("%+v started", o)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	f(Options{Listen: r.Addr()}, "address already in use")
	f(Options{Events: &kvevents.Options{Endpoint: "tcp://" + r.Addr()}}, "events at tcp://")
	f(Options{Events: &kvevents.Options{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://" + r.Addr()}}, "replay at tcp://")
	f(Options{Faults: wire.Faults{Metrics: "odd"}}, "metrics")
}
