package kvevents

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/vmihailenco/msgpack/v5"
)

// capture reads the frames of one message as vLLM sent it.
func capture(t testing.TB, name string) (frames [][]byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
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

func payload(t testing.TB, name string) []byte {
	frames := capture(t, name)
	return frames[len(frames)-1]
}

// pack is msgpack by an encoder that is not ours.
func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decoded(t testing.TB, payload []byte) *Batch {
	t.Helper()
	b := new(Batch)
	if err := Decode(payload, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// plain is an event without what only holds memory, in the words of the captures'
// JSON, made for comparing.
func plain(b *Batch) any {
	events := []any{}
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Type {
		case TypeStored:
			s := &e.Stored
			m := map[string]any{"type": "BlockStored", "block_hashes": numbers(s.Hashes), "parent_block_hash": nil,
				"token_ids": numbers(s.Tokens), "block_size": number(s.BlockSize), "medium": s.Medium, "lora_name": nil,
				"group_idx": number(s.Group), "kv_cache_spec_kind": string(s.Spec), "extra_keys": extras(s)}
			if s.HasParent {
				m["parent_block_hash"] = number(s.Parent)
			}
			if len(s.Lora) > 0 {
				m["lora_name"] = string(s.Lora)
			}
			if len(s.Session) > 0 {
				m["session_id"] = string(s.Session)
			}
			events = append(events, m)
		case TypeRemoved:
			events = append(events, map[string]any{"type": "BlockRemoved", "block_hashes": numbers(e.Removed.Hashes),
				"medium": e.Removed.Medium, "group_idx": number(e.Removed.Group)})
		case TypeCleared:
			events = append(events, map[string]any{"type": "AllBlocksCleared"})
		}
	}
	return []any{json.Number(strconv.FormatFloat(b.TS, 'f', -1, 64)), events, number(b.Rank)}
}

type integer interface {
	~int | ~uint32 | ~uint64
}

func number[T integer](v T) json.Number {
	if v < 0 {
		return json.Number(strconv.FormatInt(int64(v), 10))
	}
	return json.Number(strconv.FormatUint(uint64(v), 10))
}

func numbers[T integer](list []T) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, number(v))
	}
	return out
}

func extras(s *Stored) []any {
	out := []any{}
	for i := range s.Hashes {
		if s.Extra == nil || s.Extra[i] == nil {
			out = append(out, nil)
			continue
		}
		keys := []any{}
		for _, k := range s.Extra[i] {
			text, _ := k.Text()
			keys = append(keys, string(text))
		}
		out = append(out, keys)
	}
	return out
}

// TestCaptures decodes every capture and compares it with what Python read from it.
func TestCaptures(t *testing.T) {
	names, err := filepath.Glob("testdata/kv-*.json")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d captures, %v", len(names), err)
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var want struct{ Payload any }
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		told(want.Payload)
		b := decoded(t, payload(t, strings.TrimSuffix(filepath.Base(path), ".json")))
		if got := plain(b); !reflect.DeepEqual(got, want.Payload) || b.Bad != 0 || b.Unknown != 0 {
			t.Errorf("%s: %d bad, %d unknown\ngot  %v\nwant %v", path, b.Bad, b.Unknown, got, want.Payload)
		}
	}
}

// told puts our words for a medium into a capture and leaves out what we do not read.
func told(payload any) {
	for _, e := range payload.([]any)[1].([]any) {
		m := e.(map[string]any)
		delete(m, "lora_id")
		if m["medium"] == "GPU" {
			m["medium"] = GPU
		}
	}
}

// TestBytesHashes: the same prompt was captured with hashes as numbers and as bytes.
func TestBytesHashes(t *testing.T) {
	p := payload(t, "kv-stored-bytes-hash")
	var raw []any
	if err := msgpack.Unmarshal(p, &raw); err != nil {
		t.Fatal(err)
	}
	s := decoded(t, p).Events[0].Stored
	want := raw[1].([]any)[0].(map[string]any)["block_hashes"].([]any)
	if len(s.Hashes) != len(want) || len(s.Hashes) != 7 {
		t.Fatalf("%d hashes, want %d", len(s.Hashes), len(want))
	}
	for i, h := range want {
		if got := s.Hashes[i]; got != xxhash.Sum64(h.([]byte)) {
			t.Errorf("hash %d is %x", i, got)
		}
	}
}

