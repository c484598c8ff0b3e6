package state

// View is a state that pages are folded into. It hands out whole snapshots
// only: while pages of an answer are under way, and after any error, the one
// from before stays. KV records are no part of them; they are handed on. The
// zero View is empty and ready.
type View struct {
	Records Records // is handed the KV records; nil = nobody is

	held [2]Snapshot // the one in force, and the one being built
	now  int         // index of the one in force

	building bool
	header   Header // of the page taken last
	size     int    // bytes of the pages taken so far
	table    table
	pool     string // that the KV record handed over last belongs to

	whole bool // what is held cannot be built upon
}

// Result is what a page brought.
type Result uint8

const (
	// Partial says that the page was taken and that more belong to it.
	// [View.Query] asks for the next.
	Partial Result = iota
	// Complete says that [View.Snapshot] has a new generation.
	Complete
)

// Snapshot returns the state in force; its Generation is 0 if there is none
// yet. It must not be changed, and stays as it is up to the first Apply or
// Load after the next generation came into force: take it anew then.
func (v *View) Snapshot() *Snapshot { return &v.held[v.now] }

// Apply folds in one page, the body of a 200 answer to what [View.Query]
// asked. The page is not kept.
//
// Errors are [ErrGap], [ErrVersion] and [*CorruptError]. After any of them the
// state in force is what it was and Query asks for the whole, which is
// answered at once: wait a little before that, or two that disagree will
// spin.
func (v *View) Apply(page []byte) (Result, error) {
	r, err := v.apply(page)
	if err != nil {
		v.Restart()
	}
	return r, err
}

func (v *View) apply(page []byte) (Result, error) {
	h, err := ParseHeader(page)
	if err != nil {
		return Partial, err
	}
	if len(page) > MaxPage {
		return Partial, &CorruptError{Offset: MaxPage, What: "page too large"}
	}
	if err := v.follow(&h); err != nil {
		return Partial, err
	}
	if err := v.table.page(page); err != nil {
		return Partial, err
	}
	if v.size += len(page); v.size-v.table.kv > MaxSnapshot || v.table.kv > MaxRecords {
		return Partial, &CorruptError{What: "too many pages"}
	}
	if v.Records != nil {
		if h.Whole() && h.Page == 0 {
			v.Records.Begin()
		}
		v.handOver(page)
	}
	v.header, v.building = h, h.More
	if h.More {
		return Partial, nil
	}
	v.finish(&h)
	return Complete, nil
}

// follow checks that a page comes in turn. Page 0 begins anew whatever was
// under way before it.
func (v *View) follow(h *Header) error {
	if h.Page == 0 {
		return v.begin(h)
	}
	want := v.header
	want.Page++
	want.More = h.More
	if !v.building || *h != want {
		return ErrGap
	}
	return nil
}

func (v *View) begin(h *Header) error {
	next := &v.held[1-v.now]
	next.Pools = next.Pools[:0]
	if !h.Whole() {
		now := v.Snapshot()
		if h.Epoch != now.Epoch || h.From != now.Generation {
			return ErrGap
		}
		next.copyFrom(now)
	}
	v.table = table{s: next, last: -1}
	v.size = 0
	return nil
}

func (v *View) finish(h *Header) {
	v.now = 1 - v.now
	v.held[v.now].Epoch, v.held[v.now].Generation = h.Epoch, h.To
	v.whole = false
}

// Load puts the bytes of [AppendSnapshot] in force. On an error the state in
// force stays. A page under way is forgotten.
func (v *View) Load(b []byte) error {
	v.building = false
	if err := DecodeSnapshot(b, &v.held[1-v.now]); err != nil {
		return err
	}
	v.now = 1 - v.now
	v.whole = false
	return nil
}

// Restart makes Query ask for the whole. The state in force stays until then.
func (v *View) Restart() {
	v.building, v.whole = false, true
}

// Query returns the path to ask for next: the next page of an answer under
// way, what follows the generation in force, or the whole. pools are the
// pools wanted, none for all; asking for others than before needs a Restart.
// doubts are slots, see [Request].
func (v *View) Query(pools []string, doubts ...uint16) string {
	q := Request{Pools: pools, Doubts: doubts}
	now := v.Snapshot()
	switch {
	case v.building:
		q.Epoch, q.Gen = v.header.Epoch, v.header.From
		q.To, q.Page = v.header.To, v.header.Page+1
	case !v.whole:
		q.Epoch, q.Gen = now.Epoch, now.Generation
	}
	return q.Path()
}

// copyFrom makes s say what o says, in its own memory but for the strings.
func (s *Snapshot) copyFrom(o *Snapshot) {
	s.Epoch, s.Generation = o.Epoch, o.Generation
	s.Pools = resize(s.Pools, len(o.Pools))
	for i := range o.Pools {
		s.Pools[i].copyFrom(&o.Pools[i])
	}
}

func (p *Pool) copyFrom(o *Pool) {
	p.Name = o.Name
	p.Models = copyList(p.Models, o.Models)
	p.Replicas = resize(p.Replicas, len(o.Replicas))
	for i := range o.Replicas {
		r, from := &p.Replicas[i], &o.Replicas[i]
		models := copyList(r.Models, from.Models)
		adapters := copyList(r.Adapters, from.Adapters)
		*r = *from
		r.Models, r.Adapters = models, adapters
	}
}

// copyList copies from into the memory of list; nil stays nil.
func copyList[T any](list, from []T) []T {
	if from == nil {
		return nil
	}
	list = resize(list, len(from))
	copy(list, from)
	return list
}
