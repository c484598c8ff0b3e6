package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/warmlane/warmlane/examples/replica/engine"
)

// capture reads the frames of one message as vLLM sent it.
func capture(t *testing.T, name string) (frames [][]byte) {
	t.Helper()
	text, err := os.ReadFile("../testdata/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, b)
	}
	return frames
}

// decode turns a payload back into events, by a decoder that is not ours.
func decode(t *testing.T, payload []byte) (ts float64, events []engine.Event) {
	t.Helper()
	var batch []any
	dec := msgpack.NewDecoder(bytes.NewReader(payload))
	dec.UseLooseInterfaceDecoding(true)
	if err := dec.Decode(&batch); err != nil {
		t.Fatal(err)
	}
	if len(batch) != 3 {
		t.Fatalf("batch of %d elements", len(batch))
	}
	for _, e := range batch[1].([]any) {
		events = append(events, event(t, e.(map[string]any)))
	}
	return batch[0].(float64), events
}

func event(t *testing.T, m map[string]any) (ev engine.Event) {
	t.Helper()
	switch m["type"] {
	case "AllBlocksCleared":
		return engine.Event{Kind: engine.AllBlocksCleared}
	case "BlockRemoved":
		return engine.Event{Kind: engine.BlockRemoved, Hashes: hashes(m["block_hashes"])}
	}
	ev = engine.Event{Kind: engine.BlockStored, Hashes: hashes(m["block_hashes"]), BlockSize: int(number(m["block_size"]))}
	if ev.Root = m["parent_block_hash"] == nil; !ev.Root {
		ev.Parent = hashes([]any{m["parent_block_hash"]})[0]
	}
	for _, v := range m["token_ids"].([]any) {
		ev.Tokens = append(ev.Tokens, engine.Token(number(v)))
	}
	for _, v := range m["extra_keys"].([]any) {
		var keys []string
		if v != nil {
			keys = append(keys, v.([]any)[0].(string))
		}
		ev.Extra = append(ev.Extra, keys)
	}
	if name, ok := m["lora_name"].(string); ok {
		ev.Space.Adapter, ev.Space.AdapterID = name, int(number(m["lora_id"]))
	}
	ev.Session, _ = m["session_id"].(string)
	return ev
}

func hashes(v any) (out []engine.Hash) {
	for _, h := range v.([]any) {
		var hash engine.Hash
		if b, ok := h.(string); ok { // msgpack bin
			copy(hash[:], b)
		} else {
			binary.BigEndian.PutUint64(hash[24:], number(h))
		}
		out = append(out, hash)
	}
	return out
}

func number(v any) uint64 {
	if u, ok := v.(uint64); ok {
		return u
	}
	return uint64(v.(int64))
}

// TestBytesAreVLLMs encodes what the captures say and wants the captured bytes.
func TestBytesAreVLLMs(t *testing.T) {
	f := func(name string, shape Shape) {
		t.Helper()
		frames := capture(t, name)
		payload := frames[len(frames)-1]
		ts, events := decode(t, payload)
		if got := shape.AppendBatch(nil, ts, events); !bytes.Equal(got, payload) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, payload)
		}
	}
	f("kv-stored-root", Shape{})
	f("kv-stored-child", Shape{})
	f("kv-stored-decode-block", Shape{})
	f("kv-stored-lora", Shape{})
	f("kv-stored-salt", Shape{})
	f("kv-removed-stored-session", Shape{})
	f("kv-cleared-then-stored", Shape{})
	f("kv-report-full", Shape{})
	f("kv-stored-bytes-hash", Shape{BytesHashes: true})
}

