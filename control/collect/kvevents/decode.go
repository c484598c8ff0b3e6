package kvevents

import (
	"bytes"
	"math"
	"slices"
)

// Bounds of one batch. vLLM's largest, a prompt of a million tokens announced anew,
// stays far below them.
const (
	maxEvents    = 1 << 16
	maxBlocks    = 1 << 20
	maxExtraKeys = 1 << 18
	maxBlockSize = 1 << 20
	maxGroup     = 1 << 16
	maxRank      = 1 << 16
	maxKept      = 1 << 20 // tokens whose memory a Batch keeps for the next
)

// Decode reads the payload of one message into b, whose memory it uses again. The
// batch is [ts, events, rank] or a map of them; an event is a map with a type or the
// older array that begins with its type. What is not known is passed over. An event
// that cannot be used is left out and counted in b; an error, always an *Error,
// means that the batch cannot be read to its end, and leaves b without events.
func Decode(payload []byte, b *Batch) error {
	b.reset()
	d := decoder{data: payload}
	d.batch(b)
	if d.err == nil && d.pos != len(payload) {
		d.fail(d.pos, "%d bytes after the batch", len(payload)-d.pos)
	}
	if d.err != nil {
		b.reset()
		return d.err
	}
	return nil
}

func (b *Batch) reset() {
	m := b.memory
	if cap(m.tokens) > maxKept {
		m = memory{}
	}
	m.hashes, m.tokens, m.keys, m.blocks = m.hashes[:0], m.tokens[:0], m.keys[:0], m.blocks[:0]
	*b = Batch{Rank: -1, Events: b.Events[:0], memory: m}
}

// add makes room for one more event.
func (b *Batch) add() *Event {
	if len(b.Events) < cap(b.Events) {
		b.Events = b.Events[:len(b.Events)+1]
		e := &b.Events[len(b.Events)-1]
		*e = Event{}
		return e
	}
	b.Events = append(b.Events, Event{})
	return &b.Events[len(b.Events)-1]
}

func (d *decoder) batch(b *Batch) {
	start := d.pos
	found := false
	switch k, n := d.head(); k {
	case kindArray:
		for i := range n {
			found = d.batchField(b, [...]string{"ts", "events", "data_parallel_rank", ""}[min(i, 3)]) || found
		}
	case kindMap:
		for range n {
			found = d.batchField(b, string(d.key())) || found
		}
	default:
		d.fail(start, "%s, want a batch", k)
	}
	if !found {
		d.fail(start, "batch without events")
	}
}

// batchField reads a field of the batch and tells whether it is the events.
func (d *decoder) batchField(b *Batch, name string) bool {
	switch name {
	case "ts":
		if d.nothing() {
			break
		}
		if b.TS = d.float(); math.IsNaN(b.TS) || math.IsInf(b.TS, 0) {
			b.TS = 0
		}
	case "events":
		d.events(b)
		return true
	case "data_parallel_rank":
		if !d.nothing() {
			b.Rank = int(d.uint(maxRank))
		}
	default:
		d.skip()
	}
	return false
}

// key reads a map's key; one that is not a string is passed over and empty.
func (d *decoder) key() []byte {
	if d.peek() == kindString {
		return d.text()
	}
	d.skip()
	return nil
}

func (d *decoder) events(b *Batch) {
	if d.nothing() {
		return
	}
	n := d.array()
	if n > maxEvents {
		d.fail(d.pos, "%d events in a batch, more than %d", n, maxEvents)
	}
	for i := 0; i < n && d.err == nil; i++ {
		d.event(b)
	}
}

// event reads one event into b. If it cannot be used, it is passed over.
func (d *decoder) event(b *Batch) {
	start, had := d.pos, len(b.Events)
	r := reading{b: b}
	d.readEvent(&r)
	if d.err == nil && r.known {
		return
	}
	b.Events = b.Events[:had]
	if bad := d.err; bad != nil {
		b.Bad++
		if r.badSize {
			b.BadSize++
		}
		if b.First == nil {
			b.First = bad
		}
	} else {
		b.Unknown++
	}
	d.err, d.pos = nil, start
	d.skip()
}

