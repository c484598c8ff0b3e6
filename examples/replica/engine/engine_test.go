package engine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// prompt makes n tokens that depend on the seed from the first one on.
func prompt(seed, n int) []Token {
	out := make([]Token, n)
	for i := range out {
		out[i] = firstText + Token(mix(uint64(seed)<<32+uint64(i))%1000)
	}
	return out
}

// drain runs the engine until it is idle and returns the time.
func drain(e *Engine) (now time.Duration) {
	for at, busy := e.Next(); busy; at, busy = e.Next() {
		now = at
		e.Advance(at)
	}
	return now
}

// run submits one request, waits for its end and returns it.
func run(t *testing.T, e *Engine, s Spec) *Request {
	t.Helper()
	r := e.NewRequest(s)
	if err := e.Submit(e.now, r); err != nil {
		t.Fatalf("submit: %v", err)
	}
	drain(e)
	if r.phase != phaseDone {
		t.Fatalf("request is in phase %d after the engine went idle", r.phase)
	}
	return r
}

func TestCachedTokens(t *testing.T) {
	f := func(warm, ask []Token, want int) {
		t.Helper()
		e := New(Config{Blocks: 100})
		run(t, e, Spec{Prompt: warm, MaxTokens: 1})
		if got := run(t, e, Spec{Prompt: ask, MaxTokens: 1}).CachedTokens(); got != want {
			t.Errorf("cached %d tokens, want %d", got, want)
		}
	}
	p := prompt(1, 100)
	f(p, p, 96)
	f(p[:64], p[:64], 48) // the last token is always computed: floor((n-1)/16) blocks
	f(p[:64], p[:65], 64)
	f(p, p[:17], 16)
	f(p, p[:16], 0)
	f(p[:33], p, 32)
	f(p, append(slices.Clone(p[:32]), prompt(2, 64)...), 32)
	f(p, append([]Token{firstText}, p...), 0)
	f(prompt(2, 100), p, 0)
	f(p, append(slices.Clone(p[16:48]), p[:16]...), 0) // a block from the middle is no prefix
}

func TestSpacesAreApart(t *testing.T) {
	p := prompt(1, 100)
	spaces := []Space{
		{}, {Salt: "a"}, {Salt: "b"}, {Adapter: "x", AdapterPath: "/x"}, {Adapter: "x", AdapterPath: "/y"},
		{Adapter: "y", AdapterPath: "/x"}, {Adapter: "x", AdapterPath: "/x", Salt: "a"}, {Adapter: "a"},
	}
	e := New(Config{})
	for i, s := range spaces {
		if r := run(t, e, Spec{Prompt: p, MaxTokens: 1, Space: s}); r.CachedTokens() != 0 {
			t.Errorf("space %d reuses %d tokens of another", i, r.CachedTokens())
		}
	}
	for i, s := range spaces {
		if r := run(t, e, Spec{Prompt: p, MaxTokens: 1, Space: s}); r.CachedTokens() != 96 {
			t.Errorf("space %d reuses %d of its own tokens, want 96", i, r.CachedTokens())
		}
	}
}

func TestDecodedBlocksAreCached(t *testing.T) {
	e := New(Config{})
	var text strings.Builder
	msgs := []Message{{Role: "user", Parts: []Part{{Text: "Tell me about boats."}}}}
	first := Chat(nil, "", msgs, true)
	run(t, e, Spec{Prompt: first, MaxTokens: 60, Deliver: func(o Output) { text.WriteString(o.Text) }})

	msgs = append(msgs, Message{Role: "assistant", Parts: []Part{{Text: text.String()}}},
		Message{Role: "user", Parts: []Part{{Text: "And ships?"}}})
	r := run(t, e, Spec{Prompt: Chat(nil, "", msgs, true), MaxTokens: 1})
	// All but the last generated token were computed.
	if want := (len(first) + 59) / 16 * 16; r.CachedTokens() != want {
		t.Errorf("second turn reuses %d tokens, want %d", r.CachedTokens(), want)
	}
}

