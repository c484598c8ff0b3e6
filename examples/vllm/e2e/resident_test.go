//go:build vllm

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/warmlane/warmlane/examples/vllm/engine"
)

// name is a block by what is in it and in all blocks before it, the same at every engine.
type name [sha256.Size]byte

// after names the block with the tokens that follows parent. The first block of a prompt follows the zero name; adapter is
// in the name of every block, salt in that of the first.
func after(parent name, tokens []uint32, adapter, salt string) name {
	text := fmt.Appendf(nil, "%x %q %q", parent, adapter, salt)
	for _, t := range tokens {
		text = binary.BigEndian.AppendUint32(text, t)
	}
	return sha256.Sum256(text)
}

// resident is what an engine holds, by its own account.
type resident struct {
	mu     sync.Mutex
	names  map[uint64]name // by the engine's hash
	copies map[name]int
	seq    uint64 // batches seen
	faults []string

	removed, copied int // blocks, as events told
}

// follow listens to an engine's events until the test ends or stop is called. It must begin before the first request.
func follow(t *testing.T, s *engine.Server) (r *resident, stop func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	socket := zmq4.NewSub(ctx)
	if err := socket.Dial(s.Events); err != nil {
		t.Fatal(err)
	}
	if err := socket.SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	r = &resident{}
	r.clear()
	go func() {
		defer socket.Close()
		for {
			m, err := socket.Recv()
			if err != nil {
				return
			}
			r.take(m.Frames)
		}
	}()
	return r, stop
}

func (r *resident) clear() {
	r.names, r.copies = map[uint64]name{}, map[name]int{}
}

// event is any of vLLM's, by Type.
type event struct {
	Type   string   `msgpack:"type"`
	Hashes []uint64 `msgpack:"block_hashes"`
	Parent *uint64  `msgpack:"parent_block_hash"`
	Tokens []uint32 `msgpack:"token_ids"`
	Size   int      `msgpack:"block_size"`
	Lora   string   `msgpack:"lora_name"`
	Extra  [][]any  `msgpack:"extra_keys"`
}

// take reads a message: topic, sequence number, and a batch as [time, events, rank].
func (r *resident) take(frames [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(frames) != 3 || len(frames[1]) != 8 {
		r.fault("a message of %d frames", len(frames))
		return
	}
	if seq := binary.BigEndian.Uint64(frames[1]); seq != r.seq {
		r.fault("batch %d after %d batches", seq, r.seq)
	}
	r.seq++
	batch := struct {
		_msgpack struct{} `msgpack:",as_array"`
		Time     float64
		Events   []event
		Rank     *int
	}{}
	if err := msgpack.Unmarshal(frames[2], &batch); err != nil {
		r.fault("batch %d: %v", r.seq-1, err)
	}
	for i := range batch.Events {
		r.apply(&batch.Events[i])
	}
}

func (r *resident) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *resident) apply(e *event) {
	switch e.Type {
	case "BlockStored":
		r.store(e)
	case "BlockRemoved":
		for _, hash := range e.Hashes {
			r.copies[r.names[hash]]--
			r.removed++
		}
	case "AllBlocksCleared":
		r.clear()
	default:
		r.fault("event %q", e.Type)
	}
}

// store counts the blocks of an event. An engine tells of every copy it makes of a block, and of the end of each.
func (r *resident) store(e *event) {
	var parent name
	if e.Parent != nil {
		known := false
		if parent, known = r.names[*e.Parent]; !known {
			r.fault("a block after an unknown one")
		}
	}
	if len(e.Tokens) != e.Size*len(e.Hashes) || len(e.Extra) != len(e.Hashes) {
		r.fault("%d hashes with %d tokens and %d extra keys", len(e.Hashes), len(e.Tokens), len(e.Extra))
		return
	}
	for i, hash := range e.Hashes {
		parent = after(parent, e.Tokens[i*e.Size:(i+1)*e.Size], e.Lora, salt(e.Extra[i], e.Lora))
		r.names[hash] = parent
		if r.copies[parent]++; r.copies[parent] > 1 {
			r.copied++
		}
	}
}

// salt is what is left of a block's extra keys without the adapter's name.
func salt(extra []any, lora string) string {
	for i, key := range extra {
		if key == lora && lora != "" {
			extra = append(extra[:i:i], extra[i+1:]...)
			break
		}
	}
	if len(extra) == 0 {
		return ""
	}
	return fmt.Sprint(extra[0])
}

// holds is how many tokens of a prompt the engine need not compute: whole blocks from the first on, but never the last token.
func (r *resident) holds(p *prompt) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var at name
	for n := engine.BlockSize; n < len(p.tokens); n += engine.BlockSize {
		first := ""
		if n == engine.BlockSize {
			first = p.salt
		}
		at = after(at, p.tokens[n-engine.BlockSize:n], p.adapter, first)
		if r.copies[at] <= 0 {
			return n - engine.BlockSize
		}
	}
	return (len(p.tokens) - 1) / engine.BlockSize * engine.BlockSize
}

// batches is how many the engine has published.
func (r *resident) batches() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// stress tells how many blocks had to make room, and how many copies came about of blocks that were there.
func (r *resident) stress() (removed, copied int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removed, r.copied
}

// check fails the test if the events were not what they should be.
func (r *resident) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		t.Error("events:", fault)
	}
}
