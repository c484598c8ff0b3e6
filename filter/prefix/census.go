package prefix

// census finds a candidate by its key: an open-addressing table that is never
// cleared, because each seat names the generation it belongs to.
type census struct {
	seats      []seat // a power of two, at least twice the candidates
	generation uint32
}

type seat struct {
	key, index, generation uint32
}

// take makes replicas the candidates. Of two with one key the first is found.
func (c *census) take(replicas []Replica) {
	if len(c.seats) < 2*len(replicas) || c.generation == ^uint32(0) {
		size := 16
		for size < 2*len(replicas) {
			size *= 2
		}
		c.seats, c.generation = make([]seat, size), 0
	}
	c.generation++
	for i := range replicas {
		key := replicas[i].Key
		s := c.seat(key)
		if s != nil && s.generation != c.generation {
			*s = seat{key: key, index: uint32(i), generation: c.generation}
		}
	}
}

// find returns the index of the candidate with the key.
func (c *census) find(key uint32) (int, bool) {
	s := c.seat(key)
	if s == nil || s.generation != c.generation {
		return 0, false
	}
	return int(s.index), true
}

// seat returns where key sits or could sit, nil in an empty table.
func (c *census) seat(key uint32) *seat {
	mask := uint32(len(c.seats) - 1)
	at := key * 0x9E3779B1 >> 7
	for range c.seats {
		s := &c.seats[at&mask]
		if s.generation != c.generation || s.key == key {
			return s
		}
		at++
	}
	return nil
}