func TestEvictionTakesOldestTailFirst(t *testing.T) {
	e := New(Config{Blocks: 11}) // 10 usable
	a, b := prompt(1, 5*16), prompt(2, 5*16)
	run(t, e, Spec{Prompt: a, MaxTokens: 1})
	run(t, e, Spec{Prompt: b, MaxTokens: 1})
	run(t, e, Spec{Prompt: prompt(3, 2*16), MaxTokens: 1})
	ra, rb := e.NewRequest(Spec{Prompt: append(a, 1)}), e.NewRequest(Spec{Prompt: append(b, 1)})
	if got := e.Resident(ra); got != 3*16 {
		t.Errorf("of the oldest prompt %d tokens are left, want 48: the last blocks go first", got)
	}
	if got := e.Resident(rb); got != 5*16 {
		t.Errorf("of the newer prompt %d tokens are left, want 80", got)
	}
}

func TestUseKeepsBlocks(t *testing.T) {
	e := New(Config{Blocks: 11})
	a, b := prompt(1, 5*16), prompt(2, 5*16)
	run(t, e, Spec{Prompt: a, MaxTokens: 1})
	run(t, e, Spec{Prompt: b, MaxTokens: 1})
	run(t, e, Spec{Prompt: append(slices.Clone(a), 1), MaxTokens: 1}) // a is the younger one now
	run(t, e, Spec{Prompt: prompt(3, 2*16), MaxTokens: 1})
	if got := e.Resident(e.NewRequest(Spec{Prompt: append(a, 1)})); got != 5*16 {
		t.Errorf("of the prompt used last %d tokens are left, want 80", got)
	}
}

