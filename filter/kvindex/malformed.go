package kvindex

import "strconv"

// Malformed says what is wrong with a payload and at which byte.
type Malformed struct {
	What   string
	Offset int
}

func (m *Malformed) Error() string {
	return "kv record: " + m.What + " at byte " + strconv.Itoa(m.Offset)
}
