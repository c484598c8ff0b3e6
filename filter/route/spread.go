package route

// Spread writes the generation last adopted into the ledger, so that every
// worker of the proxy learns of it with its next read.
func (r *Router) Spread(now int64) {
	r.books.dirty = true
	r.books.update(&r.table, now)
}

// Newest is the generation the ledger was at when last read. If it is later
// than [Router.Generation], newer state is to be had.
func (r *Router) Newest() uint32 { return r.books.page.generation() }