func TestArrayForm(t *testing.T) {
	ev := []engine.Event{
		{Kind: engine.AllBlocksCleared},
		{Kind: engine.BlockRemoved, Hashes: make([]engine.Hash, 1)},
		{Kind: engine.BlockStored, Hashes: make([]engine.Hash, 1), Root: true, Tokens: []engine.Token{1, 70000}, BlockSize: 2,
			Space: engine.Space{Adapter: "sql", AdapterID: 3}, Extra: [][]string{{"sql"}}},
	}
	var got []any
	if err := msgpack.Unmarshal(Shape{ArrayEvents: true}.AppendBatch(nil, 1.5, ev), &got); err != nil {
		t.Fatal(err)
	}
	want := []int{1, 3, 9}
	for i, e := range got[1].([]any) {
		if fields := e.([]any); len(fields) != want[i] {
			t.Errorf("event %d has %d fields, want %d: %v", i, len(fields), want[i], fields)
		}
	}
}

func TestLengthsOfAllSizes(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 31, 32, 127, 128, 255, 256, 65535, 65536, 70000} {
		ev := []engine.Event{{Kind: engine.BlockStored, Hashes: make([]engine.Hash, n), Root: true,
			Tokens: make([]engine.Token, n), BlockSize: 1, Extra: make([][]string, n), Session: strings.Repeat("s", n)}}
		_, back := decode(t, Shape{}.AppendBatch(nil, 1, ev))
		if len(back[0].Tokens) != n || len(back[0].Hashes) != n || len(back[0].Session) != n {
			t.Errorf("%d: %d tokens, %d hashes, %d bytes of session", n, len(back[0].Tokens), len(back[0].Hashes), len(back[0].Session))
		}
	}
}

// subscribe connects a SUB socket and waits until the publisher knows of it.
func subscribe(t *testing.T, p *Publisher) zmq4.Socket {
	t.Helper()
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { _ = sub.Close() })
	if err := sub.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	if err := sub.Dial(p.Endpoint()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	return sub
}

func receive(t *testing.T, s zmq4.Socket) [][]byte {
	t.Helper()
	frames := receiveWithin(s, 15*time.Second)
	if frames == nil {
		t.Fatal("no message in 15 s")
	}
	return frames
}

// receiveWithin gives the next message, nil if none comes.
func receiveWithin(s zmq4.Socket, d time.Duration) [][]byte {
	got := make(chan [][]byte, 1)
	go func() {
		if m, err := s.Recv(); err == nil {
			got <- m.Frames
		}
	}()
	select {
	case frames := <-got:
		return frames
	case <-time.After(d):
		return nil
	}
}

