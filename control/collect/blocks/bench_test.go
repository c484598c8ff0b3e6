package blocks

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/warmlane/warmlane/control/collect/kvevents"
	"github.com/warmlane/warmlane/examples/replica/engine"
	wire "github.com/warmlane/warmlane/examples/replica/kvevents"
)

// tokensOf are the tokens of n blocks of 16, different ones for each prompt.
func tokensOf(prompt uint32, n int) []uint32 {
	t := make([]uint32, 16*n)
	for i := range t {
		t[i] = prompt*2654435761 + uint32(i)*40503
	}
	return t
}

// stream is what an engine whose cache holds some prompts of so many blocks says
// when it serves more and more of them: it stores one and removes the oldest,
// deepest blocks first.
type stream struct {
	at      At
	blocks  int // of a prompt
	prompts []kvevents.Stored
	removed kvevents.Removed
	next    int
}

func newStream(slot uint16, prompts, blocks int) *stream {
	s := &stream{at: At{slot, 0}, blocks: blocks, prompts: make([]kvevents.Stored, prompts)}
	for i := range s.prompts {
		p := &s.prompts[i]
		p.BlockSize = 16
		p.Group = -1
		p.Tokens = tokensOf(uint32(slot)<<20|uint32(i), blocks)
		p.Hashes = make([]kvevents.Hash, blocks)
		for j := range p.Hashes {
			p.Hashes[j] = (uint64(slot)<<40 | uint64(i*blocks+j) + 1) * 0x9e3779b97f4a7c15
		}
	}
	s.removed = kvevents.Removed{Hashes: make([]kvevents.Hash, 1), Group: -1}
	return s
}

func (s *stream) store(x *Index) *kvevents.Stored {
	e := &s.prompts[s.next%len(s.prompts)]
	s.next++
	x.Stored(s.at, e, float64(s.next))
	return e
}

func (s *stream) remove(x *Index, e *kvevents.Stored) {
	for i := len(e.Hashes) - 1; i >= 0; i-- {
		s.removed.Hashes[0] = e.Hashes[i]
		x.Removed(s.at, &s.removed)
	}
}

type silent struct{}

func (silent) Anomaly(kvevents.Anomaly, int) {}

