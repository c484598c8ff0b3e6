package route

// Ticket is one request's place in the ledger, from choice to settlement. The
// zero Ticket has none, and all calls with it do nothing.
type Ticket struct {
	// Output is how many tokens were generated, 0 if not known. Set before
	// Settle, it moves the replica's clock: its cache keeps them, too.
	Output uint32

	slot     int // -1: no replica of ours has it
	key      uint32
	prompt   uint32
	uncached uint32
	stream   bool
	phase    phase

	work  uint32 // tokens the replica had to do since ...
	since int64  // ... for this one's first token to come; 0 = no sample
}

type phase uint8

const (
	phaseNone    phase = iota // not in the ledger
	phaseSent                 // owed and in flight
	phaseFirst                // in flight
	phaseSettled              // out of the ledger for good
)

// Slot is the replica that has the request, -1 if none of ours has.
func (t *Ticket) Slot() int {
	if t.phase == phaseNone {
		return -1
	}
	return t.slot
}

// Open says whether the ticket still waits for its settlement.
func (t *Ticket) Open() bool { return t.phase == phaseSent || t.phase == phaseFirst }

// Outcome says how an exchange ended, as far as the replica is concerned.
type Outcome uint8

// Only Failed is held against the replica.
const (
	OK        Outcome = iota
	Cancelled         // the client left, or the proxy answered itself
	Failed            // could not be reached, reset, refused with 5xx
)

// FirstToken notes that a stream's first token came. It does nothing for
// other requests, nor a second time.
func (r *Router) FirstToken(t *Ticket, now int64) {
	if t.phase != phaseSent || !t.stream {
		return
	}
	t.phase = phaseFirst
	m := r.books.account(t)
	if m == nil {
		return
	}
	m.prefilled(t, now)
	if t.since > 0 {
		m.work, m.span = addCapped(m.work, t.work), m.span+now-t.since
	}
	r.books.touch(t.slot)
	r.books.update(&r.table, now)
}

// Streams notes that the answer is a stream, if that was not known when the
// request was placed: its tokens have so far run off by the clock and wait for
// the first one from now on. It costs no call; the next write tells the others.
func (r *Router) Streams(t *Ticket) {
	m := r.books.account(t)
	if m == nil || t.stream || t.phase != phaseSent {
		return
	}
	t.stream = true
	m.owed = addCapped(m.owed, t.uncached)
	m.turned = addCapped(m.turned, t.uncached)
	r.books.touch(t.slot)
}

// Settle takes the request out of the ledger. A second call does nothing, so
// it may be called on every way out. Where no other worker has requests in
// flight nobody waits for the news: it goes with this worker's next choice or
// tick, and costs no call of the store.
func (r *Router) Settle(t *Ticket, now int64, how Outcome) {
	if r.close(t, now, how) && (how == Failed || !r.books.alone()) {
		r.books.update(&r.table, now)
	}
}

// close settles the ticket in this worker's own books, if it is open.
func (r *Router) close(t *Ticket, now int64, how Outcome) bool {
	if !t.Open() {
		t.slot, t.phase = t.Slot(), phaseSettled
		return false
	}
	m := r.books.account(t)
	if m == nil {
		t.phase = phaseSettled
		return false
	}
	m.leave(t, now, how)
	m.clock = addCapped(m.clock, t.Output)
	t.phase = phaseSettled
	if how == Failed {
		m.avoid = now + r.cfg.AvoidMS
	}
	r.books.touch(t.slot)
	return true
}

// Move notes that another replica than the one named has the request, as
// after a retry; failed holds that against the first. uncached is the part of
// the prompt that is not resident at the new one. slot -1 is a replica we do
// not know. A request that was left to Envoy is entered by Move.
func (r *Router) Move(t *Ticket, now int64, slot int, uncached uint32, failed bool) {
	if t.phase == phaseSettled || t.phase == phaseFirst || slot == t.Slot() {
		return
	}
	if m := r.books.account(t); t.phase == phaseSent && m != nil {
		m.leave(t, now, Cancelled)
		if failed {
			m.avoid = now + r.cfg.AvoidMS
		}
		r.books.touch(t.slot)
	}
	t.phase, t.slot, t.since = phaseNone, -1, 0
	if slot >= 0 && slot < len(r.table.lanes) && r.table.lanes[slot].key != 0 {
		t.uncached = min(uncached, t.prompt)
		r.books.begin(t, slot, now)
	}
	r.books.dirty = true
	r.books.update(&r.table, now)
}

// Note takes a report that came with an answer, and with it the part of it that
// is not ours by the books of now. It costs no call: this worker counts it from
// now on, the others from this worker's next write.
func (r *Router) Note(t *Ticket, now int64, report *Report) {
	m := r.books.account(t)
	if m == nil || report.Empty() || t.slot >= r.books.page.slots() {
		return
	}
	m.report = *report
	m.report.At = now
	owed := r.books.backlog(t.slot, r.rate(t.slot)).left(now)
	m.foreign = foreignOf(&m.report, r.books.inFlight[t.slot], owed, r.mean)
	r.books.touch(t.slot)
}

// account is the ticket's account, nil if the replica has gone.
func (b *books) account(t *Ticket) *account {
	if t.phase != phaseSent && t.phase != phaseFirst || t.slot < 0 || t.slot >= MaxSlots {
		return nil
	}
	if m := &b.mine[t.slot]; m.key == t.key {
		return m
	}
	b.stats.Late++
	return nil
}

// begin enters the ticket into this worker's own books.
func (b *books) begin(t *Ticket, slot int, now int64) {
	m := &b.mine[slot]
	t.slot, t.key, t.phase = slot, m.key, phaseSent
	m.inFlight++
	m.begun++
	m.sentAt = now
	m.clock = addCapped(m.clock, t.uncached)
	if t.stream {
		m.owed = addCapped(m.owed, t.uncached)
		m.fresh = addCapped(m.fresh, t.uncached)
	} else {
		m.soft = addCapped(m.soft, t.uncached)
	}
	b.touch(slot)
}

// touch marks the slot's record as one to be written.
func (b *books) touch(slot int) {
	b.dirty = true
	b.news.Add(slot)
}

// enter does the same on the page as just read, and notes what the first
// token will tell about the rate.
func (b *books) enter(t *Ticket, slot int, now int64) {
	b.mine[slot].pending = pending{} // the page has it
	b.begin(t, slot, now)
	b.take()
	b.post(slot)
	b.sum(slot, slot+1)
	b.fold(slot)
	l := b.backlog(slot, 0)
	t.work, t.since = addCapped(l.owed, l.soft), l.since
}

// prefilled takes the stream's tokens off.
func (m *account) prefilled(t *Ticket, now int64) {
	m.owed -= min(m.owed, t.uncached)
	m.done = addCapped(m.done, t.uncached)
	m.firstAt = now
}

// leave takes the request off, whatever is left of it.
func (m *account) leave(t *Ticket, now int64, how Outcome) {
	if t.phase == phaseSent && t.stream {
		if how == OK {
			m.prefilled(t, now)
		} else {
			m.owed -= min(m.owed, t.uncached)
		}
	}
	if m.inFlight > 0 {
		m.inFlight--
	}
}