func listen(t *testing.T, o Options) *Publisher {
	t.Helper()
	o.Endpoint, o.Replay = "tcp://127.0.0.1:0", "tcp://127.0.0.1:0"
	p, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func removed(n byte) []engine.Event {
	return []engine.Event{{Kind: engine.BlockRemoved, Hashes: []engine.Hash{{31: n}}}}
}

func TestPublish(t *testing.T) {
	p := listen(t, Options{Topic: "kv@a@m"})
	sub := subscribe(t, p)
	p.Publish(time.Unix(1, 0), removed(7))
	p.Drop(1)
	p.Publish(time.Unix(2, 0), removed(8))
	p.Publish(time.Unix(3, 0), removed(9))
	for _, want := range []uint64{0, 2} {
		f := receive(t, sub)
		if len(f) != 3 || string(f[0]) != "kv@a@m" || binary.BigEndian.Uint64(f[1]) != want {
			t.Fatalf("frames %q, want sequence %d", f, want)
		}
		if _, ev := decode(t, f[2]); ev[0].Hashes[0][31] != byte(7+want) {
			t.Errorf("batch %d holds %v", want, ev)
		}
	}
	if p.Next() != 3 {
		t.Errorf("next is %d, want 3", p.Next())
	}
}

// replayed asks for a replay and returns the replies up to the end mark. As
// consumers do, it asks anew when nothing comes: on a busy machine a ROUTER may
// drop what reaches it before it has taken the peer in.
func replayed(t *testing.T, p *Publisher, from uint64, endAt int) [][][]byte {
	t.Helper()
	for range 5 {
		if replies := askReplay(t, p, from, endAt); replies != nil {
			return replies
		}
	}
	t.Fatal("no replay, asked five times")
	return nil
}

func askReplay(t *testing.T, p *Publisher, from uint64, endAt int) (replies [][][]byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dealer := zmq4.NewDealer(ctx)
	defer func() { _ = dealer.Close() }()
	if err := dealer.Dial(p.ReplayEndpoint()); err != nil {
		t.Fatal(err)
	}
	_ = dealer.SendMulti(zmq4.NewMsgFrom([]byte("nonsense"))) // ignored
	if err := dealer.SendMulti(zmq4.NewMsgFrom([]byte{}, seqBytes(from))); err != nil {
		t.Fatal(err)
	}
	for {
		f := receiveWithin(dealer, 4*time.Second)
		if f == nil {
			return nil
		}
		replies = append(replies, f)
		if len(f) > endAt && binary.BigEndian.Uint64(f[endAt]) == endSeq {
			return replies
		}
	}
}

func TestReplay(t *testing.T) {
	p := listen(t, Options{Topic: "kv", KeptSteps: 4})
	for i := range byte(6) {
		p.Publish(time.Unix(int64(i), 0), removed(i))
	}
	f := func(from uint64, want ...uint64) {
		t.Helper()
		replies := replayed(t, p, from, 2)
		if len(replies) != len(want)+1 {
			t.Fatalf("from %d: %d replies, want %d and the end", from, len(replies), len(want))
		}
		for i, seq := range want {
			if r := replies[i]; len(r) != 4 || len(r[0]) != 0 || string(r[1]) != "kv" || binary.BigEndian.Uint64(r[2]) != seq {
				t.Errorf("from %d, reply %d: %q", from, i, r)
			}
		}
		end := capture(t, "kv-replay-end")
		if got := replies[len(want)]; len(got) != len(end) || !bytes.Equal(bytes.Join(got, nil), bytes.Join(end, nil)) {
			t.Errorf("end mark %q, want %q", got, end)
		}
	}
	f(0, 2, 3, 4, 5) // the first two are no longer kept
	f(4, 4, 5)
	f(6)
}

func TestOldReplay(t *testing.T) {
	p := listen(t, Options{Topic: "kv", OldReplay: true})
	p.Publish(time.Unix(1, 0), removed(1))
	replies := replayed(t, p, 0, 1)
	if len(replies) != 2 || len(replies[0]) != 3 || len(replies[1]) != 3 {
		t.Errorf("replies %q, want one batch and the end, three frames each", replies)
	}
}

func TestCloseAndListenAgain(t *testing.T) {
	p := listen(t, Options{})
	o := p.Options()
	p.Publish(time.Unix(1, 0), removed(1))
	p.Close()
	p.Publish(time.Unix(1, 0), removed(1)) // must not block
	again, err := Listen(o)
	if err != nil {
		t.Fatalf("same endpoints again: %v", err)
	}
	defer again.Close()
	if again.Endpoint() != o.Endpoint || again.Next() != 0 {
		t.Errorf("successor at %s with next %d, want %s and 0", again.Endpoint(), again.Next(), o.Endpoint)
	}
	if _, err := Listen(o); err == nil {
		t.Error("two publishers on one port")
	}
}

func FuzzReplayRequest(f *testing.F) {
	f.Add([]byte("id"), []byte{}, seqBytes(7))
	f.Add([]byte{}, []byte("x"), []byte("short"))
	f.Fuzz(func(t *testing.T, id, empty, seq []byte) {
		_, from, ok := parseReplay([][]byte{id, empty, seq})
		if ok && (len(empty) != 0 || !bytes.Equal(seqBytes(from), seq)) {
			t.Errorf("accepted %q %q as %d", empty, seq, from)
		}
	})
}