func TestTimes(t *testing.T) {
	e := New(Config{PrefillRate: 1000, DecodeRate: 50, DecodeFull: 10, MaxSeqs: 5, BatchTokens: 100})
	ask := func(seed, n, out int) *Request {
		r := e.NewRequest(Spec{Prompt: prompt(seed, n), MaxTokens: out})
		if err := e.Submit(0, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	f := func(r *Request, want time.Duration) {
		t.Helper()
		if d := r.TTFT() - want; d < -time.Microsecond || d > time.Microsecond {
			t.Errorf("TTFT %v, want %v", r.TTFT(), want)
		}
	}
	a, b := ask(1, 250, 3), ask(2, 50, 1)
	drain(e)
	f(a, 300*time.Millisecond) // steps of 100, 100 and 50+50 tokens
	f(b, 300*time.Millisecond)
	f(run(t, e, Spec{Prompt: prompt(1, 250), MaxTokens: 1}), 10*time.Millisecond) // 240 cached
	e.SetSlow(3)
	f(run(t, e, Spec{Prompt: prompt(9, 100), MaxTokens: 1}), 300*time.Millisecond)
}

func TestDecodeSlowsDown(t *testing.T) {
	c := Config{DecodeRate: 50, DecodeFull: 10, MaxSeqs: 5}.withDefaults()
	f := func(n int, want time.Duration) {
		t.Helper()
		if got := c.stepTime(0, n).Round(time.Microsecond); got != want {
			t.Errorf("%d decoding: %v, want %v", n, got, want)
		}
	}
	f(0, 0)
	f(1, 20*time.Millisecond)
	f(3, 60*time.Millisecond)
	f(5, 100*time.Millisecond)
}

func TestQueue(t *testing.T) {
	e := New(Config{MaxSeqs: 2, MaxQueued: 3})
	var rs []*Request
	for i := range 4 {
		r := e.NewRequest(Spec{Prompt: prompt(i, 40), MaxTokens: 10})
		if err := e.Submit(0, r); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		rs = append(rs, r)
		e.Advance(time.Duration(i))
	}
	drainOne := e.step.ends
	e.Advance(drainOne) // the second one runs now
	for len(e.waiting) < 3 {
		if err := e.Submit(drainOne, e.NewRequest(Spec{Prompt: prompt(50+len(e.waiting), 40), MaxTokens: 1})); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Submit(drainOne, e.NewRequest(Spec{Prompt: prompt(99, 40), MaxTokens: 1})); err != ErrQueueFull {
		t.Errorf("with three waiting: %v, want ErrQueueFull", err)
	}
	if s := e.Stats(); s.Running != 2 || s.Waiting != 3 || s.Rejected != 1 {
		t.Errorf("running %d waiting %d rejected %d, want 2 3 1", s.Running, s.Waiting, s.Rejected)
	}
	drain(e)
	for i := 1; i < len(rs); i++ {
		if rs[i].first < rs[i-1].first {
			t.Errorf("request %d had its first token before %d, which came earlier", i, i-1)
		}
	}
}

func TestRefusals(t *testing.T) {
	e := New(Config{Blocks: 11, MaxModelLen: 1000})
	f := func(n int, want error) {
		t.Helper()
		if err := e.Submit(0, e.NewRequest(Spec{Prompt: prompt(1, n), MaxTokens: 1})); err != want {
			t.Errorf("prompt of %d: %v, want %v", n, err, want)
		}
	}
	f(0, ErrEmpty)
	f(160, ErrTooLong) // ten blocks
	f(159, nil)
}

func TestAbort(t *testing.T) {
	e := New(Config{MaxSeqs: 1, BatchTokens: 64})
	outs := 0
	spec := Spec{Prompt: prompt(1, 200), MaxTokens: 100, Deliver: func(Output) { outs++ }}
	a, b := e.NewRequest(spec), e.NewRequest(Spec{Prompt: prompt(2, 50), MaxTokens: 1})
	_ = e.Submit(0, a)
	_ = e.Submit(0, b)
	at, _ := e.Next()
	e.Advance(at) // one chunk of 64 tokens is done
	e.Abort(at, a)
	at, _ = e.Next()
	e.Advance(at)
	if s := e.Stats(); s.Running != 1 || s.Waiting != 0 {
		t.Errorf("one step after the abort %d run and %d wait, want the other one running", s.Running, s.Waiting)
	}
	drain(e)
	e.Abort(at, a)
	if outs != 0 || e.cache.used() != 0 {
		t.Errorf("aborted request had %d outputs and %d blocks are held", outs, e.cache.used())
	}
	if got := e.Resident(e.NewRequest(spec)); got != 128 {
		t.Errorf("of the aborted prompt %d tokens are cached, want the 128 of two chunks", got)
	}
}

// Load2 is the number of blocks held, for tests.
func (e *Engine) Load2() int { return e.cache.used() }

func TestAdapterLimit(t *testing.T) {
	e := New(Config{MaxAdapters: 1})
	ask := func(adapter string) *Request {
		r := e.NewRequest(Spec{Prompt: prompt(1, 40), MaxTokens: 5, Space: Space{Adapter: adapter}})
		_ = e.Submit(0, r)
		return r
	}
	ask("a")
	b, base := ask("b"), ask("")
	at, _ := e.Next()
	e.Advance(at)
	if b.phase != phaseWaiting || base.phase != phaseRunning {
		t.Errorf("second adapter in phase %d, base in %d; want it deferred and the base passing by", b.phase, base.phase)
	}
	if s := e.Stats(); s.Deferred != 1 {
		t.Errorf("deferred %d, want 1", s.Deferred)
	}
	drain(e)
	if b.phase != phaseDone {
		t.Error("deferred request never ran")
	}
	if _, ok := e.Stats().Adapters["a,b"]; !ok {
		t.Errorf("adapter sets seen: %v", e.Stats().Adapters)
	}
}

func TestPreemption(t *testing.T) {
	e := New(Config{Blocks: 9, MaxSeqs: 4}) // 128 tokens
	var text [2]strings.Builder
	for i := range text {
		r := e.NewRequest(Spec{Prompt: prompt(i, 40), MaxTokens: 60, Deliver: func(o Output) { text[i].WriteString(o.Text) }})
		if err := e.Submit(0, r); err != nil {
			t.Fatal(err)
		}
	}
	drain(e)
	if e.Stats().Preemptions == 0 {
		t.Error("two requests of 100 tokens ran in 128 without preemption")
	}
	for i := range text {
		alone, want := New(Config{}), strings.Builder{}
		run(t, alone, Spec{Prompt: prompt(i, 40), MaxTokens: 60, Deliver: func(o Output) { want.WriteString(o.Text) }})
		if text[i].String() != want.String() {
			t.Errorf("answer %d changed by preemption: %q", i, text[i].String())
		}
	}
}

func TestAnswerIsAFunctionOfThePrompt(t *testing.T) {
	answer := func(seed int, s Spec) (text string, n int, end Finish) {
		s.Prompt = prompt(seed, 50)
		s.Deliver = func(o Output) { text += o.Text; n, end = o.Index, o.Finish }
		run(t, New(Config{}), s)
		return text, n, end
	}
	a, n, end := answer(1, Spec{})
	if n < 32 || n > 64 || end != FinishStop {
		t.Errorf("answer without limit has %d tokens and ends with %q", n, end)
	}
	if b, _, _ := answer(1, Spec{}); a != b {
		t.Errorf("same prompt, other answer: %q and %q", a, b)
	}
	if b, _, _ := answer(2, Spec{}); a == b {
		t.Error("other prompt, same answer")
	}
	if b, _, _ := answer(1, Spec{Model: "other"}); a == b {
		t.Error("other model, same answer")
	}
	b, n, end := answer(1, Spec{MaxTokens: 20})
	if n != 20 || end != FinishLength || !strings.HasPrefix(a, b) {
		t.Errorf("limit 20 gave %d tokens, finish %q, text %q", n, end, b)
	}
}

func TestResetIsAnnouncedLate(t *testing.T) {
	var batches [][]Event
	e := New(Config{OnBatch: func(_ time.Duration, ev []Event) { batches = append(batches, ev) }})
	p := prompt(1, 50)
	run(t, e, Spec{Prompt: p, MaxTokens: 1})
	r := e.NewRequest(Spec{Prompt: p, MaxTokens: 3})
	_ = e.Submit(e.now, r)
	if e.Reset(e.now) {
		t.Error("reset while blocks are in use")
	}
	drain(e)
	if !e.Reset(e.now) {
		t.Fatal("reset refused when idle")
	}
	if n := len(batches); n != 1 {
		t.Fatalf("%d batches before the next request, want 1", n)
	}
	if r := run(t, e, Spec{Prompt: p, MaxTokens: 1}); r.CachedTokens() != 0 {
		t.Errorf("cached %d after the reset", r.CachedTokens())
	}
	last := batches[len(batches)-1]
	if len(last) != 2 || last[0].Kind != AllBlocksCleared || last[1].Kind != BlockStored {
		t.Errorf("batch after the reset: %+v", last)
	}
}

func TestReportFull(t *testing.T) {
	var last []Event
	e := New(Config{OnBatch: func(_ time.Duration, ev []Event) { last = ev }})
	p := prompt(1, 50)
	run(t, e, Spec{Prompt: p, MaxTokens: 1})
	last = nil
	run(t, e, Spec{Prompt: p, MaxTokens: 1})
	if last != nil {
		t.Errorf("a cache hit published %+v", last)
	}
	run(t, e, Spec{Prompt: p, MaxTokens: 1, ReportFull: true})
	if len(last) != 1 || !last[0].Root || len(last[0].Hashes) != 3 {
		t.Errorf("full report: %+v", last)
	}
}

// TestEventsEqualBlocks lets random traffic run over a small cache and checks at
// many moments that a consumer of the events knows what the engine holds.
func TestEventsEqualBlocks(t *testing.T) {
	for _, single := range []bool{false, true} {
		mirror := map[Hash]int{}
		e := New(Config{Blocks: 40, MaxSeqs: 6, BatchTokens: 64, SingleCopy: single, OnBatch: func(_ time.Duration, events []Event) {
			fold(t, mirror, events)
		}})
		dice := rand.New(rand.NewPCG(1, 2))
		var live []*Request
		now := time.Duration(0)
		for i := range 3000 {
			now += time.Duration(dice.IntN(int(20 * time.Millisecond)))
			p := append(prompt(dice.IntN(3), 16*dice.IntN(6)), prompt(100+dice.IntN(8), 1+dice.IntN(60))...)
			r := e.NewRequest(Spec{Prompt: p, MaxTokens: 1 + dice.IntN(40)})
			if err := e.Submit(now, r); err != nil {
				t.Fatal(err)
			}
			if live = append(live, r); dice.IntN(4) == 0 {
				e.Abort(now, live[dice.IntN(len(live))])
			}
			if i%50 == 0 {
				now = max(now, drain(e))
				e.Reset(now)
			}
			if e.Unsent() == 0 {
				compare(t, mirror, e.Blocks())
			}
		}
		drain(e)
		compare(t, mirror, e.Blocks())
		if e.cache.used() != 0 || len(mirror) == 0 {
			t.Errorf("at the end %d blocks are held, %d known", e.cache.used(), len(mirror))
		}
		if s := e.Stats(); s.Preemptions == 0 || s.Hit == 0 {
			t.Errorf("traffic too tame: %d preemptions, %d hits", s.Preemptions, s.Hit)
		}
	}
}

func fold(t *testing.T, mirror map[Hash]int, events []Event) {
	for _, ev := range events {
		switch ev.Kind {
		case AllBlocksCleared:
			clear(mirror)
		case BlockStored:
			if len(ev.Tokens) != len(ev.Hashes)*ev.BlockSize || len(ev.Extra) != len(ev.Hashes) {
				t.Errorf("%d hashes, %d tokens, %d extras", len(ev.Hashes), len(ev.Tokens), len(ev.Extra))
			}
			for _, h := range ev.Hashes {
				mirror[h]++
			}
		case BlockRemoved:
			h := ev.Hashes[0]
			if mirror[h]--; mirror[h] == 0 {
				delete(mirror, h)
			}
			if mirror[h] < 0 {
				t.Errorf("removed %x, which was not there", h[:4])
			}
		}
	}
}

func compare(t *testing.T, mirror map[Hash]int, blocks []Block) {
	t.Helper()
	if len(mirror) != len(blocks) {
		t.Fatalf("consumer knows %d blocks, engine has %d", len(mirror), len(blocks))
	}
	for _, b := range blocks {
		if mirror[b.Hash] != b.Copies {
			t.Fatalf("block %x: consumer counts %d, engine %d", b.Hash[:4], mirror[b.Hash], b.Copies)
		}
	}
}

func TestTokenize(t *testing.T) {
	text := "The quick brown fox jumps over the lazy dog. " + strings.Repeat("Größe 東京 \U0001F600 x\ny\t", 20)
	pieces := Pieces(text)
	if strings.Join(pieces, "") != text {
		t.Error("pieces do not join to the text")
	}
	if n := len(Tokenize(nil, text)); n != len(pieces) {
		t.Errorf("%d tokens, %d pieces", n, len(pieces))
	}
	for _, p := range pieces {
		if len(p) > maxPiece || len(p) == 0 {
			t.Errorf("piece %q", p)
		}
	}
	english := strings.Repeat("It was the best of times, it was the worst of times, in many respectable places. ", 10)
	if perToken := float64(len(english)) / float64(len(Tokenize(nil, english))); perToken < 3.4 || perToken > 5 {
		t.Errorf("%.1f bytes per token of English", perToken)
	}
	for _, w := range words {
		if got := Tokenize(nil, "some text"+w+w); len(got) < 3 || got[len(got)-1] != pieceID(w) || got[len(got)-2] != pieceID(w) {
			t.Errorf("answer piece %q is not one token", w)
		}
	}
}

func TestChatIsStableAtMessageBorders(t *testing.T) {
	text := func(s string) []Part { return []Part{{Text: s}} }
	a := []Message{{Role: "system", Parts: text("Be brief.")}, {Role: "user", Parts: text("Hi")}}
	b := append(slices.Clone(a), Message{Role: "assistant", Parts: text("Yes?")})
	ta, tb := Chat(nil, "", a, false), Chat(nil, "", b, true)
	if !slices.Equal(ta, tb[:len(ta)]) {
		t.Error("a continued conversation does not begin with the tokens of its beginning")
	}
	open := Chat(nil, "", a, true)
	if !slices.Equal(open, tb[:len(open)]) {
		t.Error("the answer's frame differs from the frame of the message it becomes")
	}
	if slices.Equal(Chat(nil, "", []Message{{Role: "user", Parts: []Part{{Opaque: []byte("a")}}}}, true),
		Chat(nil, "", []Message{{Role: "user", Parts: []Part{{Opaque: []byte("b")}}}}, true)) {
		t.Error("two images have the same tokens")
	}
}

func FuzzTokenize(f *testing.F) {
	f.Add("The quick brown fox")
	f.Add(" \n\t\xff\xfe漢字")
	f.Fuzz(func(t *testing.T, text string) {
		if got := strings.Join(Pieces(text), ""); got != text {
			t.Errorf("pieces of %q join to %q", text, got)
		}
		if a, b := len(Tokenize(nil, text)), len(Pieces(text)); a != b {
			t.Errorf("%d tokens, %d pieces", a, b)
		}
	})
}

func BenchmarkTokenize(b *testing.B) {
	text := strings.Repeat("It was the best of times, it was the worst of times. ", 4000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	dst := make([]Token, 0, len(text))
	for b.Loop() {
		dst = Tokenize(dst[:0], text)
	}
}

func BenchmarkDecodeStep(b *testing.B) {
	e := New(Config{})
	for i := range 64 {
		_ = e.Submit(0, e.NewRequest(Spec{Prompt: prompt(i, 500), MaxTokens: 100000}))
	}
	b.ReportAllocs()
	for b.Loop() {
		at, _ := e.Next()
		e.Advance(at)
	}
}
