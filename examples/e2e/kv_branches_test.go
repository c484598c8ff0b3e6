//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// TestKVAsk has prompts tokenized before they are placed. What is cached was
// put there past Envoy, so that nothing but the engines' events can tell of it.
func TestKVAsk(t *testing.T) {
	f := startFleet(t, engines(t, 3, nil), pool(t, "kv_events: true, tokenize: ask, tokenize_timeout_ms: 1000"), "-workers", "1")
	f.indexed(t)
	f.run(t, []part{
		{"hit", f.hit}, {"token ids", f.tokenIDs}, {"miss", f.miss}, {"override", f.override}, {"predictions", f.predictions},
		{"unsupported", f.unsupported}, {"failures", f.failures}, {"rest", f.rest}, {"framing", f.framing}, {"client leaves", f.clientLeaves},
	})
	f.settled()
	if n := f.series("warmlane_panics_total"); n != 0 {
		t.Errorf("%v panics", n)
	}
}

// hit finds texts at each replica that has them.
func (f *fleet) hit(t *testing.T) {
	for i := range f.replicas {
		conversation := chat(words(fmt.Sprint("hit", i), 200))
		warm := f.direct(t, i, chatPath, body(conversation))
		completion := object{"model": "m", "prompt": words(fmt.Sprint("text", i), 150), "max_tokens": 1}
		text := f.direct(t, i, completionPath, body(completion))
		f.indexed(t)
		f.want(t, f.ask(t, chatPath, body(conversation)), 2, "kv_hit", i, wholeBlocks(warm.prompt))
		f.want(t, f.ask(t, completionPath, body(completion)), 2, "kv_hit", i, wholeBlocks(text.prompt))
		streamed := with(with(conversation, "stream", true), "stream_options", object{"include_usage": true})
		f.want(t, f.ask(t, chatPath, body(streamed)), 2, "kv_hit", i, wholeBlocks(warm.prompt))
	}
}

// tokenIDs finds a prompt in token ids without a call.
func (f *fleet) tokenIDs(t *testing.T) {
	f.direct(t, 2, completionPath, idPrompt(ids(1, 100)))
	f.indexed(t)
	f.forget()
	f.want(t, f.ask(t, completionPath, idPrompt(append(ids(1, 100), ids(2, 50)...))), 2, "kv_hit", 2, 96)
	if n := f.tokenized(); n > 0 {
		t.Errorf("%d calls of /tokenize for a prompt in token ids", n)
	}
}

// miss finds nothing, which is certain.
func (f *fleet) miss(t *testing.T) {
	f.want(t, f.ask(t, chatPath, body(chat(words("miss", 100)))), 2, "kv_miss_min_load", -1, 0)
	f.want(t, f.ask(t, completionPath, idPrompt(ids(3, 100))), 2, "kv_miss_min_load", -1, 0)
}

// predictions were all right so far.
func (f *fleet) predictions(t *testing.T) {
	f.counted(t, 2, "kv_hit", 10)
	f.counted(t, 2, "kv_miss_min_load", 2)
	f.counted(t, 2, "load_balance_override", 1)
	if n := f.series("warmlane_predicted_error_tokens_total", `pool="default"`, `model="m"`); n != 0 {
		t.Errorf("predictions were wrong by %v tokens", n)
	}
}

// unsupported sends prompts of which /tokenize cannot tell the tokens: they are
// placed by their text.
func (f *fleet) unsupported(t *testing.T) {
	image := object{"model": "m", "max_tokens": 1, "messages": []object{{"role": "user", "content": []object{
		{"type": "text", "text": words("image", 100)}, {"type": "image_url", "image_url": object{"url": "data:image/png;base64,AAAA"}},
	}}}}
	two := body(object{"model": "m", "prompt": []string{words("one", 64), words("two", 64)}, "max_tokens": 1})
	f.forget()
	f.want(t, f.ask(t, chatPath, body(image)), 1, "cache_miss_min_load", -1, -1)
	f.want(t, f.ask(t, completionPath, two), 1, "cache_miss_min_load", -1, -1)
	f.want(t, f.ask(t, completionPath, two), 1, "cache_hit", -1, -1)
	f.want(t, f.ask(t, completionPath, idPrompt([]any{ids(4, 64), ids(5, 64)})), 1, "cache_miss_min_load", -1, -1)
	if n := f.tokenized(); n > 0 {
		t.Errorf("%d calls of /tokenize for prompts it cannot tell", n)
	}
	f.counted(t, 2, "fallback_unsupported", 4)
	f.counted(t, 1, "cache_miss_min_load", 3)
	f.counted(t, 1, "cache_hit", 1)
}

