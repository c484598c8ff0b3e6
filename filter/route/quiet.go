package route

// Quietest is the replica to ask a small question: of those that serve model
// and are well, one with the fewest requests in flight as last read, by dice if
// there are several. It is -1 if there is none.
func (r *Router) Quietest(model []byte, dice uint64) int {
	r.table.judge(model)
	best, least, among := -1, ^uint32(0), uint64(0)
	for slot := range r.table.lanes {
		l := &r.table.lanes[slot]
		if l.key == 0 || l.standing != NumFilters {
			continue
		}
		n := r.books.inFlight[slot]
		if n > least {
			continue
		}
		if n < least {
			least, among = n, 0
		}
		if among++; mix(dice+among)%among == 0 {
			best = slot
		}
	}
	return best
}
