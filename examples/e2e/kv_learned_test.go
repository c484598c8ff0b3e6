//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmlane/warmlane/examples/replica/node"
	"github.com/warmlane/warmlane/examples/replica/replicatest"
)

// TestKVLearned has prompts known by what engines told of earlier ones.
func TestKVLearned(t *testing.T) {
	list := engines(t, 3, nil)
	f := startFleet(t, list, pool(t, "kv_events: true, tokenize: learned"), "-workers", "2")
	f.ask(t, chatPath, body(chat(words("first", 40)))) // its events tell that they carry tags
	f.indexed(t)
	f.run(t, []part{{"second turn", f.secondTurn}, {"own session", f.ownSession}, {"namespaces", f.namespaces}})
	f.settled()
	f.counted(t, 2, "kv_hit", 3)
}

// secondTurn continues conversations: their tags have told the blocks, and no
// replica was asked.
func (f *fleet) secondTurn(t *testing.T) {
	f.forget()
	for i := range 5 {
		first := chat(words(fmt.Sprint("turn", i), 100+7*i))
		a := f.ask(t, chatPath, body(first))
		f.want(t, a, 2, "kv_miss_min_load", -1, 0)
		f.indexed(t)
		f.want(t, f.ask(t, chatPath, body(first)), 2, "kv_hit", a.at, wholeBlocks(a.prompt))
		second := chat(words(fmt.Sprint("turn", i), 100+7*i), " fine", words("more", 30))
		b := f.ask(t, chatPath, body(second))
		f.want(t, b, 2, "kv_hit", a.at, a.prompt/blockSize*blockSize)
		f.indexed(t)
		f.want(t, f.ask(t, chatPath, body(second)), 2, "kv_hit", a.at, wholeBlocks(b.prompt))
	}
	if n := f.tokenized(); n > 0 {
		t.Errorf("%d calls of /tokenize, though tags tell", n)
	}
	for _, r := range f.replicas {
		for _, e := range r.Requests() {
			if tag := e.Headers["x-session-id"]; e.Path == chatPath && (!strings.HasPrefix(tag, "wl1-") || len(tag) != 20) {
				t.Errorf("tag %q", tag)
			}
		}
	}
}

// ownSession has a client with sessions of its own, which stand where the tag
// would: a call learns the prompt when the request has left.
func (f *fleet) ownSession(t *testing.T) {
	const session = "the client's own, 42"
	prompt := body(chat(words("own", 120)))
	f.forget()
	a := f.ask(t, chatPath, prompt, "x-session-id", session)
	f.want(t, a, 2, "kv_miss_min_load", -1, 0)
	f.indexed(t)
	f.eventually(5*time.Second, "a call of /tokenize", func() bool { return f.tokenized() == 1 })
	f.indexed(t)
	for range 2 {
		f.want(t, f.ask(t, chatPath, prompt, "x-session-id", session), 2, "kv_hit", a.at, wholeBlocks(a.prompt))
	}
	next := body(chat(words("own", 120), " fine", words("more", 30)))
	f.want(t, f.ask(t, chatPath, next, "x-session-id", session), 2, "kv_hit", a.at, a.prompt/blockSize*blockSize)
	f.eventually(5*time.Second, "a call for the next turn", func() bool { return f.tokenized() == 2 })
	// No request waits for such a call.
	f.faults(`{"tokenize": "hang"}`)
	start := time.Now()
	f.ask(t, chatPath, body(chat(words("unheard", 50))), "x-session-id", session)
	if took := time.Since(start); took > 3*time.Second { // a call is given five
		t.Errorf("a request took %v while /tokenize hangs", took)
	}
	f.faults(`{"tokenize": ""}`)
	for _, r := range f.replicas {
		for _, e := range r.Requests() {
			if e.Path == chatPath && e.Headers["x-session-id"] != session {
				t.Errorf("session %q arrived, want %q", e.Headers["x-session-id"], session)
			}
		}
	}
}

// namespaces has one text in different namespaces: what is cached for one salt
// or adapter is nothing to another.
func (f *fleet) namespaces(t *testing.T) {
	for _, r := range f.replicas {
		post(fresh, r.URL+"/v1/load_lora_adapter", []byte(`{"lora_name":"sql","lora_path":"/a"}`))
		post(fresh, r.URL+"/v1/load_lora_adapter", []byte(`{"lora_name":"law","lora_path":"/b"}`))
	}
	f.eventually(10*time.Second, "adapters known", func() bool {
		for _, r := range f.pools().Pools[0].Replicas {
			if len(r.Adapters) != 2 {
				return false
			}
		}
		return true
	})
	f.current()
	for _, prompt := range []struct {
		path string
		object
	}{
		{completionPath, object{"model": "m", "prompt": ids(20, 100), "max_tokens": 1}},
		{chatPath, chat(words("space", 100))},
	} {
		for _, v := range []object{
			prompt.object, with(prompt.object, "model", "sql"), with(prompt.object, "model", "law"),
			with(prompt.object, "cache_salt", "a"), with(prompt.object, "cache_salt", "b \u00e9\n"), with(prompt.object, "cache_salt", "sql"),
			with(with(prompt.object, "model", "sql"), "cache_salt", "a"),
		} {
			a := f.ask(t, prompt.path, body(v))
			f.want(t, a, 2, "kv_miss_min_load", -1, 0)
			f.indexed(t)
			f.want(t, f.ask(t, prompt.path, body(v)), 2, "kv_hit", a.at, wholeBlocks(a.prompt))
		}
	}
}

