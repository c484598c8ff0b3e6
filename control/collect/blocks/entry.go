package blocks

import "github.com/warmlane/warmlane/control/collect/kvevents"

// source is where exactly an event says a block lies, as a bit of entry.low; 0
// is the GPU.
type source uint8

const (
	gpu    source = 0
	cpu    source = 1
	disk   source = 2
	remote source = 4
)

// sourceOf is not ok for a medium that is not known.
func sourceOf(m kvevents.Medium, far bool) (s source, ok bool) {
	switch {
	case m == kvevents.OtherMedium:
		return 0, false
	case far:
		return remote, true
	case m == kvevents.GPU:
		return gpu, true
	case m == kvevents.CPU:
		return cpu, true
	}
	return disk, true
}

// gain notes one more copy on the GPU, or that a lower tier has the block.
func (x *Index) gain(r *rank, e *entry, from source) {
	if from == gpu {
		if e.gpu == maxCopies {
			return
		}
		e.gpu++
		r.copies++
		r.slot.copies++
		if e.gpu == 1 && e.block != noBlock {
			x.hold(r, e.block, onGPU)
		}
		return
	}
	if e.low == 0 && e.block != noBlock {
		x.hold(r, e.block, below)
	}
	e.low |= uint8(from)
}

// lose is the reverse of gain. The entry may be free after it.
func (x *Index) lose(r *rank, e *entry, from source) {
	if from == gpu {
		if e.gpu == 0 {
			return
		}
		e.gpu--
		r.copies--
		r.slot.copies--
		if e.gpu == 0 && e.block != noBlock {
			x.release(r, e.block, onGPU)
		}
		return
	}
	had := e.low
	if e.low &^= uint8(from); e.low == 0 && had != 0 && e.block != noBlock {
		x.release(r, e.block, below)
	}
}

// rename makes e stand for block b.
func (x *Index) rename(r *rank, e *entry, b blockID) {
	if e.block == noBlock {
		// Now it is known where the block belongs; the copies are as they were.
		r.orphans--
	} else {
		// The hash is used for something else: what it stood for is gone.
		for e.gpu > 0 {
			x.lose(r, e, gpu)
		}
		x.lose(r, e, cpu|disk|remote)
	}
	e.block = b
	if e.gpu > 0 {
		x.hold(r, b, onGPU)
	}
	if e.low > 0 {
		x.hold(r, b, below)
	}
}

// hold notes that r has b in a tier by one more hash.
func (x *Index) hold(r *rank, b blockID, in tier) {
	if !x.tree.hold(r.id, b, in) {
		a := r.aliases[b]
		a[in]++
		r.aliases[b] = a
		return
	}
	if in == onGPU {
		r.blocks++
	}
}

func (x *Index) release(r *rank, b blockID, in tier) {
	if a := r.aliases[b]; a[in] > 0 {
		if a[in]--; a == (aliases{}) {
			delete(r.aliases, b)
		} else {
			r.aliases[b] = a
		}
		return
	}
	x.tree.release(r.id, b, in)
	if in == onGPU {
		r.blocks--
	}
}
