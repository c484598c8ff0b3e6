package exchange

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/warmlane/warmlane/filter/kvindex"
	"github.com/warmlane/warmlane/filter/state"
)

// block is the block size of the engines in these tests.
const block = 16

const kvConfig = `{"pools":[{"name":"default","cluster":"replicas","kv_events":true%s}],"piggyback":{"explain":true,"log":true}}`

// engines is a native host whose replicas publish KV events, and the writer that
// stands for control and the leading VM.
type engines struct {
	*native
	t      testing.TB
	writer *kvindex.Writer
	pool   state.Pool
	round  uint64
}

// newEngines returns a host with an index that is complete and empty. more are
// further members of the pool's configuration.
func newEngines(t testing.TB, replicas int, more string) *engines {
	t.Helper()
	h := &engines{native: newNative(t, replicas, fmt.Sprintf(kvConfig, more)), t: t}
	h.pool = state.Pool{Name: "default", Models: []string{"m"}}
	for i, a := range h.replicas {
		h.pool.Replicas = append(h.pool.Replicas, state.Replica{
			Slot: uint16(i), Incarnation: 1, Address: a, Health: state.Healthy, Models: []string{"m", "sql"},
			Adapters: []state.Adapter{{Name: "sql", State: state.AdapterLoaded}}, Load: state.NoLoad(),
			BlockSize: block, KV: state.KVComplete, Tags: true,
		})
	}
	h.announce()
	h.writer = kvindex.NewWriter(h.store.View(), kvindex.Options{})
	h.must(h.writer.Begin())
	h.apply()
	h.must(h.writer.Complete())
	return h
}

func (h *engines) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// announce publishes the pool as it is now.
func (h *engines) announce() {
	h.round++
	h.publish(h.t, &state.Snapshot{Epoch: 1, Generation: 1 + h.round, Pools: []state.Pool{h.pool}})
}

func (h *engines) apply() {
	h.t.Helper()
	for done := false; !done; {
		var err error
		done, err = h.writer.Apply(1 << 20)
		h.must(err)
	}
	h.now += 50 // what a worker has read serves no longer
}

// holds writes that replicas have the first blocks of a prompt, by slot, and
// returns the node in which its path ends.
func (h *engines) holds(root uint64, tokens []uint32, runs map[int]kvindex.Run) (leaf uint64, last uint8, depth uint32) {
	h.t.Helper()
	var c kvindex.Chain
	c.Reset(root, block)
	c.Add(tokens)
	keys := c.Keys()
	for at := 0; at < len(keys); at += kvindex.MaxRun {
		part := keys[at:min(at+kvindex.MaxRun, len(keys))]
		n := kvindex.Node{Parent: leaf, Depth: uint32(at), Size: block}
		for _, k := range part {
			n.Tags = append(n.Tags, uint16(k))
		}
		for slot := range h.replicas {
			any := min(max(int(runs[slot].Any), int(runs[slot].GPU)), len(keys)) - at
			if any > 0 {
				gpu := min(max(int(runs[slot].GPU)-at, 0), len(part))
				n.Held = append(n.Held, kvindex.Held{Slot: uint16(slot), Run: uint8(gpu), Any: uint8(min(any, len(part)))})
			}
		}
		h.writer.Queue(part[0], kvindex.AppendNode(nil, &n))
		leaf, last, depth = part[0], uint8(len(part)), uint32(len(keys))
	}
	h.apply()
	return leaf, last, depth
}

// tagged writes that a text is known to have made the blocks of a prompt.
func (h *engines) tagged(tag string, root uint64, tokens []uint32, runs map[int]kvindex.Run) {
	h.t.Helper()
	text, err := strconv.ParseUint(strings.TrimPrefix(tag, "wl1-"), 16, 64)
	if err != nil || len(tag) != 20 {
		h.t.Fatalf("tag %q", tag)
	}
	leaf, last, depth := h.holds(root, tokens, runs)
	h.writer.Queue(text, kvindex.AppendText(nil, &kvindex.Text{Leaf: leaf, Blocks: last, Depth: depth, Size: block}))
	h.apply()
}

func base() uint64 { return kvindex.Root("default", nil, 0) }

// tokensOf makes n tokens that no other seed makes.
func tokensOf(seed, n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(seed*1_000_000 + i)
	}
	return tokens
}

func idsBody(model string, tokens []uint32, more string) []byte {
	ids, _ := json.Marshal(tokens)
	return fmt.Appendf(nil, `{"model":%q,"prompt":%s%s}`, model, ids, more)
}