// TestKVWithoutTags has engines that publish the events of older versions,
// without sessions: calls after the request learn the prompts, within the budget.
func TestKVWithoutTags(t *testing.T) {
	var html atomic.Bool
	list := engines(t, 2, func(o *node.Options) { o.Events.Shape.ArrayEvents = true })
	for _, r := range list {
		front(t, r, &html)
	}
	f := startFleet(t, list, pool(t, "kv_events: true, tokenize: learned, tokenize_budget: {calls_per_s: 5, in_flight: 1}"), "-workers", "1")
	f.indexed(t)
	first := chat(words("turn", 100))
	a := f.ask(t, chatPath, body(first))
	f.want(t, a, 2, "kv_miss_min_load", -1, 0)
	f.eventually(5*time.Second, "a call of /tokenize", func() bool { return f.tokenized() == 1 })
	f.indexed(t)
	f.want(t, f.ask(t, chatPath, body(first)), 2, "kv_hit", a.at, wholeBlocks(a.prompt))
	second := chat(words("turn", 100), " fine", words("more", 30))
	f.want(t, f.ask(t, chatPath, body(second)), 2, "kv_hit", a.at, a.prompt/blockSize*blockSize)
	f.pageInstead(t, &html)
	start, before := time.Now(), f.tokenized()
	for i := range 40 {
		f.ask(t, chatPath, body(chat(words(fmt.Sprint("many", i), 50))))
	}
	time.Sleep(100 * time.Millisecond) // the last call's answer
	most := 5 + int(5*time.Since(start).Seconds()+1)
	if n := f.tokenized() - before; n == 0 || n > most {
		t.Errorf("%d calls for 40 new prompts, want 1 to %d", n, most)
	}
	f.settled()
}

// front puts a server before a replica that answers /tokenize with a page, while
// that is wanted, and else hands on.
func front(t *testing.T, r *replicatest.Replica, html *atomic.Bool) {
	target, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if html.Load() && req.URL.Path == "/tokenize" {
			w.Header().Set("content-type", "text/html")
			_, _ = io.WriteString(w, "<html><body>Welcome</body></html>")
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.Addr = server.Listener.Addr().String()
}

// pageInstead has a call be answered with a page, of which nothing is learned:
// the text tier decides the next time, and another call learns.
func (f *fleet) pageInstead(t *testing.T, html *atomic.Bool) {
	prompt := body(chat(words("page", 100)))
	f.eventually(5*time.Second, "the calls before answered", func() bool {
		return f.series("warmlane_tokenize_total", `outcome="ok"`) == float64(f.tokenized())
	})
	html.Store(true)
	a := f.ask(t, chatPath, prompt)
	f.want(t, a, 2, "kv_miss_min_load", -1, 0)
	f.eventually(5*time.Second, "the page counted as an error", func() bool {
		return f.series("warmlane_tokenize_total", `outcome="error"`) == 1
	})
	html.Store(false)
	calls := f.tokenized()
	f.want(t, f.ask(t, chatPath, prompt), 1, "cache_hit", a.at, -1)
	f.counted(t, 2, "fallback_tokenize_failed", 1)
	f.eventually(5*time.Second, "another call", func() bool { return f.tokenized() == calls+1 })
	f.indexed(t)
	f.want(t, f.ask(t, chatPath, prompt), 2, "kv_hit", a.at, wholeBlocks(a.prompt))
}

// TestKVNoIndex has a pool with kv_events whose replicas publish none.
func TestKVNoIndex(t *testing.T) {
	list := engines(t, 2, func(o *node.Options) { o.Events = nil })
	f := startFleet(t, list, pool(t, "kv_events: true, tokenize: ask"), "-workers", "1")
	prompt := body(chat(words("plain", 100)))
	a := f.ask(t, chatPath, prompt)
	f.want(t, a, 1, "cache_miss_min_load", -1, -1)
	f.want(t, f.ask(t, chatPath, prompt), 1, "cache_hit", a.at, -1)
	f.counted(t, 2, "fallback_no_index", 2)
	f.counted(t, 1, "cache_hit", 1)
	if n := f.tokenized(); n > 0 {
		t.Errorf("%d calls of /tokenize without an index", n)
	}
	f.settled()
}