// BenchmarkFold is one block stored or removed per op, in an index of 240,000
// blocks on eight engines, with what is to be told taken off now and then.
func BenchmarkFold(b *testing.B) {
	for _, blocks := range []int{128, 1} {
		b.Run(fmt.Sprintf("run of %d blocks", blocks), func(b *testing.B) {
			x := New("pool", silent{})
			var engines []*stream
			for slot := range uint16(8) {
				s := newStream(slot, 2*30000/blocks, blocks)
				for range 30000 / blocks {
					s.store(x)
				}
				engines = append(engines, s)
			}
			x.Records(func(uint64, []byte) {})
			b.ReportAllocs()
			b.ResetTimer()
			done, i := 0, 0
			for ; done < b.N; done += 2 * blocks {
				s := engines[i%8]
				oldest := &s.prompts[(s.next-30000/blocks+len(s.prompts))%len(s.prompts)]
				s.remove(x, oldest)
				s.store(x)
				if i++; i%512 == 0 {
					b.StopTimer()
					x.Records(func(uint64, []byte) {})
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

// BenchmarkDecoding is one block per op that decoding filled, at the end of one
// of 64 conversations.
func BenchmarkDecoding(b *testing.B) {
	for name, text := range map[string]bool{"": false, " with text key": true} {
		b.Run("block"+name, func(b *testing.B) {
			x := New("pool", silent{})
			s := newStream(0, 64, 256)
			e := kvevents.Stored{BlockSize: 16, Group: -1, HasParent: true, Hashes: make([]kvevents.Hash, 1)}
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for n < b.N {
				for i := range 256 {
					for p := range s.prompts {
						from := &s.prompts[p]
						e.HasParent = i > 0
						if i > 0 {
							e.Parent = from.Hashes[i-1]
						}
						e.Hashes[0], e.Tokens = from.Hashes[i], from.Tokens[16*i:16*(i+1)]
						if text {
							e.Session = appendSession(e.Session[:0], uint64(p+1))
						}
						x.Stored(s.at, &e, float64(i))
						n++
					}
				}
				b.StopTimer()
				x.Records(func(uint64, []byte) {})
				x.Cleared(s.at)
				x.Records(func(uint64, []byte) {})
				b.StartTimer()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

func appendSession(dst []byte, key uint64) []byte {
	dst = append(dst, "wl1-"...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[key>>shift&15])
	}
	return dst
}

// BenchmarkShared is one block per op of a prompt that 64 engines have.
func BenchmarkShared(b *testing.B) {
	x := New("pool", silent{})
	var engines []*stream
	for slot := range uint16(64) {
		s := newStream(0, 1, 128)
		s.at.Slot = slot
		s.store(x)
		engines = append(engines, s)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += 256 {
		s := engines[n/256%64]
		s.remove(x, &s.prompts[0])
		s.store(x)
	}
}

// BenchmarkRecords is one changed node of 128 blocks on 8 engines per op.
func BenchmarkRecords(b *testing.B) {
	x := New("pool", silent{})
	const nodes = 1024
	prompts := newStream(0, nodes, 128)
	for slot := range uint16(8) {
		for i := range prompts.prompts {
			x.Stored(At{slot, 0}, &prompts.prompts[i], float64(i))
		}
	}
	x.Records(func(uint64, []byte) {})
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += nodes {
		b.StopTimer()
		for i := range prompts.prompts {
			p := &prompts.prompts[i]
			prompts.removed.Hashes[0] = p.Hashes[127]
			if n/nodes%2 == 0 {
				x.Removed(prompts.at, &prompts.removed)
				continue
			}
			last := kvevents.Stored{
				BlockSize: 16, Group: -1, HasParent: true, Parent: p.Hashes[126], Hashes: p.Hashes[127:], Tokens: p.Tokens[16*127:],
			}
			x.Stored(prompts.at, &last, 1)
		}
		told := 0
		b.StartTimer()
		x.Records(func(uint64, []byte) { told++ })
		if told != nodes {
			b.Fatalf("%d records", told)
		}
	}
}

// TestNoGarbage folds in a steady state.
func TestNoGarbage(t *testing.T) {
	x := New("pool", silent{})
	s := newStream(0, 64, 50)
	round := func() {
		e := s.store(x)
		x.Records(func(uint64, []byte) {})
		s.remove(x, e)
		x.Records(func(uint64, []byte) {})
	}
	for range 200 {
		round()
	}
	// One record of the node; it is removed without a payload.
	if n := testing.AllocsPerRun(200, round); n > 1 {
		t.Errorf("%v allocations for one record", n)
	}
}

// TestMemory fills eight engines of 30,000 blocks with prompts of several kinds.
func TestMemory(t *testing.T) {
	const limit = 24 << 20
	for _, blocks := range []int{2000, 128, 24, 8} {
		var before, after runtime.MemStats
		streams := make([]*stream, 8)
		for slot := range streams {
			streams[slot] = newStream(uint16(slot), 30000/blocks, blocks)
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := New("pool", silent{})
		for range 30000 / blocks {
			for _, s := range streams {
				s.store(x)
			}
		}
		records, bytes := 0, 0
		x.Records(func(_ uint64, payload []byte) { records++; bytes += len(payload) })
		runtime.GC()
		runtime.ReadMemStats(&after)
		heap := int(after.HeapAlloc - before.HeapAlloc)
		n := 0
		for slot := range streams {
			n += x.Blocks(uint16(slot))
		}
		t.Logf("prompts of %d blocks: %d blocks, %d kB of heap, %d records of %d kB", blocks, n, heap>>10, records, bytes>>10)
		if n < 230000 || heap > limit {
			t.Errorf("%d blocks take %d bytes, more than %d", n, heap, limit)
		}
		runtime.KeepAlive(streams)
	}
}

// BenchmarkDecodeFold is one block per op, from the bytes of a batch of runs to
// the index.
func BenchmarkDecodeFold(b *testing.B) {
	s := newStream(0, 64, 128)
	var events []engine.Event
	for i := range s.prompts {
		p := &s.prompts[i]
		e := engine.Event{Kind: engine.BlockStored, Root: true, BlockSize: 16, Extra: make([][]string, 128)}
		for _, t := range p.Tokens {
			e.Tokens = append(e.Tokens, engine.Token(t%128000))
		}
		for _, h := range p.Hashes {
			var name engine.Hash
			binary.BigEndian.PutUint64(name[len(name)-8:], h)
			e.Hashes = append(e.Hashes, name)
		}
		events = append(events, e)
	}
	payload := wire.Shape{}.AppendBatch(nil, 1, events)
	var batch kvevents.Batch
	x := New("pool", silent{})
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for ; n < b.N; n += 64 * 128 {
		if err := kvevents.Decode(payload, &batch); err != nil {
			b.Fatal(err)
		}
		x.Fold(s.at, &batch)
		x.Cleared(s.at)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "blocks/s")
	if x.Records(func(uint64, []byte) {}); x.tree.live != 0 {
		b.Fatalf("%d blocks are left", x.tree.live)
	}
}