// counted waits until at least n decisions have been counted.
func (f *fleet) counted(t *testing.T, tier int, branch string, n float64) {
	t.Helper()
	f.eventually(5*time.Second, fmt.Sprintf("%v times %s on tier %d", n, branch, tier), func() bool {
		return f.series("warmlane_decisions_total", fmt.Sprintf(`tier="%d"`, tier), fmt.Sprintf(`branch=%q`, branch), `pool="default"`, `model="m"`) >= n
	})
}

// override overloads the replica that holds a short prompt: another one gets it,
// who has nothing of it.
func (f *fleet) override(t *testing.T) {
	f.direct(t, 1, completionPath, idPrompt(ids(6, 65)))
	f.indexed(t)
	ctx, cancel := context.WithCancel(context.Background())
	var crowd sync.WaitGroup
	defer func() { cancel(); crowd.Wait() }()
	f.replicas[1].Faults(`{"slow": 100}`)
	defer f.replicas[1].Heal()
	for i := range 120 { // 64 of them run
		long := body(object{"model": "m", "prompt": ids(1000+i, 20), "max_tokens": 1000})
		crowd.Go(func() { leave(ctx, f.replicas[1].URL+completionPath, long) })
	}
	f.eventually(5*time.Second, "control sees the crowd", func() bool {
		for _, r := range f.pools().Pools[0].Replicas {
			if r.Slot == f.slots[1] && r.Load.Waiting != nil && *r.Load.Waiting > 40 {
				return true
			}
		}
		return false
	})
	f.current()
	// A worker learns of new state with a request that still goes by the old one.
	post(fresh, f.url+"/tokenize", body(object{"model": "m", "prompt": "x"}))
	a := f.ask(t, completionPath, idPrompt(append(ids(6, 65), ids(7, 40)...)))
	f.want(t, a, 2, "load_balance_override", -1, 0)
	if a.at == 1 {
		t.Error("the crowded replica answered")
	}
}

// failures has /tokenize fail in every way: the text tier decides, in time, and
// tier 2 is back when the replicas are.
func (f *fleet) failures(t *testing.T) {
	const timeout = time.Second
	for _, each := range []struct{ fault, outcome string }{
		{"error", "error"}, {"garbage", "error"}, {"hang", "timeout"},
	} {
		outcome := `outcome="` + each.outcome + `"`
		before := f.series("warmlane_tokenize_total", `pool="default"`, outcome)
		f.faults(`{"tokenize": "` + each.fault + `"}`)
		prompt := body(chat(words(each.fault, 100)))
		start := time.Now()
		f.want(t, f.ask(t, chatPath, prompt), 1, "cache_miss_min_load", -1, -1)
		if took := time.Since(start); each.outcome == "timeout" && (took < timeout || took > timeout+2*time.Second) {
			t.Errorf("held for %v, want %v", took, timeout)
		}
		f.want(t, f.ask(t, chatPath, prompt), 1, "cache_hit", -1, -1)
		f.eventually(5*time.Second, "two calls with "+outcome, func() bool {
			return f.series("warmlane_tokenize_total", `pool="default"`, outcome) == before+2
		})
		f.heal(t)
	}
	f.counted(t, 2, "fallback_tokenize_failed", 6)
	f.counted(t, 1, "cache_miss_min_load", 6)
	f.counted(t, 1, "cache_hit", 4)
	if n := f.series("warmlane_tokenize_total", `outcome="ok"`); n == 0 {
		t.Error("no call counted as good")
	}
}

