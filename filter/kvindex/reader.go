package kvindex

import "github.com/warmlane/warmlane/filter/shared"

// Run is how many leading blocks of a prompt a replica has.
type Run struct {
	GPU uint32 // on the GPU
	Any uint32 // in any tier, at least as many
}

// Reader is one worker's look into the index. It is not safe for concurrent
// use; several readers on one store are.
type Reader struct {
	store shared.Store
	opts  Options
	stats Stats
	now   int64
	head  head
	seen  bool // head was read
	at    int64
	kept  []kept
	key   []byte
}

// NewReader returns a reader of the index in store.
func NewReader(store shared.Store, o Options) *Reader {
	return &Reader{
		store: store, opts: o.withDefaults(), kept: make([]kept, keptRecords), key: make([]byte, 0, 32),
	}
}

// Stats returns the counters.
func (r *Reader) Stats() Stats { return r.stats }

// Begin comes before the look-ups of a request and reports whether there is an
// index that is complete. now is in milliseconds, on a clock that moves for all
// calls alike: what was read from the store serves for 20 ms.
func (r *Reader) Begin(now int64) bool {
	r.now = now
	if !r.seen || !fresh(now, r.at) {
		r.readHead()
	}
	return r.head.complete
}

func (r *Reader) readHead() {
	r.key = append(r.key[:0], shared.BlocksKey...)
	r.stats.Reads++
	value, _, err := r.store.Get(r.key)
	h, ok := readHead(value)
	if err == nil && !ok {
		r.stats.Damaged++
	}
	if h.epoch != r.head.epoch {
		r.forget()
	}
	r.head, r.seen, r.at = h, true, r.now
}

// Lookup follows the keys of a prompt down the tree and writes to runs, by
// slot, how many of its leading blocks each replica has. Slots beyond runs are
// left out. It stops where the tree does, and where no replica has more. Two
// prompts that part inside of a node are told apart by 16 bits of a key.
//
// On an error runs hold what was found until then.
func (r *Reader) Lookup(keys []uint64, runs []Run) error {
	clear(runs)
	for i, nodes := 0, 0; i < len(keys) && nodes < r.opts.Path; nodes++ {
		v, ok, err := r.node(keys[i])
		if err != nil || !ok || int(v.depth) != i {
			return err
		}
		same := v.common(keys[i:])
		if !v.extend(runs, uint32(i), uint32(same)) || same < v.blocks() {
			return nil
		}
		i += same
	}
	return nil
}

// common is how many of the node's blocks have these keys, from the first on.
func (v *nodeView) common(keys []uint64) int {
	n := min(v.blocks(), len(keys))
	for i := range n {
		if v.tag(i) != uint16(keys[i]) {
			return i
		}
	}
	return n
}

// extend adds the runs of a node, of which the first same blocks count, to those
// that reach it, which is at depth. It reports whether one reaches its end.
func (v *nodeView) extend(runs []Run, depth, same uint32) (through bool) {
	for i := range v.holders() {
		h := v.holder(i)
		if int(h.Slot) >= len(runs) {
			break
		}
		run := &runs[h.Slot]
		if run.GPU == depth {
			run.GPU += min(uint32(h.Run), same)
		}
		if run.Any == depth {
			run.Any += min(uint32(h.Any), same)
			through = through || run.Any == depth+same
		}
	}
	return through
}

// LookupText finds the blocks that an engine made of the prompt with text key t
// and writes to runs, by slot, how many of the first maxBlocks of them each
// replica has. Depth is how many are known, up to maxBlocks, so a run of that
// length is all; size is the number of tokens in a block.
//
// ok is false if the text is not known, or if a node on the way to the root is
// missing or does not fit; then nobody has anything.
func (r *Reader) LookupText(t uint64, maxBlocks uint32, runs []Run) (depth, size uint32, ok bool) {
	var text Text
	if !r.text(t, &text) {
		clear(runs)
		return 0, 0, false
	}
	depth = min(text.Depth, maxBlocks)
	for i := range runs {
		runs[i] = Run{depth, depth}
	}
	if !r.climb(&text, runs) {
		clear(runs)
		return 0, 0, false
	}
	return depth, text.Size, true
}

// climb goes from the end of a path to the root and cuts the runs down to what
// each node on the way allows. It reports whether it came there.
func (r *Reader) climb(t *Text, runs []Run) bool {
	id, end, counted := t.Leaf, t.Depth, uint32(t.Blocks)
	for range r.opts.Path {
		v, ok, err := r.node(id)
		blocks := uint32(v.blocks())
		if counted == 0 {
			counted = blocks
		}
		if err != nil || !ok || v.size != t.Size || counted > blocks || v.depth+counted != end {
			return false
		}
		v.limit(runs, counted)
		if v.parent == 0 {
			return true
		}
		id, end, counted = v.parent, v.depth, 0
	}
	return false
}

// limit cuts each run down to where it ends in a node, of which the first blocks
// count. One that goes through the node stays as it is.
func (v *nodeView) limit(runs []Run, blocks uint32) {
	next := 0
	for i := range v.holders() {
		h := v.holder(i)
		if int(h.Slot) >= len(runs) {
			break
		}
		cut(runs[next:h.Slot], v.depth)
		next = int(h.Slot) + 1
		run := &runs[h.Slot]
		if uint32(h.Run) < blocks {
			run.GPU = min(run.GPU, v.depth+uint32(h.Run))
		}
		if uint32(h.Any) < blocks {
			run.Any = min(run.Any, v.depth+uint32(h.Any))
		}
	}
	cut(runs[next:], v.depth)
}

// cut ends runs at depth.
func cut(runs []Run, depth uint32) {
	for i := range runs {
		runs[i].GPU = min(runs[i].GPU, depth)
		runs[i].Any = min(runs[i].Any, depth)
	}
}
