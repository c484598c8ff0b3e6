package prefix

// numbers works out what the store does not tell: the compare-and-set number
// that a write was given. All writes of all workers are counted by one counter
// ([shared.Store]), so it is at least the highest number seen plus this
// worker's writes since, and just that if nobody else wrote meanwhile.
//
// A guess that is wrong is too low and never comes true: the bucket has a
// larger number already, and numbers only grow. So it costs a refused write and
// loses nothing.
type numbers struct {
	seen uint32 // the highest number, or as good as seen
	sets uint32 // this worker's writes until then
	off  bool   // the last guess was wrong: no more, until one would have been right
}

// saw notes a number that was read.
func (n *numbers) saw(cas, sets uint32) {
	if int32(cas-n.next(sets)) > 0 {
		n.seen, n.sets = cas, sets
	}
}

// next is the number of this worker's last write, if it was undisturbed; never
// 0, which would overwrite whatever is there.
func (n *numbers) next(sets uint32) uint32 {
	if at := n.seen + (sets - n.sets); at != 0 {
		return at
	}
	return 1
}