type list = []any

func tokens(n int) (out list) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// stored is the map form of an event about two blocks, with fields added or replaced.
func stored(fields ...any) map[string]any {
	m := map[string]any{"type": "BlockStored", "block_hashes": list{11, 12}, "parent_block_hash": nil,
		"token_ids": tokens(32), "block_size": 16, "lora_id": nil, "medium": "GPU", "lora_name": nil}
	for i := 0; i < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	return m
}

func batch(events ...any) list { return list{1.5, list(events), 0} }

// TestShapes: one event in all forms that versions of vLLM have sent.
func TestShapes(t *testing.T) {
	want := Stored{Hashes: []Hash{11, 12}, Tokens: decoded(t, pack(t, batch(stored()))).Events[0].Stored.Tokens, BlockSize: 16, Group: -1}
	if len(want.Tokens) != 32 || want.Tokens[31] != 31 {
		t.Fatalf("tokens %v", want.Tokens)
	}
	f := func(name string, v any) {
		t.Helper()
		b := decoded(t, pack(t, v))
		if len(b.Events) != 1 || b.Lost() || !reflect.DeepEqual(b.Events[0].Stored, want) {
			t.Errorf("%s: %d bad, %v, %+v", name, b.Bad, b.First, b.Events)
		}
	}
	ev := list{"BlockStored", list{11, 12}, nil, tokens(32), 16, nil, "GPU", nil}
	f("array event", batch(ev))
	f("array event, cut after block_size", batch(ev[:5]))
	f("array event, longer", batch(append(slices.Clone(ev), nil, nil, nil, 3, "LOCAL", list{1}, map[string]any{"a": 1})))
	f("map event, new field", batch(stored("new_field", list{1, list{2}}, "locality", "LOCAL")))
	f("map batch", map[string]any{"ts": 1.5, "events": list{ev}, "data_parallel_rank": 0, "new": list{}})
	f("map batch of maps", map[string]any{"events": list{stored()}})
	f("array batch without rank", list{1, list{ev}})
	f("array batch with more", list{1, list{ev}, nil, "more"})
	f("nil extras", batch(stored("extra_keys", list{nil, nil})))
	f("unnamed keys", batch(map[any]any{"type": "BlockStored", 7: list{1}, nil: 2, "block_hashes": list{11, 12}, "token_ids": tokens(32), "block_size": 16}))
}

func TestFields(t *testing.T) {
	b := decoded(t, pack(t, list{2.5, list{
		stored("parent_block_hash", -2, "medium", "cpu", "lora_name", "sql", "group_idx", 1, "kv_cache_spec_kind", "mamba", "session_id", "s-1",
			"locality", "REMOTE", "extra_keys", list{list{"sql", list{"image", 3}, "salt"}, nil}, "token_ids", list{math.MaxUint32, 70000, 255, 127}, "block_size", 2),
		list{"BlockRemoved", list{-1, int64(math.MinInt64), uint64(math.MaxUint64)}, "STORAGE", 2},
		list{"AllBlocksCleared"},
		map[string]any{"type": "AllBlocksCleared"},
	}, 3}))
	if b.TS != 2.5 || b.Rank != 3 || len(b.Events) != 4 {
		t.Fatalf("%+v", b)
	}
	s := &b.Events[0].Stored
	if s.Parent != math.MaxUint64-1 || !s.HasParent || s.Medium != CPU || string(s.Lora) != "sql" || s.Group != 1 || !s.Remote ||
		string(s.Spec) != "mamba" || string(s.Session) != "s-1" || !slices.Equal(s.Tokens, []uint32{math.MaxUint32, 70000, 255, 127}) {
		t.Errorf("%+v", s)
	}
	if len(s.Extra) != 2 || len(s.Extra[0]) != 3 || s.Extra[1] != nil {
		t.Fatalf("extra keys %v", s.Extra)
	}
	if text, ok := s.Extra[0][2].Text(); !ok || string(text) != "salt" {
		t.Errorf("third key is %q, %v", text, ok)
	}
	if text, ok := s.Extra[0][1].Text(); ok || s.Extra[0][1].Hash() == s.Extra[0][2].Hash() {
		t.Errorf("a pair is text %q", text)
	}
	r := &b.Events[1].Removed
	if !slices.Equal(r.Hashes, []Hash{math.MaxUint64, 1 << 63, math.MaxUint64}) || r.Medium != Disk || r.Group != 2 {
		t.Errorf("%+v", r)
	}
	if b.Events[2].Type != TypeCleared || b.Events[3].Type != TypeCleared || b.Events[2].Stored.Hashes != nil {
		t.Errorf("%+v", b.Events[2:])
	}
}