// rest sees that a broken page is not asked again and again.
func (f *fleet) rest(t *testing.T) {
	f.faults(`{"tokenize": "error"}`)
	f.forget()
	for range 30 {
		f.ask(t, chatPath, body(chat(words("rest", 50))))
	}
	if n := f.tokenized(); n > 8 {
		t.Errorf("%d calls for 30 requests while all fail", n)
	}
	f.heal(t)
}

// heal switches all faults off and waits until prompts are tokenized again.
func (f *fleet) heal(t *testing.T) {
	t.Helper()
	for _, r := range f.replicas {
		r.Heal()
	}
	f.eventually(10*time.Second, "tier 2 again", func() bool {
		a := f.ask(t, chatPath, body(chat("heal "+fmt.Sprint(time.Now().UnixNano()))))
		return a.item("tier") == 2
	})
}

// framing sends bodies in pieces: they are held while the prompt is tokenized
// and arrive as they were sent, in one framing.
func (f *fleet) framing(t *testing.T) {
	for _, size := range []int{10, 25_000} {
		text := words(fmt.Sprint("x\n\"\u00e9", size), size)
		for name, reader := range map[string]func([]byte) io.Reader{
			"whole":      func(b []byte) io.Reader { return bytes.NewReader(b) },
			"chunked":    func(b []byte) io.Reader { return piped(b, 64<<10) },
			"odd chunks": func(b []byte) io.Reader { return piped(b, 997) },
		} {
			f.forget()
			sent := body(chat(name + text))
			a := f.read(t, send(fresh, f.url+chatPath, reader(sent), "x-warmlane-explain", "1"))
			f.want(t, a, 2, a.branch(), -1, -1)
			f.arrived(t, sent)
		}
	}
}

// clientLeaves has clients go away while their requests are held: nothing is
// left of these.
func (f *fleet) clientLeaves(t *testing.T) {
	f.faults(`{"tokenize": "hang"}`)
	f.forget()
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for i := range 20 {
		wg.Go(func() { leave(ctx, f.url+chatPath, body(chat(words(fmt.Sprint("left", i), 50)))) })
	}
	wg.Wait()
	f.settled()
	for _, r := range f.replicas {
		r.Heal()
		for _, e := range r.Requests() {
			if e.Path == chatPath {
				t.Error("a request whose client had left was sent to a replica")
			}
		}
	}
	f.eventually(5*time.Second, "the calls for them end", func() bool { return f.tokenized() > 0 })
	for i := range 10 {
		a := f.ask(t, chatPath, body(chat(words(fmt.Sprint("after", i), 50))))
		f.want(t, a, 2, "kv_miss_min_load", -1, 0)
	}
}

// arrived asserts that just one replica got a body, as it was sent and with one
// framing, and that a replica was asked for its tokens before.
func (f *fleet) arrived(t *testing.T, sent []byte) {
	t.Helper()
	sum := sha256.Sum256(sent)
	want := hex.EncodeToString(sum[:])
	seen := map[string]int{}
	for _, r := range f.replicas {
		for _, e := range r.Requests() {
			if e.Method != "POST" {
				continue
			}
			seen[e.Path]++
			if e.BodySHA256 != want {
				t.Errorf("%s: %d bytes arrived of %d that were sent", e.Path, e.BodyBytes, len(sent))
			}
			switch {
			case e.ContentLength == nil && e.TransferEncoding != "chunked", e.ContentLength != nil && e.TransferEncoding != "":
				t.Errorf("%s: content-length %v, transfer-encoding %q", e.Path, e.ContentLength, e.TransferEncoding)
			case e.ContentLength != nil && *e.ContentLength != int64(len(sent)):
				t.Errorf("%s: content-length %d for %d bytes", e.Path, *e.ContentLength, len(sent))
			}
		}
	}
	if seen[chatPath] != 1 || seen["/tokenize"] != 1 {
		t.Errorf("requests arrived %v", seen)
	}
}
