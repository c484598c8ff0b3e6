package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
)

// deep is a host that knows a conversation of so many blocks, of which each
// replica has a part, and returns what was said.
func deep(t testing.TB, blocks int) (h *engines, said []string) {
	h = newEngines(t, 8, "")
	text := strings.Repeat("Some text of a prompt, as long as a line of it is.\n", blocks*block*bytesPerToken/51)
	said = []string{"You are kind.", text}
	s := h.chat(turns("", said...))
	tag := s.properties[sessionProperty]
	s.answered(blocks*block, 0)
	runs := map[int]kvindex.Run{s.named: {GPU: uint32(blocks)}}
	for slot := range 8 {
		if slot != s.named {
			runs[slot] = kvindex.Run{GPU: uint32(blocks * slot / 16)}
		}
	}
	h.tagged(tag, base(), tokensOf(1, blocks*block), runs)
	h.age()
	return h, said
}

// TestLookupBudget holds the look-ups of tier 2 to 24 reads for 2,000 blocks,
// however many messages came since the turn before.
func TestLookupBudget(t *testing.T) {
	h, said := deep(t, 2000)
	reads := func() uint64 {
		return h.worker.tier2.blocks.Stats().Reads + h.worker.tier2.learned.Stats().Reads
	}
	for more := range 8 {
		h.chat(turns("", "warm-up")).answered(5, 0)
		before := reads()
		s := h.chat(turns("", append(said, strings.Split("Yes. Why? No. Oh! So? Hm. Ah. Eh.", " ")[:more]...)...))
		if n := reads() - before; n > maxReads {
			t.Errorf("%d messages since: %d reads", more, n)
		}
		if hit := s.choice.Branch.String() == "kv_hit" && s.choice.Matched > 31900; hit != (more <= 3) {
			t.Errorf("%d messages since: %v, %d tokens", more, s.choice.Branch, s.choice.Matched)
		}
		s.settle()
		h.now += 1000
	}
}

// exchangeAgain plays whole exchanges on one Exchange, as the glue does.
func exchangeAgain(h *engines, path string, body []byte, answer []byte) func() {
	head := &mapHeaders{}
	pairs := headersOf(map[string]string{":method": "POST", ":path": path, "x-request-id": "abc"}).rest
	reply := headersOf(map[string]string{":status": "200", "content-type": "application/json"}).rest
	e := h.worker.NewExchange()
	drop := func(*Metric, uint64) {}
	address := func() []byte { return e.address() }
	return func() {
		h.now += 30
		e.Reset()
		head.rest = pairs
		e.RequestHeaders(head, false)
		for rest := body; ; {
			n := min(len(rest), 16<<10)
			e.RequestBody(rest[:n], n == len(rest))
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		if e.phase == asking {
			e.Tokenized(200, answer)
		}
		head.rest = reply
		e.ResponseHeaders(head, address, false)
		if e.ReadsResponseBody() {
			e.ResponseBody(usageAnswer)
		}
		e.ResponseEnd()
		e.Settle(noWord)
		h.worker.Tally().Drain(drop)
	}
}

const chatPath = "/v1/chat/completions"

var usageAnswer = []byte(`{"choices":[],` + usageOf(32050, 31984) + `}`)

func TestPreciseMakesNoGarbage(t *testing.T) {
	h, said := deep(t, 500)
	next := turns("", append(said, "Yes.", "Why?")...)
	ids := newEngines(t, 8, "")
	tokens := tokensOf(3, 8000)
	ids.holds(base(), tokens, map[int]kvindex.Run{2: {GPU: 400}})
	asks := newEngines(t, 8, asking1)
	for name, again := range map[string]func(){
		"learned": exchangeAgain(h, chatPath, next, nil),
		"ids":     exchangeAgain(ids, "/v1/completions", idsBody("m", tokens, ""), nil),
		"ask":     exchangeAgain(asks, chatPath, turns("", strings.Repeat("words ", 5000)), tokensAnswer(tokens)),
	} {
		for range 20 {
			again()
		}
		if n := testing.AllocsPerRun(100, again); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkPrecise is a whole exchange on the bare logic where tier 2 decides,
// with 8 replicas.
func BenchmarkPrecise(b *testing.B) {
	for _, blocks := range []int{125, 2000} {
		h, said := deep(b, blocks)
		next := turns("", append(said, "Yes.", "Why?")...)
		run := func(name string, body []byte, again func()) {
			b.Run(fmt.Sprint(name, "/", blocks), func(b *testing.B) {
				for range 20 {
					again()
				}
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					again()
				}
			})
		}
		run("learned", next, exchangeAgain(h, chatPath, next, nil))
		asks := newEngines(b, 8, asking1)
		tokens := tokensOf(1, blocks*block)
		asks.holds(base(), tokens, map[int]kvindex.Run{2: {GPU: uint32(blocks)}})
		run("asked", next, exchangeAgain(asks, chatPath, next, tokensAnswer(tokens)))
		off := newEngines(b, 8, `,"tokenize":"off"`)
		many := tokensOf(1, blocks*block)
		ids := newEngines(b, 8, "")
		ids.holds(base(), many, map[int]kvindex.Run{2: {GPU: uint32(blocks)}})
		body := idsBody("m", many, "")
		run("ids", body, exchangeAgain(ids, "/v1/completions", body, nil))
		run("tier1", next, exchangeAgain(off, chatPath, next, nil))
	}
}