func TestMedia(t *testing.T) {
	for name, want := range map[string]Medium{"GPU": GPU, "gpu": GPU, "CPU": CPU, "cpu": CPU, "Storage": Disk, "FS": Disk, "OBJ": Disk, "disk": Disk, "": OtherMedium, "TAPE": OtherMedium} {
		b := decoded(t, pack(t, batch(list{"BlockRemoved", list{1}, name})))
		if got := b.Events[0].Removed.Medium; got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
}

// TestPlaceholder: the offloading of vLLM names blocks in a lower tier by hash alone.
func TestPlaceholder(t *testing.T) {
	b := decoded(t, pack(t, batch(stored("token_ids", list{}, "block_size", 0, "medium", "CPU"))))
	if len(b.Events) != 1 || b.Lost() || b.Events[0].Stored.Medium != CPU || len(b.Events[0].Stored.Tokens) != 0 {
		t.Errorf("%+v, %v", b.Events, b.First)
	}
}

// TestBadEvents: an event that cannot be used is left out, its neighbours are not.
func TestBadEvents(t *testing.T) {
	f := func(name string, ev any, bad, badSize, unknown int, what string) {
		t.Helper()
		first, last := list{"BlockRemoved", list{1}, "GPU"}, list{"BlockRemoved", list{2}, "GPU"}
		b := decoded(t, pack(t, batch(first, ev, last)))
		if len(b.Events) != 2 || b.Events[0].Removed.Hashes[0] != 1 || b.Events[1].Removed.Hashes[0] != 2 {
			t.Errorf("%s: events %+v", name, b.Events)
		}
		if b.Bad != bad || b.BadSize != badSize || b.Unknown != unknown || b.Lost() != (bad > 0) {
			t.Errorf("%s: %d bad, %d of size, %d unknown", name, b.Bad, b.BadSize, b.Unknown)
		}
		if bad > 0 && !strings.Contains(b.First.Error(), what) {
			t.Errorf("%s: %v, want %q", name, b.First, what)
		}
	}
	f("unknown type", map[string]any{"type": "BlockInactive", "block_hashes": "odd"}, 0, 0, 1, "")
	f("unknown array", list{"BlockInactive", list{list{list{}}}}, 0, 0, 1, "")
	f("no type", map[string]any{"block_hashes": list{1}}, 1, 0, 0, "without a type")
	f("empty array", list{}, 1, 0, 0, "without a type")
	f("a number", 7, 1, 0, 0, "unsigned, want an event")
	f("type is a number", list{7}, 1, 0, 0, "want a string")
	f("no hashes", list{"BlockRemoved"}, 1, 0, 0, "without block_hashes")
	f("empty hashes", list{"BlockRemoved", list{}}, 1, 0, 0, "without block_hashes")
	f("hash of a list", list{"BlockRemoved", list{list{}}}, 1, 0, 0, "array, want a hash")
	f("hash of a float", list{"BlockRemoved", list{1.5}}, 1, 0, 0, "float, want a hash")
	f("no tokens", list{"BlockStored", list{1}, nil}, 1, 0, 0, "without token_ids")
	f("big token", stored("token_ids", list{1, 1 << 32}), 1, 0, 0, "4294967296 is above 4294967295")
	f("negative token", stored("token_ids", list{-1}), 1, 0, 0, "-1 is below 0")
	f("text token", stored("token_ids", list{"a"}), 1, 0, 0, "string, want a number")
	f("tokens are text", stored("token_ids", "abc"), 1, 0, 0, "string, want an array")
	f("size 0", stored("block_size", 0), 1, 1, 0, "block_size is 0")
	f("size -1", stored("block_size", -1), 1, 1, 0, "-1 is below 0")
	f("size 2^31", stored("block_size", 1<<31), 1, 1, 0, "2147483648 is above 1048576")
	f("size 2^63", stored("block_size", uint64(1<<63)), 1, 1, 0, "is above 1048576")
	f("extras of one block", stored("extra_keys", list{list{"a"}}), 1, 0, 0, "extra_keys for 1 of 2")
	f("extras flat", stored("extra_keys", list{"a", "b"}), 1, 0, 0, "string, want an array")
	f("medium is a number", stored("medium", 3), 1, 0, 0, "want a string")
	f("group is huge", stored("group_idx", 1<<40), 1, 0, 0, "is above")
}

// TestBadBatches: each is refused with an error that says where, and leaves no events.
func TestBadBatches(t *testing.T) {
	f := func(p []byte, want string) {
		t.Helper()
		b := decoded(t, pack(t, batch(stored())))
		err := Decode(p, b)
		if err == nil || !strings.Contains(err.Error(), want) || len(b.Events) != 0 || b.Rank != -1 {
			t.Errorf("%x: %v with %d events, want %q", p, err, len(b.Events), want)
		}
	}
	f(nil, "byte 0: cut off")
	f([]byte{0xc1}, "byte 0: no msgpack value begins with 0xc1")
	f([]byte{0x07}, "byte 0: unsigned, want a batch")
	f([]byte{0x90}, "byte 0: batch without events")
	f([]byte{0x91, 0x01}, "byte 0: batch without events")
	f([]byte{0x80}, "byte 0: batch without events")
	f([]byte{0x92, 0xa1, 'x', 0x90}, "byte 1: string, want a number")
	f([]byte{0x92, 0x01, 0x07}, "byte 2: unsigned, want an array")
	f([]byte{0x92, 0x01, 0x90, 0xc0}, "byte 3: 1 bytes after the batch")
	f([]byte{0x93, 0x01, 0x90, 0xff}, "byte 3: -1 is below 0")
	f([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, "byte 0: array of 4294967295 with 0 bytes left")
	f([]byte{0xdf, 0xff, 0xff, 0xff, 0xff, 1}, "byte 0: map of 4294967295 with 1 bytes left")
	f(append([]byte{0x92, 0x01, 0xdd, 0, 1, 0, 1}, make([]byte, 1<<17)...), "65537 events in a batch")
	good := pack(t, batch(stored("extra_keys", list{list{"a"}, nil})))
	for n := range good {
		b := new(Batch)
		if err := Decode(good[:n], b); err == nil || len(b.Events) != 0 {
			t.Fatalf("cut at %d of %d: %v", n, len(good), err)
		}
	}
}

// TestHostileCosts: what is declared but not there takes no memory, and depth no stack.
func TestHostileCosts(t *testing.T) {
	deep := append(pack(t, "BlockStored"), bytes.Repeat([]byte{0x91}, 1<<20)...)
	deep = append(append([]byte{0x92, 0x01, 0x91, 0x93}, deep...), 0xc0, 0xc0)
	wide := append([]byte{0x92, 0x01, 0x91, 0x93}, pack(t, "BlockRemoved")...)
	wide = append(wide, 0xdd, 0xff, 0xff, 0xff, 0xff)
	nested := bytes.Repeat([]byte{0xdd, 0x00, 0x00, 0x10, 0x00}, 1<<15)
	b := new(Batch)
	for _, p := range [][]byte{deep, wide, nested, append([]byte{0x93, 0x01, 0x90, 0x00}, nested...)} {
		_ = Decode(p, b) // any outcome, but soon and small
		if n := cap(b.memory.hashes) + cap(b.memory.tokens) + cap(b.memory.blocks) + cap(b.Events); n > 1<<12 {
			t.Errorf("%d elements were made room for", n)
		}
	}
}

// chunk is a prompt of n blocks of 16 tokens, as vLLM sends it.
func chunk(t testing.TB, n int) map[string]any {
	hashes, ids, extra := list{}, list{}, list{}
	for i := range n {
		hashes = append(hashes, xxhash.Sum64String(strconv.Itoa(i)))
		extra = append(extra, nil)
		for j := range 16 {
			ids = append(ids, (i*16+j)*7919%128000)
		}
	}
	return stored("block_hashes", hashes, "token_ids", ids, "extra_keys", extra, "group_idx", 0,
		"kv_cache_spec_kind", "full_attention", "session_id", "wl1-0123456789abcdef", "parent_block_hash", uint64(1)<<63+5)
}

func TestDecodeMakesNoGarbage(t *testing.T) {
	p := pack(t, batch(chunk(t, 128), list{"BlockRemoved", list{1}, "GPU"}, stored("extra_keys", list{list{"a"}, nil}), list{"Other"}))
	b := decoded(t, p)
	if n := testing.AllocsPerRun(100, func() { _ = Decode(p, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"kv-stored-lora", "kv-stored-bytes-hash", "kv-removed-then-stored", "kv-cleared-then-stored", "kv-report-full"} {
		f.Add(payload(f, name))
	}
	f.Add(pack(f, batch(list{"BlockStored", list{11, 12}, nil, tokens(32), 16, nil, "GPU", nil, list{list{"x", list{"i", 2}}, nil}})))
	f.Add(pack(f, map[string]any{"ts": 1, "events": list{stored("locality", "REMOTE"), 3, list{"Other"}}, "data_parallel_rank": 0}))
	again := new(Batch)
	f.Fuzz(func(t *testing.T, p []byte) {
		b := new(Batch)
		err, errAgain := Decode(p, b), Decode(p, again)
		if (err == nil) != (errAgain == nil) || len(b.Events) != len(again.Events) {
			t.Fatalf("used memory changes the outcome: %v, %v", err, errAgain)
		}
		if err != nil && (len(b.Events) != 0 || b.Bad != 0) {
			t.Fatalf("%d events and %v", len(b.Events), err)
		}
		if err == nil && msgpack.NewDecoder(bytes.NewReader(p)).Skip() != nil {
			t.Fatalf("%x is not msgpack to another decoder", p)
		}
		for i := range b.Events {
			if !reflect.DeepEqual(b.Events[i], again.Events[i]) {
				t.Fatalf("event %d: %+v and %+v", i, b.Events[i], again.Events[i])
			}
			check(t, &b.Events[i], len(p))
		}
	})
}

// check holds an event against what Decode promises.
func check(t *testing.T, e *Event, size int) {
	if e.Type == TypeCleared {
		return
	}
	s, hashes := &e.Stored, e.Stored.Hashes
	if e.Type == TypeRemoved {
		hashes = e.Removed.Hashes
	}
	if len(hashes) == 0 || len(hashes)+len(s.Tokens) > size {
		t.Fatalf("%d hashes and %d tokens from %d bytes", len(hashes), len(s.Tokens), size)
	}
	if s.BlockSize < 0 || s.BlockSize > maxBlockSize || s.BlockSize == 0 && len(s.Tokens) > 0 || s.Extra != nil && len(s.Extra) != len(s.Hashes) {
		t.Fatalf("%+v", s)
	}
	for _, keys := range s.Extra {
		for _, k := range keys {
			k.Text()
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	run := func(name string, blocks int, events ...any) {
		p := pack(b, batch(events...))
		b.Run(name, func(b *testing.B) {
			batch := decoded(b, p)
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				if err := Decode(p, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(blocks)*float64(b.N)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
	run("prompt of 128 blocks", 128, chunk(b, 128))
	run("one decoded block", 1, chunk(b, 1))
	var mixed []any
	for range 32 {
		mixed = append(mixed, map[string]any{"type": "BlockRemoved", "block_hashes": list{uint64(1) << 63}, "medium": "GPU", "group_idx": 0}, chunk(b, 1))
	}
	run("32 evicted for 32 decoded", 64, mixed...)
}