// reading is an event on its way.
type reading struct {
	b       *Batch
	event   *Event
	known   bool // its type is
	tokens  bool // token_ids was there
	size    bool // block_size was there
	badSize bool
}

func (d *decoder) readEvent(r *reading) {
	start := d.pos
	switch k, n := d.head(); k {
	case kindArray:
		d.positional(r, int(n))
	case kindMap:
		d.tagged(r, int(n))
	default:
		d.fail(start, "%s, want an event", k)
	}
	if d.err == nil && r.known {
		d.finish(r, start)
	}
}

// positional reads the older form: the type and then the fields in a fixed order,
// of which later versions have more.
func (d *decoder) positional(r *reading, n int) {
	if n == 0 {
		d.fail(d.pos-1, "event without a type")
		return
	}
	order := d.begin(r, d.text())
	if !r.known {
		return
	}
	for i := 0; i < n-1 && d.err == nil; i++ {
		f := fieldOther
		if i < len(order) {
			f = order[i]
		}
		d.field(r, f)
	}
}

// tagged reads a map, in which the type may be anywhere.
func (d *decoder) tagged(r *reading, n int) {
	first := d.pos
	d.begin(r, d.find(n, "type"))
	if !r.known {
		return
	}
	d.pos = first
	for i := 0; i < n && d.err == nil; i++ {
		d.field(r, fieldOf(d.key()))
	}
}

// find returns the text under a name in a map of n pairs.
func (d *decoder) find(n int, name string) []byte {
	start := d.pos
	for i := 0; i < n && d.err == nil; i++ {
		if string(d.key()) == name {
			return d.text()
		}
		d.skip()
	}
	d.fail(start, "event without a %s", name)
	return nil
}

// begin makes an event of a type and returns the order of its fields in an array.
func (d *decoder) begin(r *reading, name []byte) (order []field) {
	t := TypeStored
	switch string(name) {
	case "BlockStored":
		order = storedOrder
	case "BlockRemoved":
		t, order = TypeRemoved, removedOrder
	case "AllBlocksCleared":
		t = TypeCleared
	default:
		return nil
	}
	if d.err != nil {
		return nil
	}
	r.known, r.event = true, r.b.add()
	r.event.Type = t
	r.event.Stored.Group = -1
	return order
}

// finish checks what was read of an event that began at start.
func (d *decoder) finish(r *reading, start int) {
	e := r.event
	s := &e.Stored
	switch {
	case e.Type == TypeCleared:
		e.Stored = Stored{}
	case len(s.Hashes) == 0:
		d.fail(start, "event without block_hashes")
	case e.Type == TypeRemoved:
		e.Removed = Removed{Hashes: s.Hashes, Medium: s.Medium, Remote: s.Remote, Group: s.Group}
		e.Stored = Stored{}
	case !r.tokens || !r.size:
		d.fail(start, "BlockStored without token_ids or block_size")
	case s.BlockSize == 0 && len(s.Tokens) > 0:
		r.badSize = true
		d.fail(start, "block_size is 0 with %d tokens", len(s.Tokens))
	case s.Extra != nil && len(s.Extra) != len(s.Hashes):
		d.fail(start, "extra_keys for %d of %d blocks", len(s.Extra), len(s.Hashes))
	}
}

// field is a field of an event.
type field uint8

const (
	fieldOther field = iota
	fieldHashes
	fieldParent
	fieldTokens
	fieldSize
	fieldMedium
	fieldLora
	fieldExtra
	fieldGroup
	fieldSpec
	fieldLocality
	fieldSession
)

// The order of fields after the type, in events that are arrays.
var (
	storedOrder = []field{fieldHashes, fieldParent, fieldTokens, fieldSize, fieldOther /* lora_id */, fieldMedium,
		fieldLora, fieldExtra, fieldGroup, fieldSpec, fieldOther /* kv_cache_spec_sliding_window */}
	removedOrder = []field{fieldHashes, fieldMedium, fieldGroup}
)

