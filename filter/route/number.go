package route

// A number is the CAS number of the page, worked out instead of read. The host
// numbers all writes of all workers by one counter, in steps of 1 and over 0
// ([shared.Store]), and Set does not tell what it gave. But the counter is at
// least at floor plus this worker's writes since, so a write of the page gets at
// least that, and just that if nobody else wrote anything meanwhile.
//
// A wrong guess is too low, and then it never matches: it lies below the number
// of this worker's own write, and whoever writes the page later gets a larger
// one. So a write under a guess that holds is as good as one under a number
// that was read.
type number struct {
	page  uint32 // of the page: as read, or guessed when it was written
	floor uint32 // the counter was at least here ...
	sets  uint32 // ... when the view had made so many writes
	known bool   // floor is
	held  int    // guesses in a row that were right
}

// steadyAfter is how many right guesses in a row earn trust. A wasted write is
// cheap, but a choice made twice is not: among several busy workers guesses
// should hardly ever be tried.
const steadyAfter = 3

// steady says that guesses have been right of late.
func (n *number) steady() bool { return n.held >= steadyAfter }

// read notes the page's true number. kept says that page was a guess at it.
func (n *number) read(cas, sets uint32, kept bool) {
	switch {
	case cas != n.page:
		n.held = 0
	case kept:
		n.held++
	}
	n.page = cas
	if !n.known || int32(cas-n.least(sets)) > 0 {
		n.floor, n.sets, n.known = cas, sets, true
	}
}

// wrote guesses the number of the write that has just succeeded.
func (n *number) wrote(sets uint32) {
	n.floor, n.sets = n.least(sets), sets
	n.page = n.floor
}

// least is where the counter is if nobody else wrote since it was at floor.
func (n *number) least(sets uint32) uint32 {
	at := n.floor + (sets - n.sets)
	if at < n.floor {
		at++ // over 0
	}
	return at
}