func tokensAnswer(tokens []uint32) []byte {
	ids, _ := json.Marshal(tokens)
	return fmt.Appendf(nil, `{"count":%d,"max_model_len":4096,"tokens":%s,"token_strs":null}`, len(tokens), ids)
}

// turns is a conversation; each text is a message.
func turns(more string, texts ...string) []byte {
	var messages []map[string]string
	for i, text := range texts {
		messages = append(messages, map[string]string{"role": []string{"system", "user", "assistant"}[min(i, 1+(i+1)%2)], "content": text})
	}
	b, _ := json.Marshal(messages)
	return fmt.Appendf(nil, `{"model":"m","messages":%s%s}`, b, more)
}

// sendTo opens an exchange and sends it all of its body. It takes what a host
// would keep of the verdict.
func (h *engines) sendTo(w *Worker, path string, body []byte, headers ...string) *request {
	h.t.Helper()
	s := &request{engines: h, Exchange: w.NewExchange(), properties: map[string]string{}}
	head := map[string]string{":method": "POST", ":path": path, "x-warmlane-explain": "1"}
	for i := 0; i+1 < len(headers); i += 2 {
		head[headers[i]] = headers[i+1]
	}
	s.RequestHeaders(headersOf(head), false)
	for rest := body; ; {
		n := min(len(rest), 1000)
		s.take(s.RequestBody(rest[:n], n == len(rest)))
		if rest = rest[n:]; len(rest) == 0 {
			return s
		}
	}
}

func (h *engines) chat(body []byte, headers ...string) *request {
	h.t.Helper()
	return h.sendTo(h.worker, "/v1/chat/completions", body, headers...)
}

func (h *engines) completion(body []byte) *request {
	h.t.Helper()
	return h.sendTo(h.worker, "/v1/completions", body)
}

// request is an exchange and what was said of it.
type request struct {
	*engines
	*Exchange
	properties map[string]string
	call       *Call
	decision   string
}

func (s *request) take(v *Verdict) {
	for _, p := range v.Properties {
		s.properties[p.Name] = string(p.Value)
	}
	for _, p := range v.Add {
		if p.Name == decisionHeader {
			s.decision = string(p.Value)
		}
	}
	s.call = nil
	if v.Call != nil {
		c := *v.Call
		c.Body, c.Replica = append([]byte(nil), c.Body...), append([]byte(nil), c.Replica...)
		s.call = &c
	}
}

// usageOf is the usage of an answer; cached -1 leaves that out.
func usageOf(prompt, cached int) string {
	details := ""
	if cached >= 0 {
		details = fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, cached)
	}
	return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d%s}`, prompt, prompt+20, details)
}

// finish plays the answer of the replica named and returns the log's line.
func (s *request) finish(answer string) map[string]any {
	s.t.Helper()
	s.now += 100
	s.take(s.ResponseHeaders(ok(), by(s.address()), false))
	if call := s.call; call != nil {
		defer func() { s.call = call }()
	}
	for i := range len(answer) {
		if s.ReadsResponseBody() {
			s.ResponseBody([]byte{answer[i]})
		}
	}
	s.ResponseEnd()
	return s.settle()
}

func (s *request) settle() map[string]any {
	s.t.Helper()
	s.take(s.Settle(noWord))
	var line map[string]any
	if err := json.Unmarshal([]byte(s.properties[logProperty]), &line); err != nil {
		s.t.Fatalf("log line %q: %v", s.properties[logProperty], err)
	}
	return line
}

// answered plays an answer with a usage.
func (s *request) answered(prompt, cached int) map[string]any {
	s.t.Helper()
	return s.finish(`{"choices":[],` + usageOf(prompt, cached) + `}`)
}

// wants checks the decision.
func (s *request) wants(branch string, slot int, matched, prompt uint32) *request {
	s.t.Helper()
	c := &s.choice
	if c.Branch.String() != branch || slot >= 0 && s.named != slot || c.Matched != matched || prompt != 0 && c.Prompt != prompt {
		s.t.Errorf("%v to r%d, %d of %d tokens matched, want %s to r%d, %d of %d", c.Branch, s.named, c.Matched, c.Prompt, branch, slot, matched, prompt)
	}
	return s
}

// counter is the value of a metric that has not been drained.
func (h *engines) counter(name string) (n uint64) {
	for _, m := range h.worker.tally.metrics {
		if m.Name == name {
			n += m.Pending
		}
	}
	return n
}

func (h *engines) wantCounters(want map[string]uint64) {
	h.t.Helper()
	for name, n := range want {
		if got := h.counter(name); got != n {
			h.t.Errorf("%s is %d, want %d", name, got, n)
		}
	}
}