func fieldOf(name []byte) field {
	switch string(name) {
	case "block_hashes":
		return fieldHashes
	case "parent_block_hash":
		return fieldParent
	case "token_ids":
		return fieldTokens
	case "block_size":
		return fieldSize
	case "medium":
		return fieldMedium
	case "lora_name":
		return fieldLora
	case "extra_keys":
		return fieldExtra
	case "group_idx":
		return fieldGroup
	case "kv_cache_spec_kind":
		return fieldSpec
	case "locality":
		return fieldLocality
	case "session_id":
		return fieldSession
	}
	return fieldOther
}

// field reads the value of a field; nil is as if it was not there.
func (d *decoder) field(r *reading, f field) {
	s := &r.event.Stored
	if f == fieldOther {
		d.skip()
		return
	}
	if d.nothing() {
		return
	}
	switch f {
	case fieldHashes:
		s.Hashes = d.hashes(r.b)
	case fieldParent:
		s.Parent, s.HasParent = d.hash(), true
	case fieldTokens:
		s.Tokens, r.tokens = d.tokenIDs(r.b), true
	case fieldSize:
		s.BlockSize, r.size = int(d.uint(maxBlockSize)), true
		r.badSize = d.err != nil
	case fieldMedium:
		s.Medium = mediumOf(d.text())
	case fieldLora:
		s.Lora = d.text()
	case fieldExtra:
		s.Extra = d.extra(r.b)
	case fieldGroup:
		s.Group = int(d.uint(maxGroup))
	case fieldSpec:
		s.Spec = d.text()
	case fieldLocality:
		s.Remote = bytes.EqualFold(d.text(), remote)
	case fieldSession:
		s.Session = d.text()
	}
}

func (d *decoder) hashes(b *Batch) []Hash {
	start, n := d.pos, d.array()
	all := b.memory.hashes
	from := len(all)
	if n > maxBlocks-from {
		d.fail(start, "more than %d blocks in a batch", maxBlocks)
		return nil
	}
	all = slices.Grow(all, n)
	for i := 0; i < n && d.err == nil; i++ {
		all = append(all, d.hash())
	}
	b.memory.hashes = all
	return all[from:len(all):len(all)]
}

func (d *decoder) tokenIDs(b *Batch) []uint32 {
	from := len(b.memory.tokens)
	all := d.tokens(b.memory.tokens)
	b.memory.tokens = all
	return all[from:len(all):len(all)]
}

// extra reads the keys of each block; nil if none has any, as with plain text.
func (d *decoder) extra(b *Batch) [][]ExtraKey {
	start, n := d.pos, d.array()
	all := b.memory.blocks
	from := len(all)
	if n > maxBlocks-from {
		d.fail(start, "extra_keys of more than %d blocks in a batch", maxBlocks)
		return nil
	}
	plain := true
	all = slices.Grow(all, n)
	for i := 0; i < n && d.err == nil; i++ {
		keys := d.keys(b)
		plain = plain && keys == nil
		all = append(all, keys)
	}
	if plain {
		b.memory.blocks = all[:from]
		return nil
	}
	b.memory.blocks = all
	return all[from:len(all):len(all)]
}

// keys reads the keys of one block, nil if it has none.
func (d *decoder) keys(b *Batch) []ExtraKey {
	if d.nothing() {
		return nil
	}
	start, n := d.pos, d.array()
	all := b.memory.keys
	from := len(all)
	if n > maxExtraKeys-from {
		d.fail(start, "more than %d extra keys in a batch", maxExtraKeys)
	}
	if n == 0 || d.err != nil {
		return nil
	}
	for range n {
		all = append(all, d.raw())
	}
	b.memory.keys = all
	return all[from:len(all):len(all)]
}

var (
	remote = []byte("REMOTE")
	media  = []struct {
		name   []byte
		medium Medium
	}{
		{[]byte("GPU"), GPU}, {[]byte("CPU"), CPU}, {[]byte("STORAGE"), Disk},
		{[]byte("DISK"), Disk}, {[]byte("FS"), Disk}, {[]byte("OBJ"), Disk},
	}
)

// mediumOf knows the names that versions of vLLM have used, in any case.
func mediumOf(name []byte) Medium {
	if string(name) == "GPU" {
		return GPU
	}
	for i := range media {
		if bytes.EqualFold(name, media[i].name) {
			return media[i].medium
		}
	}
	return OtherMedium
}
